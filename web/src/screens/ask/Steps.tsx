import { Check, ChevronRight, Circle, LoaderCircle, Square, WifiOff } from 'lucide-react';
import { useEffect, useState } from 'react';
import { count } from '~/format/number';
import { formatDuration } from '~/format/time';
import type { LiveRun, RunStep } from '~/stream/run';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Emphasis } from './Answer';

const size = { size: 16, strokeWidth: 1.75, 'aria-hidden': true } as const;

/** The work while it goes on, step by step. */
export function Progress({ run, since, lost, onStop }: { run: LiveRun | undefined; since: number; lost: boolean; onStop: () => Promise<void> }) {
  const [stopping, setStopping] = useState(false);
  const now = useNow();
  const phase = run?.phase ?? 'queued';
  const p = t.ask.progress;
  const steps = run?.steps ?? [];
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  return (
    <div className="rounded-md border border-line bg-surface p-4">
      <div className="flex items-center gap-3">
        <LoaderCircle {...size} className="spin shrink-0 text-accent" />
        <p role="status" className="min-w-0 grow font-medium">
          {phase === 'ended' ? p.working : p[phase]}
        </p>
        {seconds > 0 && (
          <span aria-hidden className="figure text-xs text-text-3">
            {seconds} s
          </span>
        )}
        <Button
          icon={Square}
          busy={stopping}
          onClick={() => {
            setStopping(true);
            void onStop().finally(() => setStopping(false));
          }}
        >
          {stopping ? p.stopping : p.stop}
        </Button>
      </div>
      {steps.length > 0 && (
        <ol className="mt-3 flex flex-col gap-2 border-t border-line pt-3">
          {steps.map((step) => (
            <li key={step.index} className="flex gap-3">
              <span className="mt-0.5 shrink-0">
                {step.state === 'done' ? <Check {...size} className="text-ok" /> : step.state === 'planned' ? <Circle {...size} className="text-text-3" /> : <LoaderCircle {...size} className="spin text-accent" />}
              </span>
              <span className="min-w-0 [overflow-wrap:anywhere]">
                <Emphasis text={step.instruction || p.step(step.index + 1, steps.length)} />
                <span className="block text-xs text-text-3">{step.state === 'done' && step.rows !== undefined ? count(step.rows, 'row') : step.state === 'querying' && step.attempt > 1 ? p.attempt(step.attempt) : p.states[step.state]}</span>
              </span>
            </li>
          ))}
        </ol>
      )}
      {lost ? (
        <p className="mt-3 flex items-center gap-2 text-sm text-warn">
          <WifiOff {...size} className="shrink-0" />
          {p.lost}
        </p>
      ) : (
        seconds >= 4 && <p className="mt-3 text-xs text-text-3">{p.leave}</p>
      )}
    </div>
  );
}

/** What was done, folded to one line: 3 steps, 4 s. */
export function Done({ steps, time }: { steps: RunStep[]; time: { createdAt: string; finishedAt?: string | undefined } | undefined }) {
  if (steps.length === 0) return null;
  const seconds = time?.finishedAt ? (Date.parse(time.finishedAt) - Date.parse(time.createdAt)) / 1000 : undefined;
  return (
    <details className="group text-sm">
      <summary title={t.ask.progress.label} className="-ml-1 inline-flex items-center gap-1 rounded-sm text-text-3 select-none hover:text-text [&::-webkit-details-marker]:hidden">
        <ChevronRight {...size} className="transition-transform duration-120 group-open:rotate-90" />
        {t.ask.progress.summary(count(steps.length, 'step'), seconds === undefined ? '' : formatDuration(seconds))}
      </summary>
      <ol className="mt-2 flex flex-col gap-2 border-l border-line pl-4">
        {steps.map((step) => (
          <li key={step.index} className="[overflow-wrap:anywhere]">
            <Emphasis text={step.instruction} />
            <span className="block text-xs text-text-3">
              {count(step.rowCount, 'row')}
              {step.reasoning && ` · ${step.reasoning}`}
            </span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return now;
}
