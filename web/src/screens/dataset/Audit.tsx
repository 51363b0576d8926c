import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { ScrollText } from 'lucide-react';
import { useEffect, useState } from 'react';
import { audit } from '~/api/queries';
import { formatAgo, formatExact, formatShort } from '~/format/time';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Heads } from '~/ui/Heads';
import { Skeleton } from '~/ui/Skeleton';
import { actionName, detailOf } from './events';
import type { Part } from './part';

const texts = t.dataset.audit;
/** What happened to the dataset, without reads unless they are asked for. */
export default function Audit({ at, role }: Part) {
  const [withReads, setWithReads] = useState(false);
  const list = useInfiniteQuery({ ...audit(at, withReads), enabled: role === 'owner', placeholderData: keepPreviousData });
  const shown = (list.data?.pages ?? []).flatMap((page) => page.data);
  // The service searches a part of its log at a time: what it found there may be nothing.
  const { hasNextPage, isFetching, isError, fetchNextPage } = list;
  const further = shown.length === 0 && hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (further) void fetchNextPage();
  }, [further, fetchNextPage]);
  if (role !== 'owner') return <p className="text-text-2">{texts.ownerOnly}</p>;
  if (list.isError) return <Failure what={t.failure.what.audit} error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton table />;
  return (
    <div>
      <label className="mb-3 flex w-fit items-center gap-2 text-sm text-text-2 pointer-coarse:min-h-11">
        <input type="checkbox" checked={withReads} onChange={(event) => setWithReads(event.target.checked)} className="accent-accent" />
        {texts.reads}
      </label>
      {shown.length === 0 && (list.isFetchingNextPage || list.hasNextPage) ? (
        <Skeleton table />
      ) : shown.length === 0 ? (
        <Empty icon={ScrollText} title={withReads ? texts.empty : texts.noChanges} />
      ) : (
        <div className="overflow-x-auto rounded-md border border-line bg-surface">
          <table className="w-full text-sm">
            <thead className="text-left text-xs text-text-3">
              <Heads className="[&>th]:px-4" names={[texts.when, texts.who, { name: texts.what, grow: true }, { name: texts.from, wide: true }]} />
            </thead>
            <tbody className="[&_td]:border-t [&_td]:border-line [&_td]:px-4 [&_td]:py-2">
              {shown.map((entry) => (
                <tr key={entry.id}>
                  <td className="text-text-2 figure sm:whitespace-nowrap">
                    <time dateTime={entry.at} title={formatAgo(entry.at)} className="block">
                      <span className="max-sm:hidden">{formatExact(entry.at).replace(' UTC', '')}</span>
                      <span className="whitespace-nowrap sm:hidden">{formatShort(entry.at)}</span>
                    </time>
                  </td>
                  <td className="whitespace-nowrap">{entry.username}</td>
                  <td className="[overflow-wrap:anywhere]">
                    <span className="font-medium" title={entry.action}>
                      {actionName(entry.action)}
                    </span>{' '}
                    <span className="text-text-2">{detailOf(entry)}</span>
                  </td>
                  <td className="whitespace-nowrap text-text-3 max-sm:hidden">{entry.address}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.hasNextPage && shown.length > 0 && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {texts.older}
        </Button>
      )}
    </div>
  );
}
