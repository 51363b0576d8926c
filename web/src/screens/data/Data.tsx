import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Search, Upload, Users } from 'lucide-react';
import { lazy, Suspense, useDeferredValue, useEffect, useState } from 'react';
import type { Schemas } from '~/api/client';
import { datasets, me, namespaces } from '~/api/queries';
import { count, formatBytes, formatNumber } from '~/format/number';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Empty } from '~/ui/Empty';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Input } from '~/ui/Field';
import { Heads } from '~/ui/Heads';
import { Page } from '~/ui/Page';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import { Ago, Updated } from '~/ui/Time';
import { Deleted } from './Deleted';
import { type Group, groupsOf } from './groups';
import { Space, SpaceSharing } from './Space';

const Start = lazy(() => retried(() => import('~/screens/start/Start')));

type Item = Schemas['DatasetItem'];

export default function Data() {
  const search = useSearch({ from: '/shell/data' });
  const navigate = useNavigate({ from: '/data' });
  const [words, setWords] = useState(search.q ?? '');
  const [deleted, setDeleted] = useState(false);
  const q = useDeferredValue(words.trim());
  const account = useQuery(me);
  const spaces = useQuery(namespaces);
  const list = useInfiniteQuery({ ...datasets(q), placeholderData: keepPreviousData });
  const show = search.show ?? 'all';

  useEffect(() => {
    void navigate({ search: (old) => ({ ...old, q: q || undefined }), replace: true });
  }, [q, navigate]);

  const mine = account.data?.username;
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  const shown = all.filter((item) => show === 'all' || (item.username === mine) === (show === 'mine'));
  // What was found stays in the order of the search. Empty namespaces are at the end, so they are shown when all datasets are.
  const groups = q ? [{ items: shown }] : groupsOf(shown, list.hasNextPage ? [] : (spaces.data?.data ?? []).filter((one) => show === 'all' || (one.username === mine) === (show === 'mine')), spaces.data?.data ?? []);
  // A person without data gets a place for files, and nothing to search or to filter.
  const bare = list.isSuccess && all.length === 0 && !words && show === 'all';

  return (
    <Page
      title={t.data.title}
      wide
      actions={
        <>
          <Button look="quiet" className="max-sm:order-last" onClick={() => setDeleted(true)}>
            {t.data.deleted}
          </Button>
          {!bare && (
            <Link to="/upload" className={buttonClass('primary')}>
              <Upload size={16} strokeWidth={1.75} aria-hidden />
              {t.data.upload}
            </Link>
          )}
        </>
      }
    >
      <div className={cx('mb-4 flex flex-wrap items-center gap-2', bare && 'hidden')}>
        <div className="relative min-w-60 grow sm:max-w-90">
          <Search size={16} strokeWidth={1.75} aria-hidden className="pointer-events-none absolute inset-y-0 left-3 my-auto text-text-3" />
          <Input
            type="search"
            data-slash
            value={words}
            maxLength={200}
            onChange={(event) => setWords(event.target.value)}
            aria-label={t.data.search}
            placeholder={t.data.search}
            className="pl-9"
          />
        </div>
        <Segments
          label={t.data.show}
          value={show}
          options={[
            ['all', t.data.all],
            ['mine', t.data.mine],
            ['shared', t.data.shared],
          ]}
          onChange={(value) => void navigate({ search: (old) => ({ ...old, show: value === 'all' ? undefined : value }), replace: true })}
        />
      </div>
      {list.isError ? (
        <Failure what={t.failure.what.datasets} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton table lines={8} />
      ) : shown.length === 0 ? (
        <Nothing words={q} show={show} onClear={() => setWords('')} />
      ) : (
        <>
          <List groups={groups} flat={q !== ''} mine={mine} />
          {list.hasNextPage && (
            <Button className="mt-4 self-center" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {t.common.more}
            </Button>
          )}
        </>
      )}
      <SpaceSharing of={search.sharing} mine={mine} onClose={() => void navigate({ search: (old) => ({ ...old, sharing: undefined }), replace: true })} />
      <Deleted open={deleted} onClose={() => setDeleted(false)} />
    </Page>
  );
}

