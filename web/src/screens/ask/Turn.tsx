import { useQuery, useQueryClient } from '@tanstack/react-query';
import { BadgeCheck, Link2 } from 'lucide-react';
import { useId, useMemo, useRef, useState } from 'react';
import { soFar, type Turn as TurnData } from '~/stream/run';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Copy } from '~/ui/Copy';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Hint } from '~/ui/Hint';
import { say } from '~/ui/toast';
import { Answer, type Cited, Doubts, Losses, Reading } from './Answer';
import { Evidence } from './Evidence';
import { Feedback } from './Feedback';
import { Keep } from './Keep';
import { shareUrl } from './link';
import { Clarify, NoAnswer } from './Outcomes';
import { withoutLosses } from './prose';
import { cancel, choose, isKept, longestKept, useLiveRun, type Where } from './runs';
import { Done, Progress } from './Steps';
import { type Explained, explain, meaning } from './words';

type Time = { createdAt: string; finishedAt?: string | undefined } | undefined;

/** One question of a conversation, and what became of it. */
export function Turn({ conversationId, turn, where, time, onAsk }: { conversationId: string; turn: TurnData; where: Where; time: Time; onAsk: (question: string) => void }) {
  const queries = useQueryClient();
  const heading = useId();
  const { run, connection } = useLiveRun(conversationId, turn);
  const [cited, setCited] = useState<Cited | null>(null);
  const [keeping, setKeeping] = useState(false);
  const [kept, setKept] = useState(false);
  const began = useRef(Date.now());
  const running = turn.status === 'running';
  const result = turn.result ?? (running && run ? soFar(run) : undefined);
  const answered = result?.outcome === 'answer' || result?.outcome === 'answer_unverified' || (result?.outcome === 'no_data' && result.steps.length > 0);
  const waiting = turn.status === 'waiting' && result?.clarification !== undefined;
  const steps = result?.steps ?? [];
  const only = steps.length === 1 ? steps[0] : undefined;
  const bare = useMemo(() => result && withoutLosses(result), [result]);
  // A form names the words of the interpretation; rules and verified questions name those of the question.
  const explained = result && result.basis !== 'form' ? (result.explained ?? []) : [];

  return (
    <article aria-labelledby={heading} className="scroll-mt-16">
      <Question id={heading} text={turn.question} explained={explained} />
      <div className="mt-3 flex flex-col gap-4">
        {running && !connection.error && !turn.result && (
          <div className="max-w-190">
            <Progress run={run} since={time ? Date.parse(time.createdAt) : began.current} lost={connection.lost} onStop={() => cancel(queries, conversationId, turn.runId)} />
          </div>
        )}
        {connection.error && <Failure error={connection.error} onRetry={connection.retry} className="max-w-190" />}
        {result && waiting && <Clarify result={result} onChoose={(option) => choose(queries, conversationId, turn.runId, option)} />}
        {!answered && !waiting && !running && <NoAnswer turn={turn} result={result} onAsk={onAsk} />}
        {result && answered && (
          <>
            {!running && <Done steps={steps} time={time} />}
            <div className={cx('grid gap-6', steps.length > 0 && 'xl:grid-cols-[minmax(0,5fr)_minmax(0,7fr)] xl:gap-8')}>
              <div className="flex min-w-0 max-w-190 flex-col gap-4">
                {result.outcome === 'no_data' ? <NoAnswer turn={turn} result={bare} onAsk={onAsk} /> : <Answer result={bare ?? result} cited={cited} onCite={setCited} />}
                <Losses result={result} />
                <Reading result={result} chosen={run?.chosen} />
                <Doubts result={result} />
                {!running && (
                  <div className="-ml-2 flex flex-wrap items-center gap-1">
                    <Feedback conversationId={conversationId} runId={turn.runId} rating={turn.feedback} />
                    <Copy text={result.response} label={t.ask.answer.copy} className="size-8 pointer-coarse:size-11" />
                    {only && (
                      <Button
                        look="quiet"
                        icon={Link2}
                        className="max-sm:gap-0"
                        onClick={() => void navigator.clipboard.writeText(shareUrl({ question: turn.question, where, statement: only.query, ...(result.interpretation && { meaning: result.interpretation }) })).then(() => say(t.ask.link.copied))}
                      >
                        <span className="max-sm:sr-only">{t.ask.link.button}</span>
                      </Button>
                    )}
                    {only && result.outcome !== 'no_data' && result.basis !== 'verified' && <Verify where={where} question={turn.question} kept={kept} onKeep={() => setKeeping(true)} />}
                  </div>
                )}
              </div>
              {steps.length > 0 && <Evidence result={result} runId={turn.runId} question={turn.question} where={where} cited={cited} />}
            </div>
          </>
        )}
      </div>
      {keeping && only && <Keep runId={turn.runId} question={turn.question} statement={only.query} where={where} onClose={() => setKeeping(false)} onKept={() => setKept(true)} />}
    </article>
  );
}

/** The offer to keep the question, unless it is kept already. */
function Verify({ where, question, kept, onKeep }: { where: Where; question: string; kept: boolean; onKeep: () => void }) {
  const known = useQuery({ ...isKept(where, question), enabled: question.length <= longestKept });
  if (kept || known.data) {
    return (
      <span className="flex items-center gap-2 px-3 font-medium text-ok">
        <BadgeCheck size={16} strokeWidth={1.75} aria-hidden />
        {t.ask.keep.kept}
      </span>
    );
  }
  return (
    <Button look="quiet" icon={BadgeCheck} onClick={onKeep}>
      {t.ask.keep.button}
    </Button>
  );
}

/** The question as heading. What its words were taken for appears when they are pointed at. */
function Question({ id, text, explained }: { id: string; text: string; explained: Explained[] }) {
  return (
    <h2 id={id} className="max-w-190 text-xl [overflow-wrap:anywhere]">
      {explain(text, explained).map((piece, index) =>
        piece.explained ? (
          <Hint key={index} text={meaning(piece.explained)} className={cx('underline decoration-dotted decoration-1 underline-offset-6', piece.explained.as === 'unused' ? 'text-warn decoration-warn' : piece.explained.how === 'guessed' ? 'decoration-warn' : 'decoration-text-3')}>
            {piece.text}
          </Hint>
        ) : (
          piece.text
        ),
      )}
    </h2>
  );
}
