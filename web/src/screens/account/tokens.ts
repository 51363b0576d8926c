import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, type Schemas, take } from '~/api/client';
import { formatBytes, formatNumber } from '~/format/number';
import { formatDuration } from '~/format/time';

export type Token = Schemas['Token'];
export type Created = Schemas['CreatedToken'];
export type Target = Schemas['TokenTarget'];

export const tokens = infiniteQueryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/user/tokens', { params: { query: { limit: 100, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
});

export const usage = queryOptions({ queryKey: ['usage'], queryFn: ({ signal }) => take(api.GET('/user/usage', { signal })) });

/** An amount of usage in the unit of its kind. */
export function amountText(kind: string, amount: number): string {
  return kind.endsWith('Bytes') ? formatBytes(amount) : kind.endsWith('Seconds') ? formatDuration(amount) : formatNumber(amount);
}

/** `shop`, `shop/orders`, with the owner in front if that is somebody else. */
export function targetText(target: Target, self: string): string {
  return [...(target.username === self ? [] : [target.username]), target.namespace, ...(target.dataset ? [target.dataset] : [])].join('/');
}

/** How much of its time is left, for the eye: over, in its last week, or longer. */
export function standing(expiresAt: string, now = Date.now()): 'expired' | 'soon' | 'good' {
  const left = Date.parse(expiresAt) - now;
  return left <= 0 ? 'expired' : left < 7 * 86_400_000 ? 'soon' : 'good';
}

/** The end of a token that lives so many days, or until the end of a chosen day. */
export function expiryOf(choice: string, date: string, now = Date.now()): string | undefined {
  if (choice === 'date') {
    const end = Date.parse(`${date}T23:59:59Z`);
    return Number.isNaN(end) || end <= now ? undefined : new Date(end).toISOString();
  }
  return new Date(now + Number(choice) * 86_400_000).toISOString();
}
