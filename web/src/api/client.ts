import createClient from 'openapi-fetch';
import { auth } from '~/auth/auth';
import { errorOf, networkError } from './errors';
import type { components, paths } from './schema.gen';

export type Schemas = components['schemas'];

const base = '/api/v1';

/**
 * Sends a request with the caller's token. If the token is refused, it is renewed once, together with those of all other requests, and
 * the request is sent again.
 */
export async function send(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await attempt(request);
  if (response.status !== 401) return response;
  await response.body?.cancel();
  await auth().renew();
  return attempt(again);
}

async function attempt(request: Request): Promise<Response> {
  request.headers.set('Authorization', `Bearer ${await auth().token()}`);
  try {
    return await fetch(request);
  } catch (cause) {
    throw networkError(cause);
  }
}

/** All operations of the contract, typed. Use it with `take`. */
export const api = createClient<paths>({
  baseUrl: base,
  fetch: send,
  // The API takes a parameter once; lists in parameters are separated by commas.
  querySerializer: { array: { style: 'form', explode: false } },
});

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of an answer; an error answer is thrown as ApiError. */
export async function take<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok || error !== undefined) throw errorOf(response, error);
  return data as T;
}

/** The body together with a header, such as the ETag that a later change is based on. */
export async function takeWith<T>(answer: Promise<Answer<T>>, header: string): Promise<{ data: T; header: string | undefined }> {
  const { data, error, response } = await answer;
  if (!response.ok || error !== undefined) throw errorOf(response, error);
  return { data: data as T, header: response.headers.get(header) ?? undefined };
}

/** A key for Idempotency-Key: one per intention of the person, kept over repeats. */
export function newKey(): string {
  return crypto.randomUUID();
}

/** For operations that are not JSON: streams and files. The path begins after /api/v1. */
export function raw(path: string, init: RequestInit = {}): Promise<Response> {
  return send(new Request(base + path, init));
}

/** Fails with the error that a raw answer carries. */
export async function must(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => undefined);
  throw errorOf(response, body);
}
