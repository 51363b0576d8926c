import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, createRouter, Link, Outlet, redirect } from '@tanstack/react-router';
import { FileQuestion } from 'lucide-react';
import { auth } from '~/auth/auth';
import { screen } from '~/lazy';
import { SignIn } from '~/screens/signin/SignIn';
import { Shell } from '~/shell/Shell';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { RouteFailure } from '~/ui/Failure';

type Context = { queries: QueryClient };

const root = createRootRouteWithContext<Context>()({ component: Outlet, notFoundComponent: NotFound });

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/signin',
  component: SignIn,
  validateSearch: (search): { returnTo?: string | undefined; reason?: string | undefined } => ({ returnTo: text(search['returnTo']), reason: text(search['reason']) }),
});

/** All that needs somebody to be signed in. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  beforeLoad: ({ location }) => {
    if (!auth().signedIn) throw redirect({ to: '/signin', search: { returnTo: location.href } });
  },
  errorComponent: RouteFailure,
});

const ask = createRoute({
  getParentRoute: () => shell,
  path: '/',
  component: screen(() => import('~/screens/ask/Ask')),
  // `about` is owner/namespace or owner/namespace/dataset.
  validateSearch: (search): { q?: string | undefined; about?: string | undefined } => ({ q: text(search['q']), about: text(search['about']) }),
});
const conversation = createRoute({
  getParentRoute: () => shell,
  path: '/ask/$conversation',
  component: screen(() => import('~/screens/ask/Conversation')),
  validateSearch: (search): { run?: string | undefined } => ({ run: text(search['run']) }),
});
const link = createRoute({ getParentRoute: () => shell, path: '/ask/link', component: screen(() => import('~/screens/ask/Link')) });
const sql = createRoute({
  getParentRoute: () => shell,
  path: '/sql',
  component: screen(() => import('~/screens/sql/Sql')),
  // A link opens a statement and does not run it: the reader does, with their own rights. A name such as 2026 arrives as a number.
  // `statement` is the id of a long statement, which is shown in the place of the rows.
  validateSearch: (search): { q?: string | undefined; namespace?: string | undefined; statement?: string | undefined } => {
    const { q, namespace, statement } = search;
    return { q: text(q), namespace: text(typeof namespace === 'number' ? String(namespace) : namespace), statement: text(statement) };
  },
});
const connect = createRoute({ getParentRoute: () => shell, path: '/connect', component: screen(() => import('~/screens/connect/Connect')) });
const account = createRoute({ getParentRoute: () => shell, path: '/account', component: screen(() => import('~/screens/account/Account')) });

const data = createRoute({
  getParentRoute: () => shell,
  path: '/data',
  component: screen(() => import('~/screens/data/Data')),
  // `sharing` is owner/namespace: who has access to it is shown.
  validateSearch: (search): { q?: string | undefined; show?: 'mine' | 'shared' | undefined; sharing?: string | undefined } => {
    const show = search['show'];
    return { q: text(search['q']), show: show === 'mine' || show === 'shared' ? show : undefined, sharing: text(search['sharing']) };
  },
});
const dataset = createRoute({
  getParentRoute: () => shell,
  path: '/data/$owner/$namespace/$dataset',
  component: screen(() => import('~/screens/dataset/Dataset')),
});
const datasetTab = createRoute({
  getParentRoute: () => shell,
  path: '/data/$owner/$namespace/$dataset/$tab',
  component: screen(() => import('~/screens/dataset/Dataset')),
});
const records = createRoute({
  getParentRoute: () => shell,
  path: '/data/$owner/$namespace/$dataset/loads/$ingestion',
  component: screen(() => import('~/screens/records/Records')),
  // `record` is the id of the one that is shown.
  validateSearch: (search): { doubted?: boolean | undefined; record?: string | undefined } => ({ doubted: search['doubted'] === true || undefined, record: text(search['record']) }),
});
const upload = createRoute({
  getParentRoute: () => shell,
  path: '/upload',
  component: screen(() => import('~/screens/upload/Upload')),
  validateSearch: (search): { into?: string | undefined; session?: string | undefined } => ({ into: text(search['into']), session: text(search['session']) }),
});

const sources = createRoute({ getParentRoute: () => shell, path: '/sources', component: screen(() => import('~/screens/sources/Sources')) });
const source = createRoute({ getParentRoute: () => shell, path: '/sources/$source', component: screen(() => import('~/screens/sources/Source')) });

const operation = createRoute({ getParentRoute: () => shell, path: '/operation', component: screen(() => import('~/screens/operation/Operation')) });

const tree = root.addChildren([signIn, shell.addChildren([ask, conversation, link, data, dataset, datasetTab, records, upload, sql, sources, source, operation, connect, account])]);

export function makeRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    defaultPreload: 'intent',
    defaultErrorComponent: RouteFailure,
    defaultNotFoundComponent: NotFound,
    scrollRestoration: false,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}

function NotFound() {
  return (
    <Empty
      icon={FileQuestion}
      title={t.notFound.title}
      action={
        <Link to="/data" className={buttonClass('primary')}>
          {t.notFound.button}
        </Link>
      }
    >
      {t.notFound.text}
    </Empty>
  );
}
