import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { CatchBoundary, Link, useParams } from '@tanstack/react-router';
import { Download, MessageSquareText, Share2 } from 'lucide-react';
import { type ComponentType, lazy, Suspense, useEffect, useRef, useState } from 'react';
import { download } from '~/api/download';
import { ApiError } from '~/api/errors';
import { dataset, listEntry, type Ref, snapshots, urlOf } from '~/api/queries';
import { count, formatBytes } from '~/format/number';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Facts } from '~/ui/Facts';
import { Failure, RouteFailure } from '~/ui/Failure';
import { Menu } from '~/ui/Menu';
import { Page, useTitle } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Ago, Updated } from '~/ui/Time';
import { say } from '~/ui/toast';
import { AddRows } from './AddRows';
import { Columns } from './Columns';
import type { Part } from './part';

const tab = (load: () => Promise<{ default: ComponentType<Part> }>) => lazy(() => retried(load));

const tabs = {
  columns: Columns as ComponentType<Part>,
  rows: tab(() => import('./Rows')),
  definition: tab(() => import('./Definition')),
  loads: tab(() => import('./Loads')),
  history: tab(() => import('./History')),
  sharing: tab(() => import('./Sharing')),
  audit: tab(() => import('./Audit')),
  settings: tab(() => import('./Settings')),
};
type Tab = keyof typeof tabs;

