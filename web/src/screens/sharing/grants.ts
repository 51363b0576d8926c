import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { api, newKey, type Schemas, take } from '~/api/client';
import { keyOf, pathOf, shares } from '~/api/queries';

/** What is shared: a dataset, or a whole namespace if there is no dataset. */
export type Thing = { owner: string; namespace: string; dataset?: string | undefined };
export type Role = Schemas['ShareRole'];

/** Why every fetch of grants asks for text: the bodies of the answers are empty. */
const parseAs = 'text';
const spacePath = (of: Thing) => ({ username: of.owner, namespace: of.namespace });
const spaceKey = (of: Thing) => ['namespace', of.owner, of.namespace, 'shares'];
const datasetOf = (of: Thing) => (of.dataset === undefined ? undefined : { owner: of.owner, namespace: of.namespace, dataset: of.dataset });

export const grantsOf = (of: Thing) => {
  const one = datasetOf(of);
  if (one) return shares(one);
  return queryOptions({
    queryKey: spaceKey(of),
    queryFn: ({ signal }): Promise<Schemas['ShareList']> => take(api.GET('/permissions/namespaces/{username}/{namespace}/shares', { params: { path: spacePath(of) }, signal })),
  });
};

export function grant(of: Thing, body: Schemas['NewShare']): Promise<unknown> {
  const one = datasetOf(of);
  const header = { 'Idempotency-Key': newKey() };
  return one
    ? take(api.POST('/permissions/datasets/{username}/{namespace}/{datasetName}/shares', { params: { path: pathOf(one), header }, body, parseAs }))
    : take(api.POST('/permissions/namespaces/{username}/{namespace}/shares', { params: { path: spacePath(of), header }, body, parseAs }));
}

export function revoke(of: Thing, username: string): Promise<unknown> {
  const one = datasetOf(of);
  return one
    ? take(api.DELETE('/permissions/datasets/{username}/{namespace}/{datasetName}/shares', { params: { path: pathOf(one) }, body: { username }, parseAs }))
    : take(api.DELETE('/permissions/namespaces/{username}/{namespace}/shares', { params: { path: spacePath(of) }, body: { username }, parseAs }));
}

/** A grant on a namespace is also listed at each of its datasets. */
export async function refresh(queries: QueryClient, of: Thing): Promise<void> {
  const one = datasetOf(of);
  await (one
    ? queries.invalidateQueries({ queryKey: [...keyOf(one), 'shares'] })
    : Promise.all([queries.invalidateQueries({ queryKey: spaceKey(of) }), queries.invalidateQueries({ queryKey: ['dataset', of.owner, of.namespace] })]));
}
