import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { Layers, Trash2 } from 'lucide-react';
import { api, type Schemas, take } from '~/api/client';
import { longStatements } from '~/api/queries';
import { count, formatBytes, formatPercent } from '~/format/number';
import { t } from '~/texts';
import { Button, IconButton } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';
import { StatusBadge } from './Long';

/** The long statements of the account, from every browser and program. */
export function LongList({ onPick }: { onPick: (id: string) => void }) {
  const list = useInfiniteQuery(longStatements);
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: (id: string) => take(api.DELETE('/query/statements/{statementId}', { params: { path: { statementId: id } } })),
    onSuccess: async (_, id) => {
      client.removeQueries({ queryKey: ['statement', id] });
      await client.invalidateQueries({ queryKey: longStatements.queryKey });
      say(t.sql.long.deleted);
    },
  });
  if (list.isPending) return <Skeleton />;
  if (list.isError && !list.data) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  const found = list.data.pages.flatMap((page) => page.data);
  if (found.length === 0) {
    return (
      <Empty icon={Layers} title={t.sql.long.empty}>
        {t.sql.long.emptyText}
      </Empty>
    );
  }
  return (
    <>
      <p className="mb-3 text-text-2">{t.sql.long.listText}</p>
      {remove.isError && <Failure error={remove.error} className="mb-3" />}
      <ul className="divide-y divide-line overflow-hidden rounded-md border border-line">
        {found.map((statement) => (
          <li key={statement.id} className="flex items-center gap-2 pr-2 transition-colors duration-120 hover:bg-hover">
            <button type="button" onClick={() => onPick(statement.id)} className="min-w-0 grow px-4 py-3 text-left focus-visible:-outline-offset-2">
              <span className="mono line-clamp-3 [overflow-wrap:anywhere] whitespace-pre-wrap">{statement.query.slice(0, 1000)}</span>
              <span className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-text-3">
                <StatusBadge status={statement.status} />
                <Extent statement={statement} />
                <Ago time={statement.createdAt} />
              </span>
            </button>
            <IconButton icon={Trash2} label={t.sql.long.remove} disabled={remove.isPending} onClick={() => remove.mutate(statement.id)} />
          </li>
        ))}
      </ul>
      {list.hasNextPage && (
        <Button look="quiet" className="mt-3" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.sql.long.more}
        </Button>
      )}
    </>
  );
}

function Extent({ statement: { status, progress, format } }: { statement: Schemas['Statement'] }) {
  if (status === 'running') return <span className="figure text-text-2">{formatPercent(Math.floor(progress.part * 100) / 100)}</span>;
  if (status !== 'completed') return null;
  return (
    <span className="figure text-text-2">
      {count(progress.rows, 'row')} · {t.sql.long.formats[format]}, {formatBytes(progress.bytes)}
    </span>
  );
}