export default function Dataset() {
  const params = useParams({ strict: false }) as { owner: string; namespace: string; dataset: string; tab?: string };
  const ref: Ref = { owner: params.owner, namespace: params.namespace, dataset: params.dataset };
  const shown: Tab = params.tab && params.tab in tabs ? (params.tab as Tab) : 'columns';
  const head = useQuery(dataset(ref));
  const entry = useQuery(listEntry(ref));
  const history = useInfiniteQuery({ ...snapshots(ref), enabled: entry.data ? entry.data.role !== 'viewer' : false });
  const [sharing, setSharing] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  useTitle(ref.dataset);
  const where = urlOf(ref);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    void list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [shown, entry.data]);
  useEffect(() => setFailure(undefined), [where]);

  if (head.isError) {
    return (
      <Page title={ref.dataset} wide above={<Crumbs of={ref} />}>
        <Failure error={head.error} onRetry={() => void head.refetch()} />
      </Page>
    );
  }
  const size = head.data?.metadata.byteCount;
  const attached = history.data?.pages[0]?.data.some(({ operation }) => operation === 'attach') ?? false;
  // Nothing is shown before the role is known: an owner must not meet the page of a viewer, nor buttons that the service refuses.
  const part: Part | undefined =
    head.data && entry.data && (entry.data.role === 'viewer' || !history.isPending)
      ? { at: { owner: head.data.dataset.owner, namespace: head.data.dataset.namespace, dataset: head.data.dataset.name }, metadata: head.data.metadata, role: entry.data.role, attached }
      : undefined;
  // Names in the address may be written in other letters than those of the dataset.
  const at = part?.at ?? ref;
  // The tabs of an owner are the last ones, so that the others stay where they are when those go.
  const visible = (Object.keys(tabs) as Tab[]).filter((name) => !entry.data || entry.data.role === 'owner' || !['audit', 'settings'].includes(name));
  // The list does not have it if it went between the two requests.
  const roleFault = entry.error ?? (entry.data === null && !entry.isFetching ? new ApiError({ code: 'NOT_FOUND', message: t.dataset.notListed }) : undefined);

  const exportAs = (format: 'csv' | 'ndjson' | 'parquet', safe = false) => {
    setFailure(undefined);
    say(t.dataset.exporting);
    download(`/data/${where}/export?format=${format}${safe ? '&escapeFormulas=true' : ''}`, `${ref.dataset}.${format}`).catch(setFailure);
  };
  const Shown = tabs[shown];
  return (
    <Page
      title={ref.dataset}
      wide
      above={<Crumbs of={ref} />}
      lead={
        <div className="flex min-h-5 flex-wrap items-center gap-x-3 gap-y-1 text-sm">
          <Facts
            className="figure"
            of={[
              head.data && count(head.data.metadata.rowCount, 'row'),
              head.data && count(head.data.metadata.columns.length, 'column'),
              size !== undefined && formatBytes(size),
              entry.data && <Updated time={entry.data.updatedAt} />,
              head.data?.metadata.refreshedAt && (
                <span title={t.dataset.refreshedTitle}>
                  {t.dataset.refreshed} <Ago time={head.data.metadata.refreshedAt} />
                </span>
              ),
              head.data?.metadata.engine === 'trino' && <span title={t.dataset.onTrinoTitle}>{t.dataset.onTrino}</span>,
            ]}
          />
          {entry.data && entry.data.role !== 'owner' && <Badge tone="info">{t.common.roles[entry.data.role]}</Badge>}
        </div>
      }
      actions={
        // Without icons all buttons fit in one line of a phone. Until the role is known the buttons take their place and cannot be clicked, so that none moves under the pointer.
        <div className={cx('contents max-sm:[&_svg]:hidden', !part && 'invisible')}>
          {part?.metadata.rowCount === 0 ? (
            <Button icon={MessageSquareText} disabled title={t.dataset.noRows}>
              {t.dataset.ask}
            </Button>
          ) : (
            <Link to="/" search={{ about: `${at.owner}/${at.namespace}/${at.dataset}` }} aria-label={t.dataset.askAbout(ref.dataset)} className={buttonClass('primary')}>
              <MessageSquareText size={16} strokeWidth={1.75} aria-hidden />
              {t.dataset.ask}
            </Link>
          )}
          {part?.role !== 'viewer' && !part?.attached && <AddRows to={at} look="plain" />}
          <Menu
            className={buttonClass('plain')}
            disabled={part?.metadata.rowCount === 0}
            items={[
              { label: t.dataset.formats.csv, onSelect: () => exportAs('csv') },
              { label: t.dataset.formats.csvSafe, onSelect: () => exportAs('csv', true) },
              { label: t.dataset.formats.ndjson, onSelect: () => exportAs('ndjson') },
              { label: t.dataset.formats.parquet, onSelect: () => exportAs('parquet') },
            ]}
          >
            <Download size={16} strokeWidth={1.75} aria-hidden />
            {t.dataset.export}
          </Menu>
          {(!part || part.role === 'owner') && (
            <Button icon={Share2} disabled={shown === 'sharing'} onClick={() => setSharing(true)}>
              {t.dataset.share}
            </Button>
          )}
        </div>
      }
      below={
        <nav aria-label={t.dataset.tabsLabel} className="fades -mx-4 overflow-x-auto overflow-y-hidden border-b border-line px-4 sm:-mx-8 sm:px-8">
          <ul ref={list} className="flex w-max gap-6 pr-4 sm:pr-8">
            {visible.map((name) => (
              <li key={name}>
                <Link
                  to="/data/$owner/$namespace/$dataset/$tab"
                  params={{ ...ref, tab: name }}
                  aria-current={shown === name ? 'page' : undefined}
                  className={cx(
                    '-mb-px flex h-10 items-center border-b-2 font-medium whitespace-nowrap transition-colors duration-120 focus-visible:-outline-offset-2',
                    shown === name ? 'border-accent text-text' : 'border-transparent text-text-2 hover:text-text',
                  )}
                >
                  {t.dataset.tabs[name]}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      }
    >
      <div className="flex min-h-0 grow flex-col pt-6">
        {failure !== undefined && <Failure error={failure} className="mb-4" />}
        {roleFault && <Failure error={roleFault} onRetry={() => void entry.refetch()} className="mb-4" />}
        {part ? (
          <CatchBoundary getResetKey={() => where + shown} errorComponent={RouteFailure}>
            <Suspense fallback={<Skeleton />}>
              <Shown key={where} {...part} />
            </Suspense>
          </CatchBoundary>
        ) : (
          !roleFault && <Skeleton />
        )}
      </div>
      <Dialog open={sharing} onClose={() => setSharing(false)} title={t.dataset.sharing.title(ref.dataset)}>
        {part && (
          <Suspense fallback={<Skeleton lines={3} />}>
            <tabs.sharing {...part} />
          </Suspense>
        )}
      </Dialog>
    </Page>
  );
}

function Crumbs({ of }: { of: Ref }) {
  return (
    <span className="[overflow-wrap:anywhere]">
      <Link to="/data" className="hover:text-text hover:underline">
        {t.data.title}
      </Link>
      {' / '}
      {of.owner}
      {' / '}
      {of.namespace}
    </span>
  );
}
