import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { History as HistoryIcon, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { api, type Schemas, take } from '~/api/client';
import { keyOf, pathOf, snapshots } from '~/api/queries';
import { count, formatNumber } from '~/format/number';
import { formatAgo, formatExact } from '~/format/time';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Empty } from '~/ui/Empty';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { AddRows } from './AddRows';
import type { Part } from './part';

const texts = t.dataset.history;

export default function History({ at, role }: Part) {
  const queries = useQueryClient();
  const list = useInfiniteQuery(snapshots(at));
  const [chosen, setChosen] = useState<Schemas['Snapshot'] | null>(null);
  const [compact, setCompact] = useState(false);
  const restore = useMutation({
    mutationFn: (snapshot: Schemas['Snapshot']) =>
      take(api.POST('/data/{username}/{namespace}/{datasetName}/snapshots/{snapshotId}/restore', { params: { path: { ...pathOf(at), snapshotId: snapshot.snapshotId } } })),
    onSuccess: async () => {
      setChosen(null);
      say(texts.done);
      await queries.invalidateQueries({ queryKey: keyOf(at) });
    },
  });
  if (list.isError) return <Failure what={t.failure.what.history} error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton table className="max-w-190" />;
  const all = list.data.pages.flatMap((page) => page.data);
  const shown = all.filter((one) => compact || one.operation !== 'compact' || one.current);
  if (all.length === 0) {
    return (
      <Empty icon={HistoryIcon} title={texts.empty} action={role !== 'viewer' && <AddRows to={at} />}>
        {texts.emptyText}
      </Empty>
    );
  }
  return (
    <div className="max-w-190">
      <ol className="divide-y divide-line rounded-md border border-line bg-surface">
        {shown.map((one) => {
          // Against the version before, which may be one that is not shown.
          const before = all[all.indexOf(one) + 1];
          const change = before ? one.rowCount - before.rowCount : list.hasNextPage ? 0 : one.rowCount;
          return (
            <li key={one.snapshotId} className="flex min-h-14 items-center gap-4 px-4 py-2">
              <div className="min-w-0 grow">
                <p className="flex flex-wrap items-center gap-2">
                  <span className="font-medium">{one.operation === 'append' && change > 0 ? texts.added(count(change, 'row')) : texts.operations[one.operation]}</span>
                  {one.current && <Badge tone="ok">{texts.current}</Badge>}
                </p>
                <Facts
                  className="text-sm text-text-3 figure"
                  of={[
                    <time dateTime={one.committedAt} title={formatAgo(one.committedAt)}>
                      {formatExact(one.committedAt)}
                    </time>,
                    texts.inAll(count(one.rowCount, 'row')),
                    one.operation !== 'append' && change !== 0 && before && `${change > 0 ? '+' : '−'}${formatNumber(Math.abs(change))}`,
                  ]}
                />
              </div>
              {role === 'owner' && !one.current && (
                <Button icon={RotateCcw} onClick={() => setChosen(one)}>
                  {texts.restore}
                </Button>
              )}
            </li>
          );
        })}
      </ol>
      <div className="mt-4 flex items-center gap-4">
        {list.hasNextPage && (
          <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {t.common.more}
          </Button>
        )}
        {all.some((one) => one.operation === 'compact' && !one.current) && (
          <label className="flex items-center gap-2 text-sm text-text-2">
            <input type="checkbox" checked={compact} onChange={(event) => setCompact(event.target.checked)} className="accent-accent" />
            {texts.compact}
          </label>
        )}
      </div>
      <Dialog
        open={chosen !== null}
        onClose={() => setChosen(null)}
        title={chosen ? texts.confirm(formatExact(chosen.committedAt)) : ''}
        footer={
          <>
            <Button onClick={() => setChosen(null)}>{t.common.cancel}</Button>
            <Button look="primary" busy={restore.isPending} onClick={() => chosen && restore.mutate(chosen)}>
              {texts.restore}
            </Button>
          </>
        }
      >
        <p className="text-text-2">{chosen && texts.text(count(chosen.rowCount, 'row'))}</p>
        {restore.isError && <Failure error={restore.error} className="mt-4" />}
      </Dialog>
    </div>
  );
}
