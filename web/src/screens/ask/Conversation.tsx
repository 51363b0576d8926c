import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Ellipsis, MessageSquareX, Pencil, Plus, Trash2 } from 'lucide-react';
import { useEffect, useMemo, useRef, useState } from 'react';
import { newKey } from '~/api/client';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Menu } from '~/ui/Menu';
import { frame, useTitle } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Box } from './Box';
import { Delete, Rename } from './Manage';
import { ask, conversation, runTimes } from './runs';
import { type Named, namedIn, nameFor, useScope } from './scope';
import { Turn } from './Turn';

const mostTurns = 200;

/** A conversation: its questions and answers, and a box for the next one. */
export default function Conversation() {
  const { conversation: id } = useParams({ from: '/shell/ask/$conversation' });
  // A conversation starts anew for another id: its state belongs to it.
  return <One key={id} id={id} />;
}

function One({ id }: { id: string }) {
  const { run: wanted } = useSearch({ from: '/shell/ask/$conversation' });
  const queries = useQueryClient();
  const navigate = useNavigate();
  const talk = useQuery(conversation(id));
  const times = useQuery(runTimes(id));
  const [text, setText] = useState('');
  const [picked, setPicked] = useState<Named[]>();
  const [managing, setManaging] = useState<'rename' | 'delete'>();
  const turns = talk.data?.turns ?? [];
  const where = talk.data && { username: talk.data.username, namespace: talk.data.namespace };
  const scope = useScope(where && `${where.username}/${where.namespace}`);
  // The next question is about the same datasets as the one before, until somebody chooses others.
  const chips = useMemo(() => picked ?? (talk.data && where ? namedIn(talk.data.turns.at(-1)?.datasets, scope.datasets, where) : []), [picked, talk.data, scope.datasets]);
  // The heading of a single question says the same as a title that nobody gave.
  const lone = turns.length === 1 && turns[0]?.question === talk.data?.title;
  const list = useRef<HTMLOListElement>(null);
  const key = useRef({ words: '', key: '' });
  useTitle(talk.data?.title ?? t.ask.title);

  const send = useMutation({
    mutationFn: async (question: string) => {
      if (!where) return;
      // The same words again after a failure are the same intention: no question is asked twice.
      if (key.current.words !== question) key.current = { words: question, key: newKey() };
      const started = await ask(queries, { where, text: question, datasets: chips.map((chip) => nameFor(chip, where)), conversationId: id, key: key.current.key });
      key.current = { words: '', key: '' };
      setText('');
      await navigate({ to: '/ask/$conversation', params: { conversation: id }, search: { run: started.runId } });
    },
  });

  // The question that was asked last, or that the address names, starts at the top.
  const known = turns.some((turn) => turn.runId === wanted);
  useEffect(() => {
    if (wanted && known && turns.length > 1) list.current?.querySelector(`[data-run="${CSS.escape(wanted)}"]`)?.scrollIntoView({ block: 'start' });
  }, [wanted, known, turns.length]);

  if (talk.error instanceof ApiError && talk.error.status === 404) {
    return (
      <Empty
        icon={MessageSquareX}
        title={t.ask.conversation.gone}
        action={
          <Link to="/" className={buttonClass('primary')}>
            {t.ask.conversation.newQuestion}
          </Link>
        }
      >
        {t.ask.conversation.goneText}
      </Empty>
    );
  }
  return (
    <div className="flex min-h-full flex-col">
      <header className="sticky top-0 z-5 border-b border-line bg-canvas">
        <div className={cx(frame, 'flex h-12 items-center gap-2')}>
          <h1 className="min-w-0 grow truncate text-sm font-normal text-text-2">
            {where && <span className="text-text-3">{lone ? `${t.ask.title} / ${where.namespace}` : `${where.namespace} / `}</span>}
            <span className={lone ? 'sr-only' : undefined}>{talk.data?.title ?? (talk.isError && t.ask.title)}</span>
          </h1>
          {talk.data && (
            <Menu
              label={t.ask.conversation.actions}
              className="inline-flex size-8 shrink-0 items-center justify-center rounded-md text-text-2 transition-colors duration-120 hover:bg-hover hover:text-text pointer-coarse:size-11"
              items={[
                { label: t.ask.conversation.rename, icon: Pencil, onSelect: () => setManaging('rename') },
                { label: t.ask.conversation.delete, icon: Trash2, danger: true, onSelect: () => setManaging('delete') },
              ]}
            >
              <Ellipsis size={16} strokeWidth={1.75} aria-hidden />
            </Menu>
          )}
          <Link to="/" aria-label={t.ask.conversation.newQuestion} className={buttonClass('plain', 'max-sm:px-2 pointer-coarse:min-w-11')}>
            <Plus size={16} strokeWidth={1.75} aria-hidden />
            <span className="max-sm:hidden">{t.ask.conversation.newQuestion}</span>
          </Link>
        </div>
      </header>
      <div className={cx(frame, 'grow pt-6 pb-8')}>
        {talk.isError ? (
          <Failure what={t.failure.what.conversation} error={talk.error} onRetry={() => void talk.refetch()} className="max-w-190" />
        ) : talk.isPending ? (
          <Skeleton lines={6} />
        ) : (
          <ol ref={list} className="flex flex-col gap-8">
            {turns.map((turn, index) => (
              <li key={turn.runId} data-run={turn.runId} className={index > 0 ? 'scroll-mt-14 border-t border-line pt-8' : 'scroll-mt-14'}>
                {where && <Turn conversationId={id} turn={turn} where={where} time={times.data?.[turn.runId]} onAsk={(question) => send.mutate(question)} />}
              </li>
            ))}
          </ol>
        )}
      </div>
      {where && (
        <div className="sticky bottom-0 z-5 border-t border-line bg-canvas">
          <div className={cx(frame, 'py-3')}>
            {send.isError && <Failure error={send.error} className="mb-3" />}
            {turns.length >= mostTurns ? (
              <p className="text-text-2">{t.ask.conversation.full}</p>
            ) : (
              <div className="max-w-190">
                <Box where={where} datasets={scope.datasets} chips={chips} onChips={setPicked} value={text} onValue={setText} busy={send.isPending} onAsk={() => send.mutate(text.trim())} label={t.ask.followUp} placeholder={t.ask.followUp} />
              </div>
            )}
          </div>
        </div>
      )}
      {managing === 'rename' && talk.data && <Rename id={id} title={talk.data.title} onClose={() => setManaging(undefined)} />}
      {managing === 'delete' && <Delete id={id} onClose={() => setManaging(undefined)} onDeleted={() => navigate({ to: '/' })} />}
    </div>
  );
}
