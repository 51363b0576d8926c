import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { Keyboard, LogOut, type LucideIcon, MessageSquareText, Moon, Plug, Search, SquareTerminal, Sun, Table2, Upload, UserRound } from 'lucide-react';
import { type ReactNode, useDeferredValue, useState } from 'react';
import { conversations, datasets } from '~/api/queries';
import { auth } from '~/auth/auth';
import { count } from '~/format/number';
import { formatAgo } from '~/format/time';
import { t } from '~/texts';
import { useModal } from '~/ui/Dialog';
import { setTheme } from '~/ui/theme';

/** Everything by name: datasets from the service's own search, conversations by title, and what can be done. */
export default function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const [words, setWords] = useState('');
  const asked = useDeferredValue(words.trim());
  const navigate = useNavigate();
  const found = useInfiniteQuery({ ...datasets(asked), placeholderData: keepPreviousData });
  const talks = useQuery(conversations);

  const run = (action: () => void) => () => {
    onClose();
    action();
  };
  const go = (to: string) => run(() => void navigate({ to }));
  const has = (text: string) => text.toLowerCase().includes(asked.toLowerCase());

  const actions: [LucideIcon, string, () => void][] = [
    [MessageSquareText, t.nav.ask, go('/')],
    [Table2, t.nav.data, go('/data')],
    [Upload, t.nav.upload, go('/upload')],
    [SquareTerminal, t.nav.sql, go('/sql')],
    [Plug, t.nav.connect, go('/connect')],
    [UserRound, t.nav.account, go('/account')],
    [Sun, `${t.nav.theme}: ${t.nav.themes.light}`, run(() => setTheme('light'))],
    [Moon, `${t.nav.theme}: ${t.nav.themes.dark}`, run(() => setTheme('dark'))],
    [Keyboard, t.nav.keys, run(onKeys)],
    [LogOut, t.nav.signOut, run(() => void auth().signOut())],
  ];
  const shownDatasets = (found.data?.pages[0]?.data ?? []).slice(0, asked ? 8 : 5);
  const shownTalks = (talks.data?.data ?? []).filter((talk) => has(talk.title)).slice(0, 5);
  const shownActions = actions.filter(([, label]) => has(label));

  return (
    <dialog
      {...useModal(onClose)}
      aria-label={t.palette.label}
      className="appear mx-auto mt-[12vh] mb-auto w-[calc(100vw-32px)] max-w-160 overflow-hidden rounded-lg border border-line bg-raised p-0 text-text shadow-lift"
    >
      <Command shouldFilter={false} label={t.palette.label} loop>
        <div className="flex items-center gap-3 border-b border-line px-4">
          <Search size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
          <Command.Input
            autoFocus
            value={words}
            onValueChange={setWords}
            maxLength={200}
            placeholder={t.palette.placeholder}
            className="h-12 min-w-0 grow bg-transparent text-lg outline-none placeholder:text-text-3"
          />
        </div>
        <Command.List className="max-h-[min(440px,60vh)] overflow-y-auto p-2 [&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:font-medium [&_[cmdk-group-heading]]:text-text-3">
          {!found.isFetching && <Command.Empty className="px-2 py-8 text-center text-text-2">{t.palette.empty}</Command.Empty>}
          {shownDatasets.length > 0 && (
            <Command.Group heading={t.palette.datasets}>
              {shownDatasets.map((item) => (
                <Row
                  key={`${item.username}/${item.namespace}/${item.name}`}
                  value={`dataset ${item.username}/${item.namespace}/${item.name}`}
                  icon={Table2}
                  onSelect={run(
                    () =>
                      void navigate({
                        to: '/data/$owner/$namespace/$dataset',
                        params: { owner: item.username, namespace: item.namespace, dataset: item.name },
                      }),
                  )}
                  hint={count(item.rowCount, 'row')}
                >
                  <span className="text-text-3">{item.namespace} / </span>
                  {item.name}
                </Row>
              ))}
            </Command.Group>
          )}
          {shownTalks.length > 0 && (
            <Command.Group heading={t.palette.conversations}>
              {shownTalks.map((talk) => (
                <Row
                  key={talk.id}
                  value={`conversation ${talk.id}`}
                  icon={MessageSquareText}
                  hint={formatAgo(talk.updatedAt)}
                  onSelect={run(() => void navigate({ to: '/ask/$conversation', params: { conversation: talk.id } }))}
                >
                  {talk.title}
                </Row>
              ))}
            </Command.Group>
          )}
          {shownActions.length > 0 && (
            <Command.Group heading={t.palette.actions}>
              {shownActions.map(([icon, label, action]) => (
                <Row key={label} value={`action ${label}`} icon={icon} onSelect={action}>
                  {label}
                </Row>
              ))}
            </Command.Group>
          )}
        </Command.List>
        <p aria-hidden className="hidden gap-4 border-t border-line px-4 py-2 text-xs text-text-3 sm:flex">
          <span>↑ ↓ {t.palette.hint.move}</span>
          <span>↵ {t.palette.hint.open}</span>
          <span>Esc {t.palette.hint.close}</span>
        </p>
      </Command>
    </dialog>
  );
}

function Row({ value, icon: Icon, hint, onSelect, children }: { value: string; icon: LucideIcon; hint?: string; onSelect: () => void; children: ReactNode }) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex h-9 items-center gap-3 rounded-sm px-2 data-[selected=true]:bg-sunken pointer-coarse:h-11"
    >
      <Icon size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
      <span className="min-w-0 grow truncate">{children}</span>
      {hint && <span className="shrink-0 text-xs text-text-3">{hint}</span>}
    </Command.Item>
  );
}
