import { useInfiniteQuery } from '@tanstack/react-query';
import { ScrollText } from 'lucide-react';
import { audit } from '~/api/queries';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Heads } from '~/ui/Heads';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import type { Part } from './part';

const texts = t.dataset.audit;

/** The service lists what happened to all of a person's data; this shows what concerns one dataset. */
export default function Audit({ at, role }: Part) {
  const list = useInfiniteQuery({ ...audit, enabled: role === 'owner' });
  if (role !== 'owner') return <p className="text-text-2">{texts.ownerOnly}</p>;
  if (list.isError) return <Failure error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton />;
  const same = (a: string | undefined, b: string) => a?.toLowerCase() === b.toLowerCase();
  const shown = list.data.pages
    .flatMap((page) => page.data)
    .filter((entry) => same(entry.target.namespace, at.namespace) && (entry.target.dataset === undefined || same(entry.target.dataset, at.dataset)));
  return (
    <div>
      {shown.length === 0 ? (
        <Empty icon={ScrollText} title={texts.empty} />
      ) : (
        <div className="overflow-x-auto rounded-md border border-line bg-surface">
          <table className="w-full text-sm">
            <thead className="text-left text-xs text-text-3">
              <Heads className="[&>th]:px-4" names={[texts.when, texts.who, { name: texts.what, grow: true }, { name: texts.from, wide: true }]} />
            </thead>
            <tbody className="[&_td]:border-t [&_td]:border-line [&_td]:px-4 [&_td]:py-2">
              {shown.map((entry) => (
                <tr key={entry.id}>
                  <td className="whitespace-nowrap text-text-2">
                    <Ago time={entry.at} />
                  </td>
                  <td className="whitespace-nowrap">{entry.username}</td>
                  <td className="[overflow-wrap:anywhere]">
                    <span className="font-medium">{entry.action}</span> <span className="text-text-2">{entry.detail}</span>
                  </td>
                  <td className="whitespace-nowrap text-text-3 max-sm:hidden">{entry.address}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {texts.older}
        </Button>
      )}
    </div>
  );
}
