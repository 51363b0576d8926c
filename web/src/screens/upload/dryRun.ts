import { queryOptions } from '@tanstack/react-query';
import { api, type Schemas, take } from '~/api/client';
import { keyOf, pathOf, type Ref } from '~/api/queries';

export type Options = NonNullable<Schemas['NewIngestion']['options']>;
export type Request = { sessionId: string; fileIds: string[]; mode: 'append' | 'replace'; options: Options };

const ended = (status: Schemas['Ingestion']['status']) => !['queued', 'running'].includes(status);

/** How the files would be read with these options. Each set of options is its own request, so an old answer never shows under new ones. */
export const dryRun = (at: Ref, request: Request) =>
  queryOptions({
    queryKey: ['dryRun', ...keyOf(at), request],
    queryFn: async ({ signal }) => {
      let one = await take(api.POST('/data/{username}/{namespace}/{datasetName}/ingestions', { params: { path: pathOf(at) }, body: { ...request, dryRun: true }, signal }));
      while (!ended(one.status)) {
        await new Promise((resolve) => setTimeout(resolve, 400));
        signal.throwIfAborted();
        one = await take(ingestionOf(at, one.id, signal));
      }
      return one;
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

const ingestionOf = (at: Ref, id: string, signal?: AbortSignal) =>
  api.GET('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}', { params: { path: { ...pathOf(at), ingestionId: id } }, ...(signal && { signal }) });

export const ingestion = (at: Ref, id: string) =>
  queryOptions({
    queryKey: [...keyOf(at), 'ingestion', id],
    queryFn: ({ signal }) => take(ingestionOf(at, id, signal)),
    refetchInterval: ({ state }) => (state.data && ended(state.data.status) ? false : 500),
    staleTime: 0,
  });
