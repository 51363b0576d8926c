import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { FileInput } from 'lucide-react';
import { useState } from 'react';
import { api, type Schemas, take } from '~/api/client';
import { ingestions, keyOf, pathOf } from '~/api/queries';
import { count } from '~/format/number';
import { formatAgo, formatExact } from '~/format/time';
import { few, t } from '~/texts';
import { Badge, type Tone } from '~/ui/Badge';
import { Bar } from '~/ui/Bar';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Empty } from '~/ui/Empty';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { AddRows } from './AddRows';
import type { Part } from './part';
import { SetAside } from './SetAside';

const texts = t.dataset.loads;
type Ingestion = Schemas['Ingestion'];

const tones: Record<Ingestion['status'], Tone> = { queued: 'plain', running: 'info', waiting: 'warn', completed: 'ok', failed: 'danger', cancelled: 'plain' };
const busy = (one: Ingestion) => one.status === 'queued' || one.status === 'running';

export default function Loads({ at, role, attached }: Part) {
  const queries = useQueryClient();
  const [aside, setAside] = useState<string | null>(null);
  const list = useInfiniteQuery({ ...ingestions(at), refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.data.some(busy)) ? 2000 : false) });
  const refresh = () => queries.invalidateQueries({ queryKey: keyOf(at) });
  const retry = useMutation({
    mutationFn: (one: Ingestion) =>
      take(
        api.POST('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/retry', {
          params: { path: { ...pathOf(at), ingestionId: one.id } },
          body: one.status === 'waiting' ? { accept: ['all'] } : {},
        }),
      ),
    onSuccess: refresh,
  });
  const cancel = useMutation({
    mutationFn: (one: Ingestion) => take(api.POST('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/cancel', { params: { path: { ...pathOf(at), ingestionId: one.id } } })),
    onSuccess: refresh,
  });
  if (list.isError) return <Failure what={t.failure.what.loads} error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton table className="max-w-190" />;
  const all = list.data.pages.flatMap((page) => page.data).filter((one) => !one.dryRun);
  if (all.length === 0) {
    return (
      <Empty icon={FileInput} title={texts.empty} action={role !== 'viewer' && !attached && <AddRows to={at} />}>
        {texts.emptyText}
      </Empty>
    );
  }
  const failed = retry.error ?? cancel.error;
  return (
    <div className="max-w-190">
      {failed && <Failure error={failed} className="mb-4" />}
      <ol className="divide-y divide-line rounded-md border border-line bg-surface">
        {all.map((one) => (
          <li key={one.id} className="px-4 py-3">
            <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
              <span className="min-w-0 font-medium [overflow-wrap:anywhere]">{one.filenames ? few(one.filenames) : texts[one.mode]}</span>
              <Badge tone={tones[one.status]}>{texts.status[one.status]}</Badge>
              <span className="grow" />
              {role !== 'viewer' && ['failed', 'cancelled', 'waiting'].includes(one.status) && (
                <Button busy={retry.isPending && retry.variables.id === one.id} onClick={() => retry.mutate(one)}>
                  {one.status === 'waiting' ? texts.accept : texts.retry}
                </Button>
              )}
              {role !== 'viewer' && (busy(one) || one.status === 'waiting') && (
                <Button look="quiet" busy={cancel.isPending && cancel.variables.id === one.id} onClick={() => cancel.mutate(one)}>
                  {texts.cancel}
                </Button>
              )}
            </div>
            <Facts
              className="mt-0.5 text-sm text-text-3 figure"
              of={[
                one.filenames && texts[one.mode],
                <time dateTime={one.createdAt} title={formatAgo(one.createdAt)}>
                  {formatExact(one.createdAt)}
                </time>,
                one.fileIds.length > 1 && count(one.fileIds.length, 'file'),
                count(one.progress.rowsDone, 'row'),
                one.progress.rowsSetAside === 0 ? one.status === 'completed' && texts.noneAside : (
                  <button type="button" onClick={() => setAside(one.id)} className="text-warn underline underline-offset-2">
                    {texts.setAside(count(one.progress.rowsSetAside, 'row'))}
                  </button>
                ),
                one.documents && (
                  <Link to="/data/$owner/$namespace/$dataset/loads/$ingestion" params={{ ...at, ingestion: one.id }} className="text-accent underline underline-offset-2">
                    {t.records.link}
                  </Link>
                ),
              ]}
            />
            {busy(one) && <Bar className="mt-2" label={one.progress.phase} share={one.progress.bytesTotal ? one.progress.bytesDone / one.progress.bytesTotal : 0} />}
            {one.error && <p className="mt-2 text-sm text-danger [overflow-wrap:anywhere]">{one.error.message}</p>}
            {one.status === 'waiting' &&
              one.doubts?.map((doubt, index) => (
                <p key={index} className="mt-2 text-sm text-warn [overflow-wrap:anywhere]">
                  {doubt.message}
                </p>
              ))}
            {one.warnings?.map((warning, index) => (
              <p key={index} className="mt-2 text-sm text-text-2 [overflow-wrap:anywhere]">
                {warning}
              </p>
            ))}
          </li>
        ))}
      </ol>
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
      <Dialog open={aside !== null} onClose={() => setAside(null)} title={texts.setAsideTitle} size="lg">
        {aside && <SetAside at={at} ingestion={aside} />}
      </Dialog>
    </div>
  );
}
