import { useInfiniteQuery } from '@tanstack/react-query';
import { Rows3 } from 'lucide-react';
import { useCallback, useMemo } from 'react';
import { rows } from '~/api/queries';
import { count, formatNumber } from '~/format/number';
import { t } from '~/texts';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Grid } from '~/ui/Grid';
import { Skeleton } from '~/ui/Skeleton';
import { AddRows } from './AddRows';
import type { Part } from './part';

export default function Rows({ at, metadata, role, attached }: Part) {
  const list = useInfiniteQuery(rows(at));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list;
  const loaded = useMemo(() => (list.data?.pages ?? []).flatMap((page) => page.data), [list.data]);
  const columns = list.data?.pages[0]?.columns ?? metadata.columns;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);

  if (list.isError && loaded.length === 0) return <Failure what={t.failure.what.rows} error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton table lines={10} />;
  if (loaded.length === 0) {
    return (
      <Empty icon={Rows3} title={t.dataset.column.emptyTitle} action={role !== 'viewer' && !attached && <AddRows to={at} />}>
        {role !== 'viewer' && !attached && t.dataset.rows.emptyText}
      </Empty>
    );
  }
  const all = count(metadata.rowCount, 'row');
  return (
    <div className="flex min-h-0 grow flex-col">
      <Grid label={t.dataset.rows.label(at.dataset)} columns={columns} rows={loaded} total={metadata.rowCount} onEnd={more} loading={isFetchingNextPage} className="h-0 min-h-80 grow" />
      <p aria-live="polite" className="mt-2 flex flex-wrap justify-between gap-x-4 text-xs text-text-3">
        <span className="figure">{loaded.length < metadata.rowCount ? t.dataset.rows.shown(formatNumber(loaded.length), all) : t.dataset.rows.all(all)}</span>
        <span className="max-sm:hidden">{t.grid.hint}</span>
      </p>
      {list.isError && <Failure error={list.error} onRetry={() => void fetchNextPage()} className="mt-2" />}
    </div>
  );
}
