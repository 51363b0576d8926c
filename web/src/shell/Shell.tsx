import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { CloudDownload, Gauge, Keyboard, LogOut, type LucideIcon, MessageSquareText, Moon, MoreHorizontal, Plug, Search, SquareTerminal, Sun, SunMoon, Table2, Upload, UserRound } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { me } from '~/api/queries';
import { auth, onSessionEnd } from '~/auth/auth';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Mark } from '~/ui/Mark';
import { Menu, type MenuItem } from '~/ui/Menu';
import { setTheme, type Theme, useTheme } from '~/ui/theme';
import { Toasts } from '~/ui/toast';
import { somethingUnsaved } from '~/unsaved';
import { useUploadGuard } from '~/upload/current';
import { DropAnywhere } from './DropAnywhere';
import { Palette } from './Palette';
import { useShortcuts } from './shortcuts';

type Place = { to: string; label: string; icon: LucideIcon; matches: (path: string) => boolean };

const places: Place[] = [
  { to: '/', label: t.nav.ask, icon: MessageSquareText, matches: (path) => path === '/' || path.startsWith('/ask') },
  { to: '/data', label: t.nav.data, icon: Table2, matches: (path) => path.startsWith('/data') },
  { to: '/upload', label: t.nav.upload, icon: Upload, matches: (path) => path.startsWith('/upload') },
  { to: '/sql', label: t.nav.sql, icon: SquareTerminal, matches: (path) => path.startsWith('/sql') },
  { to: '/sources', label: t.nav.sources, icon: CloudDownload, matches: (path) => path.startsWith('/sources') },
  { to: '/connect', label: t.nav.connect, icon: Plug, matches: (path) => path.startsWith('/connect') },
];
/** Only for operators. */
const operation: Place = { to: '/operation', label: t.nav.operation, icon: Gauge, matches: (path) => path.startsWith('/operation') };

function usePlaces(): Place[] {
  const { data } = useQuery(me);
  return data?.operator ? [...places, operation] : places;
}

/** Those that the bottom bar of a phone has room for; the rest is in its menu. */
const main = 4;

export function Shell() {
  const places = usePlaces();
  const [palette, setPalette] = useState(false);
  const [keys, setKeys] = useState(false);
  const content = useRef<HTMLElement>(null);
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const address = useRouterState({ select: (state) => state.location.href });
  const queries = useQueryClient();
  useShortcuts({ palette: () => setPalette(true), keys: () => setKeys(true), go: (to) => void navigate({ to }) });

  useUploadGuard();
  const first = useRef(true);
  useEffect(() => {
    // A new screen starts at its top, and a reader of the screen hears it.
    if (first.current) {
      first.current = false;
      return;
    }
    content.current?.scrollTo(0, 0);
  }, [path]);

  const shown = useRef(address);
  useEffect(() => {
    if (shown.current === address) return;
    shown.current = address;
    // A click that stays on its screen reads anew too: what it shows may not be shared any more.
    void queries.refetchQueries({ type: 'active', stale: true }, { cancelRefetch: false });
  }, [address, queries]);

  return (
    <div className="flex h-full flex-col sm:flex-row">
      <a href="#content" className="absolute z-30 -translate-y-20 rounded-md bg-accent px-3 py-2 text-on-accent focus:translate-y-2">
        {t.nav.skip}
      </a>
      <nav aria-label={t.nav.label} className="hidden w-14 shrink-0 flex-col border-r border-line bg-canvas px-2 py-4 sm:flex lg:w-56 lg:px-3">
        <Link to="/" className="mb-4 flex h-8 items-center gap-2 self-center rounded-md lg:self-stretch lg:px-2" aria-label={t.product}>
          <Mark />
          <span className="hidden text-lg font-semibold tracking-tight lg:inline">{t.product}</span>
        </Link>
        <button
          type="button"
          onClick={() => setPalette(true)}
          title={t.nav.search}
          className="mb-4 flex h-8 items-center justify-center gap-2 rounded-md border border-control bg-surface text-text-3 transition-colors duration-120 hover:text-text lg:justify-start lg:px-2"
        >
          <Search size={16} strokeWidth={1.75} aria-hidden />
          <span className="grow truncate text-left max-lg:sr-only">{t.nav.searchShort}</span>
          <kbd aria-hidden className="hidden rounded-sm whitespace-nowrap bg-sunken px-1 font-sans text-xs text-text-2 lg:inline">{modifier}K</kbd>
        </button>
        <ul className="flex flex-col gap-0.5">
          {places.map((place) => (
            <li key={place.to}>
              <Link
                to={place.to}
                aria-current={place.matches(path) ? 'page' : undefined}
                title={place.label}
                className={cx(
                  'flex h-8 items-center justify-center gap-2 rounded-md transition-colors duration-120 lg:justify-start lg:px-2',
                  place.matches(path) ? 'bg-accent-soft font-medium text-accent' : 'text-text-2 hover:bg-hover hover:text-text',
                )}
              >
                <place.icon size={16} strokeWidth={1.75} aria-hidden />
                <span className="hidden lg:inline">{place.label}</span>
                <span className="sr-only lg:hidden">{place.label}</span>
              </Link>
            </li>
          ))}
        </ul>
        <div className="mt-auto">
          <Account here={path.startsWith('/account')} onKeys={() => setKeys(true)} />
        </div>
      </nav>
      <main id="content" ref={content} tabIndex={-1} className="relative min-h-0 min-w-0 grow overflow-y-auto focus:outline-none">
        <Outlet />
      </main>
      <nav aria-label={t.nav.label} className="flex shrink-0 border-t border-line bg-surface pb-[env(safe-area-inset-bottom)] sm:hidden">
        {places.slice(0, main).map((place) => (
          <Link
            key={place.to}
            to={place.to}
            aria-current={place.matches(path) ? 'page' : undefined}
            className={cx('flex h-14 min-w-0 flex-1 flex-col items-center justify-center gap-1 text-xs', place.matches(path) ? 'font-medium text-accent' : 'text-text-2')}
          >
            <place.icon size={20} strokeWidth={1.75} aria-hidden />
            {place.label}
          </Link>
        ))}
        <MobileMenu here={!places.slice(0, main).some((place) => place.matches(path))} onSearch={() => setPalette(true)} />
      </nav>
      <DropAnywhere path={path} />
      {palette && <Palette onClose={() => setPalette(false)} onKeys={() => setKeys(true)} />}
      <Dialog open={keys} onClose={() => setKeys(false)} title={t.keys.title}>
        <dl className="grid grid-cols-[96px_1fr] items-center gap-y-2">
          {t.keys.list.map(([key, text]) => (
            <div key={key} className="contents">
              <dt>
                <kbd className="rounded-sm border border-line bg-sunken px-1.5 py-0.5 font-sans text-xs">{key?.replace('⌘ ', modifier)}</kbd>
              </dt>
              <dd className="text-text-2">{text}</dd>
            </div>
          ))}
        </dl>
      </Dialog>
      <SessionEnd />
      <Toasts />
    </div>
  );
}

