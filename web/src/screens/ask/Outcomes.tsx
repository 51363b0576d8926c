import { Link } from '@tanstack/react-router';
import { Ban, CircleSlash, ClockAlert, EyeOff, type LucideIcon, MessageCircleQuestionMark, RotateCw, SearchX, SquareTerminal, TriangleAlert } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { ApiError, type ErrorCode } from '~/api/errors';
import type { RunResult, Turn } from '~/stream/run';
import { t } from '~/texts';
import { Button, buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Sql } from '~/ui/Sql';
import { Emphasis } from './Answer';
import { suggestionsOf } from './prose';

function Face({ icon: Icon, title, tone = 'plain', children, actions }: { icon: LucideIcon; title: string; tone?: 'plain' | 'warn' | 'danger' | 'info'; children?: ReactNode; actions?: ReactNode }) {
  const tones = { plain: 'bg-hover text-text-2', warn: 'bg-warn-soft text-warn', danger: 'bg-danger-soft text-danger', info: 'bg-info-soft text-info' };
  return (
    <div className="appear flex max-w-190 gap-4 rounded-md border border-line bg-surface p-4">
      <span className={cx('flex size-8 shrink-0 items-center justify-center rounded-md', tones[tone])}>
        <Icon size={16} strokeWidth={1.75} aria-hidden />
      </span>
      <div className="min-w-0 grow">
        <h3 className="text-lg">{title}</h3>
        <div className="mt-1 text-text-2 [overflow-wrap:anywhere]">{children}</div>
        {actions && <div className="mt-4 flex flex-wrap gap-2">{actions}</div>}
      </div>
    </div>
  );
}

const lines = (text: string) => text.split(/\n+/).map((line, index) => <p key={index}>{line}</p>);

/** The face of a question that got no answer. An answer, and a question that waits for a choice, have their own. */
export function NoAnswer({ turn, result, onAsk }: { turn: Turn; result: RunResult | undefined; onAsk: (question: string) => void }) {
  const o = t.ask.outcome;
  const again = (
    <Button icon={RotateCw} onClick={() => onAsk(turn.question)}>
      {o.again}
    </Button>
  );
  if (turn.status === 'cancelled') return <Face icon={CircleSlash} title={o.cancelled} actions={again}>{o.cancelledNext}</Face>;
  if (turn.status === 'expired') return <Face icon={ClockAlert} tone="warn" title={o.expired} actions={again}>{turn.error?.message || o.expiredNext}</Face>;
  if (turn.status === 'failed') {
    const code = (turn.error?.code ?? 'INTERNAL') as ErrorCode;
    return (
      <Face icon={TriangleAlert} tone="danger" title={o.failed} actions={again}>
        <p>{turn.error?.message}</p>
        <p>{t.failure.next[code] ?? t.failure.next.UNKNOWN}</p>
      </Face>
    );
  }
  switch (result?.outcome) {
    case 'withheld':
      return <Face icon={EyeOff} tone="warn" title={o.withheld}>{o.withheldNext}</Face>;
    case 'not_permitted':
      return (
        <Face
          icon={Ban}
          title={o.not_permitted}
          actions={
            <Link to="/data" className={buttonClass()}>
              {o.seeData}
            </Link>
          }
        >
          {lines(result.response)}
          <p>{o.not_permittedNext}</p>
        </Face>
      );
    case 'no_data':
      return (
        <Face icon={SearchX} title={o.no_data}>
          {lines(result.response)}
          {!result.response && <p>{o.no_dataNext}</p>}
        </Face>
      );
    case 'clarification':
      return (
        <Face icon={MessageCircleQuestionMark} title={result.response} actions={again}>
          {o.unanswered}
        </Face>
      );
    case 'refused':
      return <Refused result={result} onAsk={onAsk} />;
    default:
      return null;
  }
}

