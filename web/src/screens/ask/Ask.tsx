import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { BadgeCheck, Ellipsis, MessageSquareText, Pencil, Trash2 } from 'lucide-react';
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { newKey, type Schemas } from '~/api/client';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Failure } from '~/ui/Failure';
import { Menu } from '~/ui/Menu';
import { useTitle } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { AddRows } from '../dataset/AddRows';
import { Box } from './Box';
import { Delete, Rename } from './Manage';
import { allConversations, ask, verifiedQuestions, type Where } from './runs';
import { type Named, nameFor, useScope } from './scope';
import { useSuggestions } from './suggestions';

const Start = lazy(() => retried(() => import('~/screens/start/Start')));

/** The start page: a box, a few questions that can be answered, and what was asked before. */
export default function Ask() {
  useTitle(t.ask.title);
  const search = useSearch({ from: '/shell/' });
  const queries = useQueryClient();
  const navigate = useNavigate();
  const scope = useScope(search.about);
  const [text, setText] = useState(search.q ?? '');
  const [chips, setChips] = useState<Named[]>([]);
  const key = useRef({ words: '', key: '' });
  // What is below the suggestions waits for them, because they would push it down; but not for long.
  const [settled, setSettled] = useState(false);
  const there = useCallback(() => setSettled(true), []);
  useEffect(() => {
    const timer = setTimeout(there, 3000);
    return () => clearTimeout(timer);
  }, [there]);
  // A page that is open already gets another question when somebody loads the sample.
  useEffect(() => {
    if (search.q) setText(search.q);
  }, [search.q]);
  const about = search.about?.split('/')[2];
  useEffect(() => {
    const [username, namespace, name] = (search.about ?? '').split('/');
    const one = scope.datasets.find((dataset) => dataset.username === username && dataset.namespace === namespace && dataset.name === name);
    if (about && one) setChips([one]);
  }, [about, search.about, scope.datasets]);

  const send = useMutation({
    mutationFn: async (question: string) => {
      const { where } = scope;
      if (!where) return;
      const words = JSON.stringify([question, where, chips]);
      if (key.current.words !== words) key.current = { words, key: newKey() };
      const started = await ask(queries, { where, text: question, datasets: chips.map((chip) => nameFor(chip, where)), key: key.current.key });
      await navigate({ to: '/ask/$conversation', params: { conversation: started.conversationId }, search: { run: started.runId } });
    },
  });
  const submit = (question: string) => {
    setText(question);
    send.mutate(question);
  };

  // Without a row no question has an answer.
  const empty = scope.ready && scope.datasets.every((one) => one.rowCount === 0) ? scope.datasets[0] : undefined;
  if (!scope.error && scope.ready && scope.datasets.length === 0) {
    return (
      <Suspense fallback={<Skeleton lines={4} />}>
        <Start title={t.ask.empty} page />
      </Suspense>
    );
  }
  return (
    <div className="mx-auto w-full max-w-190 px-4 pt-8 pb-12 sm:px-8 sm:pt-[10vh]">
      <h1 className="mb-6 text-2xl tracking-tight text-balance">{t.ask.heading}</h1>
      <Box
        large
        autoFocus
        where={scope.where}
        choices={scope.choices}
        datasets={scope.datasets}
        chips={chips}
        onChips={setChips}
        onWhere={scope.choose}
        value={text}
        onValue={setText}
        busy={send.isPending}
        onAsk={() => submit(text.trim())}
      />
      {send.isError && <Failure error={send.error} onRetry={() => send.mutate(text.trim())} className="mt-3" />}
      {scope.error ? (
        // What is typed meanwhile is kept, and can be asked after the next try.
        <Failure what={t.failure.what.datasets} error={scope.error} onRetry={scope.retry} className="mt-3" />
      ) : (
        <>
          {empty && (
            <div className="mt-4 flex flex-wrap items-center justify-between gap-3 rounded-md border border-line bg-surface px-4 py-3">
              <p className="text-text-2 [overflow-wrap:anywhere]">{scope.datasets.length === 1 ? t.ask.noRows(empty.name) : t.ask.noRowsAnywhere}</p>
              <AddRows to={{ owner: empty.username, namespace: empty.namespace, dataset: empty.name }} look="plain" />
            </div>
          )}
          {!scope.ready && !scope.where && <Cards />}
          {scope.where && <Starts where={scope.where} chips={chips} onAsk={submit} onThere={there} />}
          {(settled || (scope.ready && !scope.where)) && <Recent />}
        </>
      )}
    </div>
  );
}

/** The place of the questions to begin with. */
function Cards() {
  return (
    <div aria-hidden className="mt-4 grid gap-2 sm:grid-cols-2">
      {Array.from({ length: 4 }, (_, index) => (
        <div key={index} className="skeleton h-11" />
      ))}
    </div>
  );
}