const modifier = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl ';
const themeIcons: Record<Theme, LucideIcon> = { system: SunMoon, light: Sun, dark: Moon };

function useThemeItems(): MenuItem[] {
  const theme = useTheme();
  return (['system', 'light', 'dark'] as const).map((value) => ({
    label: t.nav.themes[value],
    icon: themeIcons[value],
    checked: theme === value,
    onSelect: () => setTheme(value),
  }));
}

function Account({ here, onKeys }: { here: boolean; onKeys: () => void }) {
  const { data } = useQuery(me);
  const themes = useThemeItems();
  const navigate = useNavigate();
  const name = data?.name || data?.username || '';
  return (
    <Menu
      side="top"
      align="start"
      className={cx('flex h-11 w-full items-center justify-center gap-2 rounded-md text-left transition-colors duration-120 lg:justify-start lg:px-2', here ? 'bg-hover' : 'hover:bg-hover')}
      items={[
        { label: t.nav.account, icon: UserRound, onSelect: () => void navigate({ to: '/account' }) },
        { label: t.nav.keys, icon: Keyboard, onSelect: onKeys, hint: '?' },
        'line',
        ...themes,
        'line',
        { label: t.nav.signOut, icon: LogOut, onSelect: () => void auth().signOut() },
      ]}
    >
      <span className="sr-only">{t.nav.account} </span>
      <span aria-hidden className="flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-xs font-semibold text-accent uppercase">
        {(data?.username ?? '·').slice(0, 1)}
      </span>
      <span className="hidden min-w-0 grow flex-col lg:flex">
        <span className="truncate text-sm leading-4 font-medium">{name}</span>
        {data && name !== data.username && <span className="truncate text-xs text-text-3">{data.username}</span>}
      </span>
    </Menu>
  );
}

function MobileMenu({ here, onSearch }: { here: boolean; onSearch: () => void }) {
  const navigate = useNavigate();
  const themes = useThemeItems();
  const places = usePlaces();
  return (
    <Menu
      side="top"
      className={cx('flex h-14 min-w-0 flex-1 flex-col items-center justify-center gap-1 text-xs', here ? 'font-medium text-accent' : 'text-text-2')}
      items={[
        { label: t.nav.search, icon: Search, onSelect: onSearch },
        ...places.slice(main).map((place) => ({ label: place.label, icon: place.icon, onSelect: () => void navigate({ to: place.to }) })),
        { label: t.nav.account, icon: UserRound, onSelect: () => void navigate({ to: '/account' }) },
        'line',
        ...themes,
        'line',
        { label: t.nav.signOut, icon: LogOut, onSelect: () => void auth().signOut() },
      ]}
    >
      <MoreHorizontal size={20} strokeWidth={1.75} aria-hidden />
      {t.nav.more}
    </Menu>
  );
}

/** A session that cannot be renewed: the page asks the issuer silently, unless something on it would be lost. */
function SessionEnd() {
  const [open, setOpen] = useState(false);
  const here = () => location.pathname + location.search + location.hash;
  useEffect(
    () =>
      onSessionEnd(() => {
        if (somethingUnsaved()) setOpen(true);
        else void auth().signIn(here(), 'silent');
      }),
    [],
  );
  return (
    <Dialog
      open={open}
      onClose={() => setOpen(false)}
      title={t.session.ended}
      footer={
        <>
          <Button onClick={() => setOpen(false)}>{t.session.later}</Button>
          <Button look="primary" onClick={() => void auth().signIn(here())}>
            {t.session.button}
          </Button>
        </>
      }
    >
      <p className="text-text-2">{t.session.text}</p>
    </Dialog>
  );
}