function Refused({ result, onAsk }: { result: RunResult; onAsk: (question: string) => void }) {
  const o = t.ask.outcome;
  const { text, questions } = suggestionsOf(result.response);
  return (
    <Face
      icon={MessageCircleQuestionMark}
      title={o.refused}
      actions={
        <Link to="/sql" className={buttonClass()}>
          <SquareTerminal size={16} strokeWidth={1.75} aria-hidden />
          {o.writeSql}
        </Link>
      }
    >
      {lines(text)}
      <p>{o.refusedNext}</p>
      {questions.length > 0 && (
        <>
          <h4 className="mt-4 text-xs font-medium text-text-3">{o.tryInstead}</h4>
          <Suggestions questions={questions} onAsk={onAsk} />
        </>
      )}
    </Face>
  );
}

export function Suggestions({ questions, onAsk }: { questions: string[]; onAsk: (question: string) => void }) {
  return (
    <ul className="mt-2 flex flex-wrap gap-2">
      {questions.map((question) => (
        <li key={question} className="max-w-full">
          <button type="button" onClick={() => onAsk(question)} className="min-h-8 max-w-full rounded-md border border-control bg-surface px-3 py-1 text-left text-text [overflow-wrap:anywhere] transition-colors duration-120 hover:bg-hover pointer-coarse:min-h-11">
            {question}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The question can be read in several ways: one click answers it. */
export function Clarify({ result, onChoose }: { result: RunResult; onChoose: (option: number) => Promise<void> }) {
  const [busy, setBusy] = useState<number>();
  const [open, setOpen] = useState<number>();
  const [error, setError] = useState<unknown>();
  const asked = result.clarification;
  if (!asked) return null;
  const pick = async (option: number) => {
    setBusy(option);
    setError(undefined);
    try {
      await onChoose(option);
    } catch (cause) {
      setError(cause instanceof ApiError && cause.code === 'CONFLICT' ? new ApiError({ code: 'CONFLICT', message: t.ask.clarify.gone, requestId: cause.requestId }) : cause);
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <div className="max-w-190">
      <p className="mb-3 text-lg">{asked.question}</p>
      <ul aria-label={t.ask.clarify.choose} className="flex flex-col gap-2">
        {asked.options.map((option) => (
          <li key={option.number} className="overflow-hidden rounded-md border border-control bg-surface">
            <div className="flex items-stretch">
              <button
                type="button"
                disabled={busy !== undefined}
                aria-busy={busy === option.number || undefined}
                onClick={() => void pick(option.number)}
                className="flex min-h-11 min-w-0 grow items-center gap-3 px-3 py-2 text-left transition-colors duration-120 hover:bg-hover disabled:opacity-60 focus-visible:-outline-offset-2"
              >
                <span aria-hidden className="flex size-5 shrink-0 items-center justify-center rounded-sm bg-accent-soft text-xs font-medium text-accent">
                  {option.number}
                </span>
                <span className="min-w-0 text-text-2 [overflow-wrap:anywhere]">
                  <Emphasis text={option.interpretation} />
                </span>
              </button>
              {option.query && (
                <button
                  type="button"
                  aria-expanded={open === option.number}
                  aria-label={open === option.number ? t.ask.clarify.hideQuery : t.ask.clarify.query}
                  title={open === option.number ? t.ask.clarify.hideQuery : t.ask.clarify.query}
                  onClick={() => setOpen(open === option.number ? undefined : option.number)}
                  className="flex w-11 shrink-0 items-center justify-center border-l border-line text-text-2 hover:bg-hover hover:text-text focus-visible:-outline-offset-2"
                >
                  <SquareTerminal size={16} strokeWidth={1.75} aria-hidden />
                </button>
              )}
            </div>
            {open === option.number && option.query && <Sql text={option.query} className="rounded-none border-x-0 border-b-0" />}
          </li>
        ))}
      </ul>
      {error !== undefined && <Failure error={error} className="mt-3" />}
    </div>
  );
}
