import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, type Schemas, take } from '~/api/client';

export type User = Schemas['User'];
export type Limit = Schemas['UserLimit'];
export type Kind = Schemas['LimitKind'];

const often = 10_000;

export const health = queryOptions({ queryKey: ['operation', 'health'], queryFn: ({ signal }) => take(api.GET('/operator/health', { signal })), refetchInterval: often });

export const users = infiniteQueryOptions({
  queryKey: ['operation', 'users'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/operator/users', { params: { query: { limit: 50, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
});

export const usageOf = (username: string) =>
  queryOptions({
    queryKey: ['operation', 'usage', username],
    queryFn: ({ signal }) => take(api.GET('/operator/users/{username}/usage', { params: { path: { username } }, signal })),
  });

export const limits = infiniteQueryOptions({
  queryKey: ['operation', 'limits'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/operator/limits', { params: { query: { limit: 100, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
});