/** Questions to begin with: verified ones first, then those that the data suggests. */
function Starts({ where, chips, onAsk, onThere }: { where: Where; chips: Named[]; onAsk: (question: string) => void; onThere: () => void }) {
  const verified = useQuery(verifiedQuestions(where));
  const suggested = useSuggestions(where, chips);
  const kept = (verified.data?.data ?? []).filter((one) => one.parameters.length === 0).slice(0, 4);
  const there = !verified.isPending && !suggested.isPending;
  useEffect(() => {
    if (there) onThere();
  }, [there, onThere]);
  const rest = suggested.questions.filter((question) => !kept.some((one) => one.question === question)).slice(0, Math.max(2, 4 - kept.length));
  if (!there && kept.length + rest.length === 0) return <Cards />;
  if (kept.length + rest.length === 0) return null;
  const item = (question: string, icon?: ReactNode) => (
    <li key={question}>
      <button type="button" onClick={() => onAsk(question)} className="flex h-full min-h-11 w-full items-center gap-2 rounded-md border border-line bg-surface px-3 py-2 text-left text-text-2 [overflow-wrap:anywhere] transition-colors duration-120 hover:border-control hover:text-text">
        {icon}
        {question}
      </button>
    </li>
  );
  return (
    <section aria-label={t.ask.suggestions} className="mt-4">
      <ul className="grid gap-2 sm:auto-rows-fr sm:grid-cols-2">
        {kept.map((one) => item(one.question, <BadgeCheck size={16} strokeWidth={1.75} aria-label={t.ask.verifiedQuestions} className="shrink-0 text-ok" />))}
        {rest.map((question) => item(question))}
      </ul>
    </section>
  );
}

type Item = Schemas['ConversationItem'];

function dayOf(time: string): keyof typeof t.ask.days {
  const start = new Date();
  start.setHours(0, 0, 0, 0);
  const days = (start.getTime() - Date.parse(time)) / 86_400_000;
  return days <= 0 ? 'today' : days <= 1 ? 'yesterday' : days <= 7 ? 'week' : 'older';
}

function Recent() {
  const list = useInfiniteQuery(allConversations);
  const [managing, setManaging] = useState<{ what: 'rename' | 'delete'; item: Item }>();
  const items = (list.data?.pages ?? []).flatMap((page) => page.data);
  const groups = Map.groupBy(items, (item) => dayOf(item.updatedAt));
  return (
    <section className="mt-12" aria-labelledby="recent">
      <h2 id="recent" className="mb-2 text-lg">
        {t.ask.recent}
      </h2>
      {list.isPending && <Skeleton lines={3} />}
      {list.isError && <Failure what={t.failure.what.conversations} error={list.error} onRetry={() => void list.refetch()} />}
      {list.isSuccess && items.length === 0 && <p className="text-text-2">{t.ask.noRecent}</p>}
      {[...groups].map(([day, some]) => (
        <div key={day} className="mb-4">
          <h3 className="mb-1 text-xs font-medium text-text-3">{t.ask.days[day]}</h3>
          <ul>
            {some.map((item) => (
              <li key={item.id} className="group relative -mx-2 flex items-center gap-2 rounded-md px-2 transition-colors duration-120 focus-within:bg-hover hover:bg-hover">
                <MessageSquareText size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
                <Link to="/ask/$conversation" params={{ conversation: item.id }} className="flex min-h-9 min-w-0 grow items-center rounded-sm after:absolute after:inset-0 pointer-coarse:min-h-11">
                  <span className="truncate">{item.title}</span>
                </Link>
                <span className="hidden shrink-0 text-xs text-text-3 sm:inline">
                  {item.namespace} · <Ago time={item.updatedAt} />
                </span>
                <Menu
                  label={t.ask.conversation.actions}
                  className="relative inline-flex size-7 shrink-0 items-center justify-center rounded-md text-text-3 hover:text-text pointer-coarse:size-11"
                  items={[
                    { label: t.ask.conversation.rename, icon: Pencil, onSelect: () => setManaging({ what: 'rename', item }) },
                    { label: t.ask.conversation.delete, icon: Trash2, danger: true, onSelect: () => setManaging({ what: 'delete', item }) },
                  ]}
                >
                  <Ellipsis size={16} strokeWidth={1.75} aria-hidden />
                </Menu>
              </li>
            ))}
          </ul>
        </div>
      ))}
      {list.hasNextPage && (
        <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
      {managing?.what === 'rename' && <Rename id={managing.item.id} title={managing.item.title} onClose={() => setManaging(undefined)} />}
      {managing?.what === 'delete' && <Delete id={managing.item.id} onClose={() => setManaging(undefined)} onDeleted={() => undefined} />}
    </section>
  );
}
