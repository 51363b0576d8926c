import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, type Schemas, take } from '~/api/client';

export type Connection = Schemas['Connection'];
export type Source = Schemas['Source'];
export type SourceRun = Schemas['SourceRun'];

/** How often a list is read again while a run is in progress, and otherwise: runs also start by a schedule. */
const often = 2000;
const seldom = 30_000;

/** Whether a run has not ended. */
export const going = (run: SourceRun | undefined) => run?.status === 'queued' || run?.status === 'running';

export const connections = infiniteQueryOptions({
  queryKey: ['connections'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/connections', { params: { query: { limit: 100, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
});

export const sources = infiniteQueryOptions({
  queryKey: ['sources'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/sources', { params: { query: { limit: 100, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
  refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.data.some((one) => going(one.lastRun))) ? often : seldom),
});

export const source = (id: string) =>
  queryOptions({
    queryKey: ['sources', id],
    queryFn: ({ signal }) => take(api.GET('/sources/{sourceId}', { params: { path: { sourceId: id } }, signal })),
    refetchInterval: ({ state }) => (going(state.data?.lastRun) ? often : seldom),
  });

/** The runs of a source. The key has its last run, so that the list is read again when that has changed. */
export const runs = (id: string, last: SourceRun | undefined) =>
  infiniteQueryOptions({
    queryKey: ['sources', id, 'runs', last?.id, last?.status],
    queryFn: ({ signal, pageParam }) =>
      take(api.GET('/sources/{sourceId}/runs', { params: { path: { sourceId: id }, query: { limit: 50, ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: '',
    getNextPageParam: (lastPage) => lastPage.nextCursor,
    placeholderData: (old) => old,
  });

/** The first files of a connection under a prefix. */
export const files = (connection: string, prefix: string) =>
  queryOptions({
    queryKey: ['connections', connection, 'files', prefix],
    queryFn: ({ signal }) => take(api.GET('/connections/{connectionId}/files', { params: { path: { connectionId: connection }, query: { limit: 100, ...(prefix && { prefix }) } }, signal })),
    retry: false,
  });

/** With whom a connection of the caller is shared. */
export const sharesOf = (connection: string) =>
  queryOptions({
    queryKey: ['connections', connection, 'shares'],
    queryFn: ({ signal }) => take(api.GET('/connections/{connectionId}/shares', { params: { path: { connectionId: connection } }, signal })),
  });

/** The name of a connection. That of somebody else begins with the owner. */
export const nameOf = ({ owner, name }: Connection) => (owner ? `${owner}/${name}` : name);

/** Where a connection leads: `acme-exports/sales at s3.eu-central-1.amazonaws.com`. */
export function addressOf({ s3, postgresql, https, iceberg }: Connection): string {
  if (s3) return `${[s3.bucket, s3.prefix].filter(Boolean).join('/')} at ${s3.endpoint.replace(/^https?:\/\//, '')}`;
  if (postgresql) return `${postgresql.database} at ${postgresql.host}${postgresql.port === 5432 ? '' : `:${postgresql.port}`}`;
  if (iceberg) return iceberg.uri.replace(/^https?:\/\//, '');
  return https?.baseUrl.replace(/^https?:\/\//, '') ?? '';
}

/** What a source loads: `orders/ *.csv`, `public.orders`, `2026/list.csv and 3 more`. */
export function contentOf({ postgresql, iceberg, prefix, pattern, paths }: Source, texts: { query: string; all: string; more: (number: number) => string }): string {
  if (iceberg) return `${iceberg.namespace}.${iceberg.table}`;
  if (paths?.[0]) return paths.length > 1 ? `${paths[0]} ${texts.more(paths.length - 1)}` : paths[0];
  if (postgresql) return postgresql.table ? `${postgresql.schema || 'public'}.${postgresql.table}` : texts.query;
  return [prefix, pattern].filter(Boolean).join(' ') || texts.all;
}
