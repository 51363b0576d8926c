import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Keyboard, LogOut, type LucideIcon, MessageSquareText, Moon, Plug, Search, SquareTerminal, Sun, Table2, Upload, UserRound } from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useId, useRef, useState } from 'react';
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
      heading: t.palette.actions,
      entries: actions.filter(([, label]) => has(label)).map(([icon, label, onSelect]) => ({ key: label, icon, onSelect, label })),
    },
  ];

  return (
    <dialog
      {...useModal(onClose)}
      aria-label={t.palette.label}
      className="appear mx-auto mt-[12vh] mb-auto w-[calc(100vw-32px)] max-w-160 overflow-hidden rounded-lg border border-line bg-raised p-0 text-text shadow-lift"
    >
      <Choices words={words} setWords={setWords} groups={groups.filter((group) => group.entries.length > 0)} empty={!found.isFetching} />
      <p aria-hidden className="hidden gap-4 border-t border-line px-4 py-2 text-xs text-text-3 sm:flex">
        <span>↑ ↓ {t.palette.hint.move}</span>
        <span>↵ {t.palette.hint.open}</span>
        <span>Esc {t.palette.hint.close}</span>
      </p>
    </dialog>
  );
}

type Entry = { key: string; icon: LucideIcon; hint?: string; onSelect: () => void; label: ReactNode };
type Group = { heading: string; entries: Entry[] };

/** A field whose arrow keys choose from a list below it. The focus stays in the field. */
function Choices({ words, setWords, groups, empty }: { words: string; setWords: (words: string) => void; groups: Group[]; empty: boolean }) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const entries = groups.flatMap((group) => group.entries);
  const [at, setAt] = useState(0);
  const chosen = Math.min(at, entries.length - 1);
  useEffect(() => setAt(0), [words]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);

  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing || entries.length === 0) return;
    const next = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 + entries.length }[event.key];
    if (next !== undefined) setAt(next % entries.length);
    else if (event.key === 'Enter') entries[chosen]?.onSelect();
    else return;
    event.preventDefault();
  };

  return (
    <>
      <div className="flex items-center gap-3 border-b border-line px-4">
        <Search size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
        <input
          autoFocus
          role="combobox"
          aria-label={t.palette.label}
          aria-autocomplete="list"
          aria-expanded={entries.length > 0}
          aria-controls={id}
          aria-activedescendant={entries.length > 0 ? `${id}-${chosen}` : undefined}
          autoComplete="off"
          spellCheck={false}
          value={words}
          onChange={(event) => setWords(event.target.value)}
          onKeyDown={press}
          maxLength={200}
          placeholder={t.palette.placeholder}
          className="h-12 min-w-0 grow bg-transparent text-lg outline-none placeholder:text-text-3"
        />
      </div>
      <div ref={list} id={id} role="listbox" aria-label={t.palette.label} tabIndex={-1} className="max-h-[min(440px,60vh)] overflow-y-auto p-2">
        {groups.map((group) => (
          <div key={group.heading} role="group" aria-label={group.heading}>
            <p aria-hidden className="px-2 pt-2 pb-1 text-xs font-medium text-text-3">
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
                  className="flex h-9 cursor-default items-center gap-3 rounded-sm px-2 aria-selected:bg-hover aria-selected:outline-1 aria-selected:-outline-offset-1 aria-selected:outline-line pointer-coarse:h-11"
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
      {entries.length === 0 && empty && <p className="px-4 py-8 text-center text-text-2">{t.palette.empty}</p>}
    </>
  );
}
