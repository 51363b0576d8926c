import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';
import { formatNumber } from '~/format/number';
import { formatDuration } from '~/format/time';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Failure } from '~/ui/Failure';
import { Page } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Limits } from './Limits';
import { health, users } from './queries';
import { Users } from './Users';

const texts = t.operation;

/** What operators see. The service refuses it to everybody else. */
export default function Operation() {
  const first = useQuery(health).isPending;
  const second = useInfiniteQuery(users).isPending;
  // A section waits for those above it, so that nothing jumps.
  return (
    <Page title={texts.title} lead={texts.lead}>
      <div className="flex flex-col gap-10">
        <Health />
        {!first && <Users />}
        {!first && !second && <Limits />}
      </div>
    </Page>
  );
}

export function Section({ title, lead, action, children }: { title: string; lead?: ReactNode; action?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <div className="mb-4 flex flex-wrap items-end justify-between gap-x-4 gap-y-2 sm:flex-nowrap">
        <div className="min-w-0">
          <h2 id={id} className="text-lg">
            {title}
          </h2>
          {lead && <p className="max-w-180 text-text-2 text-pretty">{lead}</p>}
        </div>
        {action}
      </div>
      {children}
    </section>
  );
}

function Health() {
  const state = useQuery(health);
  const waiting = (state.data?.queues ?? []).filter((queue) => queue.waiting > 0);
  return (
    <Section title={texts.health} lead={state.data && texts.healthText(state.data.version)}>
      {state.isError ? (
        <Failure what={texts.failed.health} error={state.error} onRetry={() => void state.refetch()} />
      ) : state.isPending ? (
        <Skeleton lines={5} />
      ) : (
        <div className="grid gap-4 lg:grid-cols-2">
          <ul className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface">
            {state.data.checks.map((check) => (
              <li key={check.name} className="px-4 py-2">
                <p className="flex items-center justify-between gap-2">
                  <span>{texts.checks[check.name] ?? check.name}</span>
                  <Badge tone={check.ok ? 'ok' : 'danger'}>{check.ok ? texts.ok : texts.failing}</Badge>
                </p>
                {check.problem && <p className="mt-1 text-sm text-danger [overflow-wrap:anywhere]">{check.problem}</p>}
              </li>
            ))}
          </ul>
          <div className="self-start rounded-md border border-line bg-surface p-4">
            <h3 className="font-medium">{texts.queues}</h3>
            <p className="text-sm text-text-2">{texts.queuesText}</p>
            {waiting.length === 0 ? (
              <p className="mt-3">{texts.nothingWaits}</p>
            ) : (
              <table className="mt-3 w-full text-left">
                <thead className="text-sm text-text-2">
                  <tr>
                    <th className="font-normal">{texts.queue}</th>
                    <th className="text-right font-normal">{texts.waiting}</th>
                    <th className="text-right font-normal">{texts.oldest}</th>
                  </tr>
                </thead>
                <tbody>
                  {waiting.map((queue) => (
                    <tr key={queue.name}>
                      <td>{queue.name}</td>
                      <td className="figure text-right">{formatNumber(queue.waiting)}</td>
                      <td className="figure text-right">{formatDuration(queue.oldestSeconds)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </div>
        </div>
      )}
    </Section>
  );
}
