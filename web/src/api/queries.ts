import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, type Schemas, take, takeWith } from './client';

export type Ref = { owner: string; namespace: string; dataset: string };

/** The path parameters of the operations on one dataset. */
export function pathOf(ref: Ref) {
  return { username: ref.owner, namespace: ref.namespace, datasetName: ref.dataset };
}

/** The part of an address that names a dataset. */
export function urlOf(ref: Ref): string {
  return [ref.owner, ref.namespace, ref.dataset].map(encodeURIComponent).join('/');
}

/** Every key of a dataset begins alike, so that a change can invalidate all that depends on it. */
export const keyOf = (ref: Ref) => ['dataset', ref.owner, ref.namespace, ref.dataset] as const;

export const me = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => take(api.GET('/user/me', { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export const datasets = (q: string) =>
  infiniteQueryOptions({
    queryKey: ['datasets', q],
    queryFn: ({ signal, pageParam }) =>
      take(api.GET('/schema/datasets/all', { params: { query: { limit: 100, ...(q && { q }), ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
  });

export const namespaces = queryOptions({
  queryKey: ['namespaces'],
  queryFn: ({ signal }) => take(api.GET('/schema/namespaces/all', { params: { query: { limit: 100 } }, signal })),
});

export const conversations = queryOptions({
  queryKey: ['conversations'],
  queryFn: ({ signal }) => take(api.GET('/query/conversations', { params: { query: { limit: 50 } }, signal })),
});

/** The long statements of the caller, newest first. Those that have not ended change by themselves. */
export const longStatements = infiniteQueryOptions({
  queryKey: ['statements'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/query/statements', { params: { query: { limit: 50, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
  refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.data.some(going)) ? 2000 : false),
});

/** Whether a long statement has not ended. */
export const going = ({ status }: Schemas['Statement']) => status === 'queued' || status === 'running';

export const longStatement = (id: string) =>
  queryOptions({
    queryKey: ['statement', id],
    queryFn: ({ signal }) => take(api.GET('/query/statements/{statementId}', { params: { path: { statementId: id } }, signal })),
    refetchInterval: ({ state }) => (state.data && going(state.data) ? 1000 : false),
  });

export const pieces = (id: string) =>
  queryOptions({
    queryKey: ['statement', id, 'pieces'],
    queryFn: ({ signal }) => take(api.GET('/query/statements/{statementId}/pieces', { params: { path: { statementId: id } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const statementRows = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['statement', id, 'rows'],
    queryFn: ({ signal, pageParam }) =>
      take(api.GET('/query/statements/{statementId}/rows', { params: { path: { statementId: id }, query: { limit: 1000, ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
  });

export const dataset = (ref: Ref) =>
  queryOptions({
    queryKey: [...keyOf(ref), 'head'],
    queryFn: ({ signal }) => take(api.GET('/data/{username}/{namespace}/{datasetName}', { params: { path: pathOf(ref) }, signal })),
  });

/** The entry of the list has what the dataset itself does not say: the caller's role, size and dates. */
export const listEntry = (ref: Ref) =>
  queryOptions({
    queryKey: [...keyOf(ref), 'entry'],
    queryFn: async ({ signal }) => {
      let cursor = '';
      for (;;) {
        const page = await take(
          api.GET('/schema/{username}/{namespace}/datasets', {
            params: { path: { username: ref.owner, namespace: ref.namespace }, query: { limit: 100, ...(cursor && { cursor }) } },
            signal,
          }),
        );
        const found = page.data.find((entry) => entry.name.toLowerCase() === ref.dataset.toLowerCase());
        if (found || !page.nextCursor) return found ?? null;
        cursor = page.nextCursor;
      }
    },
  });

export const profile = (ref: Ref) =>
  queryOptions({
    queryKey: [...keyOf(ref), 'profile'],
    queryFn: ({ signal }) => take(api.GET('/data/{username}/{namespace}/{datasetName}/profile', { params: { path: pathOf(ref) }, signal })),
  });

export const rows = (ref: Ref) =>
  infiniteQueryOptions({
    queryKey: [...keyOf(ref), 'rows'],
    queryFn: ({ signal, pageParam }) =>
      take(
        api.GET('/data/{username}/{namespace}/{datasetName}/rows', {
          params: { path: pathOf(ref), query: { limit: 100, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    staleTime: Number.POSITIVE_INFINITY,
  });

export const definition = (ref: Ref) =>
  queryOptions({
    queryKey: [...keyOf(ref), 'definition'],
    queryFn: ({ signal }) =>
      takeWith(api.GET('/data/{username}/{namespace}/{datasetName}/inferDefinition', { params: { path: pathOf(ref) }, signal }), 'ETag'),
  });

export const semantics = (ref: Ref) =>
  queryOptions({
    queryKey: [...keyOf(ref), 'semantics'],
    queryFn: ({ signal }) =>
      takeWith(api.GET('/data/{username}/{namespace}/{datasetName}/semantics', { params: { path: pathOf(ref) }, signal }), 'ETag'),
  });

export const snapshots = (ref: Ref) =>
  infiniteQueryOptions({
    queryKey: [...keyOf(ref), 'snapshots'],
    queryFn: ({ signal, pageParam }) =>
      take(
        api.GET('/data/{username}/{namespace}/{datasetName}/snapshots', {
          params: { path: pathOf(ref), query: { limit: 50, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
  });

export const ingestions = (ref: Ref) =>
  infiniteQueryOptions({
    queryKey: [...keyOf(ref), 'ingestions'],
    queryFn: ({ signal, pageParam }) =>
      take(
        api.GET('/data/{username}/{namespace}/{datasetName}/ingestions', {
          params: { path: pathOf(ref), query: { limit: 50, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
  });

export const shares = (ref: Ref) =>
  queryOptions({
    queryKey: [...keyOf(ref), 'shares'],
    queryFn: ({ signal }) =>
      take(api.GET('/permissions/datasets/{username}/{namespace}/{datasetName}/shares', { params: { path: pathOf(ref) }, signal })),
  });

/** What happened to a dataset of the caller and to its namespace as a whole. */
export const audit = ({ namespace, dataset }: Ref, reads: boolean) =>
  infiniteQueryOptions({
    queryKey: ['audit', namespace, dataset, reads],
    queryFn: ({ signal, pageParam }) => take(api.GET('/audit', { params: { query: { namespace, dataset, reads, limit: 50, ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
  });
