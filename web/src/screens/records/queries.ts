import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, type Schemas, take } from '~/api/client';
import { keyOf, pathOf, type Ref } from '~/api/queries';
import { doubtsOf } from './place';

export const busy = ({ status }: Schemas['Ingestion']) => status === 'queued' || status === 'running';

/** The path parameters of the operations on one load. */
export const loadPath = (at: Ref, id: string) => ({ ...pathOf(at), ingestionId: id });

export const load = (at: Ref, id: string) =>
  queryOptions({
    queryKey: [...keyOf(at), 'ingestion', id],
    queryFn: ({ signal }) => take(api.GET('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}', { params: { path: loadPath(at, id) }, signal })),
    refetchInterval: ({ state }) => (state.data && busy(state.data) ? 1000 : false),
  });

/** The keys of the lists of records of a load begin alike. */
export const listsKey = (at: Ref, id: string) => [...keyOf(at), 'records', id] as const;

const page = (at: Ref, id: string, cursor: string, flagged: boolean, signal: AbortSignal) =>
  take(
    api.GET('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records', {
      params: { path: loadPath(at, id), query: { limit: 100, ...(flagged && { flagged }), ...(cursor && { cursor }) } },
      signal,
    }),
  );

/** The records with a field that is doubted. They change only by what a person does on this page, and a read of them is in the audit. */
export const doubted = (at: Ref, id: string) =>
  infiniteQueryOptions({
    queryKey: [...listsKey(at, id), 'doubted'],
    queryFn: ({ signal, pageParam }) => page(at, id, pageParam, true, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The other records. A page without any is left out. */
export const sure = (at: Ref, id: string) =>
  infiniteQueryOptions({
    queryKey: [...listsKey(at, id), 'sure'],
    queryFn: async ({ signal, pageParam }) => {
      for (let cursor = pageParam; ; ) {
        const found = await page(at, id, cursor, false, signal);
        const data = found.data.filter((record) => doubtsOf(record) === 0);
        if (data.length > 0 || !found.nextCursor) return { ...found, data };
        cursor = found.nextCursor;
      }
    },
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The text of the pages that the record was read from. */
export const textOf = (at: Ref, id: string, record: string) =>
  queryOptions({
    queryKey: [...keyOf(at), 'recordText', id, record],
    queryFn: ({ signal }) =>
      take(api.GET('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/text', { params: { path: { ...loadPath(at, id), recordId: record } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
