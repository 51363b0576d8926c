import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { ApiError } from '~/api/errors';
import { Auth, setAuth } from '~/auth/auth';
import { type Config, loadConfig } from '~/config';
import { ConfigContext } from '~/configContext';
import { makeRouter } from '~/router';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Mark } from '~/ui/Mark';
import { applyTheme } from '~/ui/theme';
import '~/theme.css';

applyTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // No staleTime: the next click reads anew, so what others share or take back shows at once.
      retry: (failures, error) => failures < 2 && (!(error instanceof ApiError) || error.temporary),
    },
  },
});

/** Decides who is there before anything is shown: an arrival from the issuer, a session to continue, or nobody. */
async function start(page: Root): Promise<void> {
  page.render(
    <div className="late flex h-full items-center justify-center" role="status" aria-label={t.common.loading}>
      <Mark size={36} />
    </div>,
  );
  const config: Config = await loadConfig();
  const auth = new Auth(config);
  setAuth(auth);
  if (location.pathname === '/callback') {
    const { returnTo, reason } = await auth.arrive();
    const words = new URLSearchParams({ ...(returnTo !== '/' && { returnTo }), ...(reason && { reason }) }).toString();
    history.replaceState(null, '', auth.signedIn ? returnTo : `/signin${words && `?${words}`}`);
  } else if (auth.remembered && location.pathname !== '/signin') {
    // If the issuer cannot be reached, the person gets the button and hears it there.
    await auth.signIn(location.pathname + location.search + location.hash, 'silent').catch(() => undefined);
  }
  page.render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <ConfigContext value={config}>
          <RouterProvider router={makeRouter(queries)} />
        </ConfigContext>
      </QueryClientProvider>
    </StrictMode>,
  );
}

const place = document.getElementById('root');
if (!place) throw new Error('the page has no root');
const page = createRoot(place);
const run = () =>
  void start(page).catch(() => {
    page.render(
      <main className="mx-auto flex h-full max-w-120 flex-col items-start justify-center gap-3 px-6">
        <Mark size={36} />
        <h1 className="mt-4 text-xl">{t.failure.start}</h1>
        <p className="text-text-2">{t.failure.next.NETWORK}</p>
        <Button look="primary" onClick={run}>
          {t.failure.retry}
        </Button>
      </main>,
    );
  });
run();
