import { useInfiniteQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { api, take } from '~/api/client';
import { download } from '~/api/download';
import { keyOf, pathOf, type Ref, urlOf } from '~/api/queries';
import { formatNumber } from '~/format/number';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Failure } from '~/ui/Failure';
import { Heads } from '~/ui/Heads';
import { Skeleton } from '~/ui/Skeleton';

const texts = t.dataset.loads;

/** The rows that a load left out, each with its place in the file and the reason. */
export function SetAside({ at, ingestion }: { at: Ref; ingestion: string }) {
  const [failure, setFailure] = useState<unknown>();
  const list = useInfiniteQuery({
    queryKey: [...keyOf(at), 'setAside', ingestion],
    queryFn: ({ signal, pageParam }) =>
      take(
        api.GET('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/setAside', {
          params: { path: { ...pathOf(at), ingestionId: ingestion }, query: { limit: 100, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
  });
  if (list.isError) return <Failure what={t.failure.what.setAside} error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton lines={4} />;
  const rows = list.data.pages.flatMap((page) => page.data);
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
        <p className="text-text-2">{texts.setAsideText}</p>
        <Button icon={Download} onClick={() => download(`/data/${urlOf(at)}/ingestions/${ingestion}/setAside/export?escapeFormulas=true`, 'set-aside.csv').catch(setFailure)}>
          {texts.download}
        </Button>
      </div>
      {failure !== undefined && <Failure error={failure} className="mb-3" />}
      <div className="max-h-100 overflow-auto rounded-md border border-line" tabIndex={0} role="region" aria-label={texts.setAsideTitle}>
        <table className="w-full text-sm">
          <thead className="sticky top-0 bg-surface text-left text-xs text-text-3">
            <Heads className="[&>th]:px-3" names={[texts.file, { name: texts.row, right: true }, { name: texts.reason, grow: true }]} />
          </thead>
          <tbody className="[&_td]:border-t [&_td]:border-line [&_td]:px-3 [&_td]:py-1.5 [&_td]:align-top">
            {rows.map((row, index) => (
              <tr key={index}>
                <td className="max-w-50 truncate" title={row.file}>
                  {row.file}
                </td>
                <td className="text-right">{formatNumber(row.row)}</td>
                <td dir="auto" className="[overflow-wrap:anywhere]">
                  {row.reason}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {list.hasNextPage && (
        <Button className="mt-3" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
    </>
  );
}
