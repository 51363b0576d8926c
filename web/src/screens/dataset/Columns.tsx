import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ChevronRight, Columns3, Search } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { Schemas } from '~/api/client';
import { ApiError } from '~/api/errors';
import { profile } from '~/api/queries';
import { formatNumber, formatPercent } from '~/format/number';
import { formatCell, placesOf, typeName } from '~/format/value';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { cx } from '~/ui/cx';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Input, Select } from '~/ui/Field';
import { AddRows } from './AddRows';
import { Key } from './Key';
import type { Part } from './part';
import { Picture } from './Picture';

type Order = keyof typeof t.dataset.column.orders;
type Known = Schemas['ColumnProfile'];

const texts = t.dataset.column;
const layout = 'grid grid-cols-[minmax(0,1fr)_96px] gap-x-4 gap-y-1 lg:grid-cols-[minmax(140px,2fr)_minmax(140px,3fr)_minmax(186px,260px)_72px_76px]';

export function Columns({ at, metadata, role, attached }: Part) {
  const waiting = metadata.rowCount > 0;
  const stats = useQuery({
    ...profile(at),
    enabled: waiting,
    // The first profile comes a moment after the first rows; whoever waits for it needs no reload.
    refetchInterval: ({ state }) => (waiting && isAbsent(state.error) && state.errorUpdateCount < 40 ? 4000 : false),
  });
  const [words, setWords] = useState('');
  const [order, setOrder] = useState<Order>('given');
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const missing = isAbsent(stats.error);
  const writable = role !== 'viewer' && !attached;
  const known = new Map((stats.data?.columns ?? []).map((column) => [column.name, column]));
  const keys = new Set((stats.data?.candidateKeys ?? []).flatMap((key) => (key.length === 1 ? key : [])));
  const declared = new Set(metadata.key?.columns.map((name) => name.toLowerCase()));

  if (metadata.columns.length === 0) {
    return (
      <Empty
        icon={Columns3}
        title={texts.emptyTitle}
        action={
          writable && (
            <>
              <AddRows to={at} />
              <Key at={at} metadata={metadata} role={role} attached={attached} unique={keys} />
            </>
          )
        }
      >
        {texts.emptyText}
      </Empty>
    );
  }

  const nulls = (name: string) => known.get(name)?.nulls ?? 0;
  const shown = metadata.columns
    .filter((column) => column.name.toLowerCase().includes(words.trim().toLowerCase()))
    .toSorted((a, b) => (order === 'nulls' ? nulls(b.name) - nulls(a.name) : order === 'name' ? a.name.localeCompare(b.name, 'en') : 0));
  const toggle = (name: string) => setOpen((old) => (old.has(name) ? new Set([...old].filter((one) => one !== name)) : new Set([...old, name])));

  return (
    <>
      {metadata.dataDescription && <p className="mb-6 max-w-190 text-text-2 whitespace-pre-line [overflow-wrap:anywhere]">{metadata.dataDescription}</p>}
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <div className="relative grow max-sm:w-full sm:max-w-70">
          <Search size={16} strokeWidth={1.75} aria-hidden className="pointer-events-none absolute inset-y-0 left-3 my-auto text-text-3" />
          <Input type="search" data-slash value={words} onChange={(event) => setWords(event.target.value)} aria-label={texts.filter} placeholder={texts.filter} className="pl-9" />
        </div>
        <Select aria-label={texts.order} value={order} onChange={(event) => setOrder(event.target.value as Order)} fit className="max-sm:min-w-0 max-sm:flex-1">
          {(Object.keys(texts.orders) as Order[]).map((name) => (
            <option key={name} value={name}>
              {texts.orders[name]}
            </option>
          ))}
        </Select>
        <Key at={at} metadata={metadata} role={role} attached={attached} unique={keys} />
        {(missing || (stats.data && stats.data.snapshotId !== metadata.snapshotId)) && (
          <p className="text-sm text-text-3">{missing ? texts.noProfile : texts.older}</p>
        )}
      </div>
      {stats.isError && !missing && <Failure what={t.failure.what.profile} error={stats.error} onRetry={() => void stats.refetch()} className="mb-4" />}
      <div className="overflow-hidden rounded-md border border-line bg-surface">
        <div aria-hidden className={cx(layout, 'border-b border-line py-2 pr-4 pl-10 text-xs font-medium text-text-3 max-lg:hidden')}>
          <span>{texts.name}</span>
          <span>{texts.meaning}</span>
          <span>{texts.values}</span>
          <span className="text-right">{texts.missing}</span>
          <span className="text-right">{texts.distinct}</span>
        </div>
        <ul className="divide-y divide-line">
          {shown.map((column) => {
            const about = known.get(column.name);
            const isOpen = open.has(column.name);
            return (
              <li key={column.name}>
                <div className="relative">
                  <button
                    type="button"
                    aria-expanded={isOpen}
                    disabled={!about}
                    onClick={() => toggle(column.name)}
                    className={cx(layout, 'relative w-full items-center py-2 pr-4 pl-10 text-left transition-colors duration-120 enabled:hover:bg-hover focus-visible:-outline-offset-2')}
                  >
                    {about && (
                      <ChevronRight
                        size={16}
                        strokeWidth={1.75}
                        aria-hidden
                        className={cx('absolute top-3 left-4 text-text-3 transition-transform duration-120', isOpen && 'rotate-90')}
                      />
                    )}
                    <span className="min-w-0 max-lg:order-1">
                      <span className="flex items-center gap-2 font-medium">
                        <span className="truncate">{column.name}</span>
                        {declared.has(column.name.toLowerCase()) && <Badge title={t.dataset.key.markTitle}>{t.dataset.key.mark}</Badge>}
                      </span>
                      <span className="block truncate text-xs text-text-3" title={column.type}>
                        {typeName(column.type)}
                        {about && <span className="lg:hidden"> · {keys.has(column.name) ? texts.key : texts.distinctOf(distinct(about))}</span>}
                      </span>
                    </span>
                    <span className={cx('line-clamp-2 min-w-0 text-sm [overflow-wrap:anywhere] max-lg:order-3 max-lg:col-span-2', column.description ? 'text-text-2' : 'text-text-3 max-lg:hidden')}>
                      {column.description || (writable ? '' : '–')}
                    </span>
                    <span className="min-w-0 max-lg:order-4 max-lg:col-span-2">{about && stats.data ? <Picture column={about} rows={stats.data.rowCount} /> : stats.isLoading && <span aria-hidden className="skeleton block h-4 w-4/5" />}</span>
                    <span className="text-right text-sm figure max-lg:order-2">{about && stats.data && <Missing share={stats.data.rowCount ? about.nulls / stats.data.rowCount : 0} />}</span>
                    <span className="text-right text-sm text-text-2 figure max-lg:hidden">
                      {about && (keys.has(column.name) ? <span title={texts.keyTitle}>{texts.key}</span> : distinct(about))}
                    </span>
                  </button>
                  {writable && !column.description && (
                    // A button must not contain a link, so the link lies over the place of the meaning.
                    <div className={cx(layout, 'pointer-events-none absolute inset-0 items-center py-2 pr-4 pl-10 max-lg:hidden')}>
                      <Link
                        to="/data/$owner/$namespace/$dataset/$tab"
                        params={{ ...at, tab: 'definition' }}
                        aria-label={texts.describeOf(column.name)}
                        className="pointer-events-auto col-start-2 justify-self-start text-sm text-text-3 underline underline-offset-2 hover:text-text"
                      >
                        {texts.describe}
                      </Link>
                    </div>
                  )}
                </div>
                {isOpen && about && stats.data && <Details column={about} rows={stats.data.rowCount} />}
              </li>
            );
          })}
        </ul>
        {shown.length === 0 && <p className="px-4 py-8 text-center text-text-2">{texts.noMatch}</p>}
      </div>
    </>
  );
}