function Nothing({ words, show, onClear }: { words: string; show: string; onClear: () => void }) {
  if (words) {
    return (
      <Empty icon={Search} title={t.data.none(words)} action={<Button onClick={onClear}>{t.common.clear}</Button>}>
        {t.data.noneText}
      </Empty>
    );
  }
  if (show === 'shared') {
    return (
      <Empty icon={Users} title={t.data.emptyShared.title}>
        {t.data.emptyShared.text}
      </Empty>
    );
  }
  return (
    <Suspense fallback={<Skeleton lines={4} />}>
      <Start title={t.data.empty} />
    </Suspense>
  );
}

function List({ groups, flat, mine }: { groups: Group[]; flat: boolean; mine: string | undefined }) {
  const head = t.data.columns;
  const cell = 'border-b border-line px-4 py-2.5 align-top';
  return (
    <div className="overflow-hidden rounded-md border border-line bg-surface [&_tbody:last-child_tr:last-child>*]:border-b-0">
      <table className="w-full border-separate border-spacing-0">
        <thead className="hidden text-left text-xs text-text-3 md:table-header-group">
          <Heads
            className="[&>th]:border-b [&>th]:border-line [&>th]:px-4"
            names={[head.name, { name: head.rows, right: true }, { name: head.size, right: true }, head.updated, head.role]}
          />
        </thead>
        {groups.map((group) => (
          <tbody key={group.space ? `${group.space.username}/${group.space.name}` : ''}>
            {group.space && <Space of={group.space} mine={mine} empty={group.items.length === 0} />}
            {group.items.map((item) => (
              <tr key={`${item.username}/${item.namespace}/${item.name}`} className="group relative transition-colors duration-120 hover:bg-hover">
                <td className={`${cell} w-full max-w-0`}>
                  <Link
                    to="/data/$owner/$namespace/$dataset"
                    params={{ owner: item.username, namespace: item.namespace, dataset: item.name }}
                    className="block truncate font-medium after:absolute after:inset-0 focus-visible:outline-none focus-visible:after:rounded-md focus-visible:after:outline-2 focus-visible:after:-outline-offset-2 focus-visible:after:outline-info"
                  >
                    <span className={flat ? 'font-normal text-text-3' : 'sr-only'}>{item.namespace} / </span>
                    {item.name}
                  </Link>
                  <p className={cx('truncate text-sm', item.matchedIn?.length || item.dataDescription ? 'text-text-2' : 'text-text-3')}>
                    {item.matchedIn?.length ? t.data.matchedIn(item.matchedIn.map((place) => t.data.matched[place]).join(', ')) : item.dataDescription || t.dataset.noDescription}
                  </p>
                  <Facts
                    className="mt-1 text-xs text-text-3 md:hidden"
                    of={[count(item.rowCount, 'row'), <Updated time={item.updatedAt} />, item.role !== 'owner' && t.data.sharedBy(item.username)]}
                  />
                </td>
                <td className={`${cell} hidden text-right whitespace-nowrap md:table-cell`}>{formatNumber(item.rowCount)}</td>
                <td className={`${cell} hidden text-right whitespace-nowrap text-text-2 md:table-cell`}>{sizeOf(item)}</td>
                <td className={`${cell} hidden whitespace-nowrap text-text-2 md:table-cell`}>
                  <Ago time={item.updatedAt} />
                </td>
                <td className={`${cell} hidden whitespace-nowrap md:table-cell`}>
                  <Badge tone={item.role === 'owner' ? 'plain' : 'info'}>{t.common.roles[item.role]}</Badge>
                  {item.role !== 'owner' && (
                    <span className="ml-2 inline-block max-w-50 truncate align-bottom text-sm text-text-2">
                      {t.data.sharedBy(item.username)}
                    </span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function sizeOf(item: Item): string {
  return item.byteCount === undefined ? '–' : formatBytes(item.byteCount);
}
