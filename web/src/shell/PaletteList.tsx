import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { CloudDownload, Keyboard, LogOut, type LucideIcon, MessageSquareText, Moon, Plug, SquareTerminal, Sun, Table2, Upload, UserRound } from 'lucide-react';
import { type ReactNode, type Ref, useDeferredValue, useEffect, useImperativeHandle, useRef, useState } from 'react';
import { conversations, datasets } from '~/api/queries';
import { auth } from '~/auth/auth';
import { count } from '~/format/number';
import { formatAgo } from '~/format/time';
import { t } from '~/texts';
import { setTheme } from '~/ui/theme';

/** Everything by name: datasets from the service's own search, conversations by title, and what can be done. */
export default function PaletteList({ onClose, onKeys, ...rest }: Field & { onClose: () => void; onKeys: () => void }) {
  const { words } = rest;
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

  const commands = (list: [LucideIcon, string, () => void][]) => list.filter(([, label]) => has(label)).map(([icon, label, onSelect]): Entry => ({ key: label, icon, onSelect, label }));

  const groups: Group[] = [
    {
      heading: t.palette.datasets,
      entries: (found.data?.pages[0]?.data ?? []).slice(0, asked ? 8 : 5).map((item) => ({
        key: `${item.username}/${item.namespace}/${item.name}`,
        icon: Table2,
        hint: count(item.rowCount, 'row'),
        onSelect: run(
          () =>
            void navigate({ to: '/data/$owner/$namespace/$dataset', params: { owner: item.username, namespace: item.namespace, dataset: item.name } }),
        ),
        label: (
          <>
            <span className="text-text-3">{item.namespace} / </span>
            {item.name}
          </>
        ),
      })),
    },
    {
      heading: t.palette.conversations,
      entries: (talks.data?.data ?? [])
        .filter((talk) => has(talk.title))
        .slice(0, 5)
        .map((talk) => ({
          key: talk.id,
          icon: MessageSquareText,
          hint: formatAgo(talk.updatedAt),
          onSelect: run(() => void navigate({ to: '/ask/$conversation', params: { conversation: talk.id } })),
          label: talk.title,
        })),
    },
    {
      heading: t.palette.pages,
      entries: commands([
        [MessageSquareText, t.nav.ask, go('/')],
        [Table2, t.nav.data, go('/data')],
        [Upload, t.nav.upload, go('/upload')],
        [SquareTerminal, t.nav.sql, go('/sql')],
        [CloudDownload, t.nav.sources, go('/sources')],
        [Plug, t.nav.connect, go('/connect')],
        [UserRound, t.nav.account, go('/account')],
      ]),
    },
    {
      heading: t.palette.actions,
      entries: commands([
        [Sun, `${t.nav.theme}: ${t.nav.themes.light}`, run(() => setTheme('light'))],
        [Moon, `${t.nav.theme}: ${t.nav.themes.dark}`, run(() => setTheme('dark'))],
        [Keyboard, t.nav.keys, run(onKeys)],
        [LogOut, t.nav.signOut, run(() => void auth().signOut())],
      ]),
    },
  ];

  const ready = asked === words.trim() && !found.isPending && !found.isPlaceholderData && !talks.isPending;
  return <Choices {...rest} groups={groups.filter((group) => group.entries.length > 0)} ready={ready} />;
}

/** The id of the entry that Enter opens. */
export type Chosen = string | undefined;
export type ListHandle = { /** Takes a key of the field, if it means something to the list. */ press: (key: string) => boolean };
type Field = { ref?: Ref<ListHandle>; id: string; words: string; entered: boolean; onEntered: () => void; onChosen: (chosen: Chosen) => void };

type Entry = { key: string; icon: LucideIcon; hint?: string; onSelect: () => void; label: ReactNode };
type Group = { heading: string; entries: Entry[] };

/** The list. The focus stays in the field, which hands its keys on. */
function Choices({ ref, id, words, entered, onEntered, onChosen, groups, ready }: Field & { groups: Group[]; ready: boolean }) {
  const list = useRef<HTMLDivElement>(null);
  const entries = groups.flatMap((group) => group.entries);
  const [at, setAt] = useState(0);
  const chosen = Math.min(at, entries.length - 1);
  const active = chosen < 0 ? undefined : `${id}-${chosen}`;
  useEffect(() => setAt(0), [words]);
  useEffect(() => {
    // With the heading of the first.
    if (chosen <= 0) list.current?.scrollTo(0, 0);
    else list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  useEffect(() => onChosen(active), [active, onChosen]);
  useEffect(() => {
    if (!entered || !ready) return;
    onEntered();
    entries[chosen]?.onSelect();
  });

  useImperativeHandle(ref, () => ({
    press: (key) => {
      if (entries.length === 0) return false;
      const next = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 + entries.length }[key];
      if (next !== undefined) setAt(next % entries.length);
      return next !== undefined;
    },
  }));

  // Headings are as high as rows, so that a half row at the lower edge always shows that there is more.
  return (
    <>
      <div ref={list} id={id} role="listbox" aria-label={t.palette.label} tabIndex={-1} className="max-h-[calc(round(down,min(440px,60vh),var(--row))+var(--row)/2)] overflow-y-auto px-2 pb-2 [--row:36px] pointer-coarse:[--row:44px]">
        {groups.map((group) => (
          <div key={group.heading} role="group" aria-label={group.heading}>
            <p aria-hidden className="flex h-(--row) items-end px-2 pb-1 text-xs font-medium text-text-3">
              {group.heading}
            </p>
            {group.entries.map((entry) => {
              const index = entries.indexOf(entry);
              return (
                // The keys are those of the field.
                <div
                  key={entry.key}
                  id={`${id}-${index}`}
                  role="option"
                  aria-selected={index === chosen}
                  onPointerMove={() => setAt(index)}
                  onClick={entry.onSelect}
                  className="flex h-(--row) cursor-default items-center gap-3 rounded-sm px-2 aria-selected:bg-hover aria-selected:outline-1 aria-selected:-outline-offset-1 aria-selected:outline-control"
                >
                  <entry.icon size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
                  <span className="min-w-0 grow truncate">{entry.label}</span>
                  {entry.hint && <span className="shrink-0 text-xs text-text-3">{entry.hint}</span>}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      {entries.length === 0 && ready && <p className="px-4 py-8 text-center text-text-2">{t.palette.empty}</p>}
    </>
  );
}