function distinct(column: Known): string {
  return `${column.distinctExact ? '' : texts.about}${formatNumber(column.distinct)}`;
}

function isAbsent(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'NOT_FOUND';
}

function Missing({ share }: { share: number }) {
  if (share === 0) return <span className="text-text-3 max-lg:hidden">{texts.none}</span>;
  return (
    <span className={cx('inline-flex flex-col items-end gap-1', share > 0.5 ? 'text-warn' : 'text-text-2')}>
      <span>
        {formatPercent(share)} <span className="lg:hidden">{texts.missing.toLowerCase()}</span>
      </span>
      <span aria-hidden className="h-1 w-14 overflow-hidden rounded-full bg-track">
        <span className={cx('block h-full rounded-full', share > 0.5 ? 'bg-warn' : 'bg-control')} style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}

function Details({ column, rows }: { column: Known; rows: number }) {
  const places = placesOf(column.type, [column.min, column.max, ...(column.quartiles ?? []), ...column.examples, ...column.topValues.map((one) => one.value)]);
  const show = (value: unknown) => formatCell(value, column.type, column.name, places);
  const facts: [string, string][] = [[texts.details.type, typeName(column.type)]];
  if (column.min !== undefined && column.min !== null) facts.push([texts.details.min, show(column.min)]);
  if (column.max !== undefined && column.max !== null) facts.push([texts.details.max, show(column.max)]);
  if (column.mean !== undefined) facts.push([texts.details.mean, formatNumber(Number(Math.abs(column.mean) >= 1 ? column.mean.toFixed(2) : column.mean.toPrecision(3)))]);
  if (column.quartiles?.length) facts.push([texts.details.quartiles, column.quartiles.map(show).join(', ')]);
  if (column.shortest !== undefined && column.longest !== undefined) facts.push([texts.details.length, texts.details.lengths(formatNumber(column.shortest), formatNumber(column.longest))]);
  if (column.shapes?.length) facts.push([texts.details.shapes, column.shapes.map((one) => `${one.shape} (${formatPercent(one.share)})`).join(', ')]);
  if (column.examples.length) facts.push([texts.details.examples, column.examples.map(show).join(', ')]);
  const most = column.topValues[0]?.count ?? 1;
  // A column near the lower edge would open where nobody sees it.
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // In braces: newer browsers return a promise, which is no way to clean up.
    box.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <div ref={box} className="appear grid gap-x-8 gap-y-4 border-t border-line bg-canvas py-4 pr-4 pl-10 md:grid-cols-2">
      <dl className="grid grid-cols-[112px_minmax(0,1fr)] content-start gap-x-4 gap-y-1 text-sm">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-text-3">{name}</dt>
            <dd dir="auto" className="line-clamp-3 figure [overflow-wrap:anywhere]">
              {value}
            </dd>
          </div>
        ))}
      </dl>
      {column.topValues.length > 0 && most > 1 && (
        <div>
          <p className="mb-1 text-sm text-text-3">{texts.details.top}</p>
          <ul className="text-sm">
            {column.topValues.map((one, index) => (
              <li key={index} className="relative flex h-6 items-center justify-between gap-4 overflow-hidden rounded-sm px-2">
                <span aria-hidden className="absolute inset-y-0.5 left-0 rounded-sm bg-accent-soft" style={{ width: `${(one.count / rows) * 100}%` }} />
                <span dir="auto" className={cx('relative truncate', one.value === null && 'text-text-3')}>
                  {one.value === null ? t.grid.nothing : show(one.value) || '""'}
                </span>
                <span className="relative shrink-0 text-text-2 figure" title={formatPercent(one.count / rows)}>
                  {formatNumber(one.count)}
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {(column.bins?.length ?? 0) > 1 && <Picture column={column} rows={rows} large />}
    </div>
  );
}
