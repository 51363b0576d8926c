import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { Gauge, Plus } from 'lucide-react';
import { useState } from 'react';
import { api, take } from '~/api/client';
import { amountText } from '~/screens/account/tokens';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { NewLimit } from './NewLimit';
import { Section } from './Operation';
import { type Limit, limits } from './queries';

const texts = t.operation;

/** For whom a limit is. */
const whom = (limit: Limit) => (limit.user ? limit.user : limit.group ? texts.group(limit.group) : texts.everyone);

export function Limits() {
  const list = useInfiniteQuery(limits);
  const [adding, setAdding] = useState(false);
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  const add = (
    <Button look="primary" icon={Plus} onClick={() => setAdding(true)}>
      {texts.setLimit}
    </Button>
  );
  return (
    <Section title={texts.limits} lead={texts.limitsText} action={all.length > 0 && add}>
      {list.isError ? (
        <Failure what={texts.failed.limits} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={3} />
      ) : all.length === 0 ? (
        <div className="rounded-md border border-line bg-surface">
          <Empty icon={Gauge} title={texts.noLimits} action={add}>
            {texts.noLimitsText}
          </Empty>
        </div>
      ) : (
        <ul className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface">
          {all.map((limit) => (
            <Line key={`${limit.user ?? ''}@${limit.group ?? ''} ${limit.kind}`} limit={limit} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
      {adding && <NewLimit onClose={() => setAdding(false)} />}
    </Section>
  );
}

function Line({ limit }: { limit: Limit }) {
  const queries = useQueryClient();
  const kind = t.account.kinds[limit.kind];
  const { amount } = limit;
  const remove = useMutation({
    mutationFn: () =>
      take(api.DELETE('/operator/limits', { params: { query: { kind: limit.kind, ...(limit.user && { user: limit.user }), ...(limit.group && { group: limit.group }) } } })),
    onSuccess: async () => {
      say(texts.removed);
      await queries.invalidateQueries({ queryKey: limits.queryKey });
    },
  });
  return (
    <li className="px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <span className="min-w-0 grow basis-40 font-medium [overflow-wrap:anywhere]">{whom(limit)}</span>
        <span className="basis-48 text-text-2">{kind}</span>
        <span className="figure basis-32 text-right">
          {amount === undefined ? texts.unlimited : limit.kind === 'storedBytes' ? amountText(limit.kind, amount) : texts.aDay(amountText(limit.kind, amount))}
        </span>
        <Button look="danger" busy={remove.isPending} onClick={() => remove.mutate()} aria-label={texts.removeLimit(whom(limit), kind)}>
          {texts.remove}
        </Button>
      </div>
      {remove.isError && <Failure error={remove.error} className="mt-2" />}
    </li>
  );
}
