import { useSyncExternalStore } from 'react';
import { must, raw, type Schemas } from '~/api/client';
import { ApiError } from '~/api/errors';
import { save } from '~/api/download';
import { remember, withEntry, withOutcome } from './past';
import type { Sent } from './values';

export type Request = Pick<Schemas['QueryRequest'], 'query' | 'username' | 'namespace' | 'asOf'> & { parameters?: Sent | undefined; explain?: boolean; escapeFormulas?: boolean; truncate?: boolean };
export type Result = Schemas['QueryResult'];

export type Run = {
  id: string;
  request: Request;
  /** Where the statement began in the text of the editor. */
  offset: number;
  started: number;
} & ({ state: 'running' | 'cancelled' } | { state: 'done'; result: Result } | { state: 'failed'; error: unknown });

/**
 * The run that is shown. It outlives the screen, so that a look at a dataset does not lose it, but not the page. What an earlier run
 * delivers after a later one was started is thrown away.
 */
let shown: Run | undefined;
let stop: AbortController | undefined;
const listeners = new Set<() => void>();

function show(run: Run | undefined): void {
  shown = run;
  for (const listener of listeners) listener();
}

export function useRun(): Run | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
}

/** Runs a statement. One that is still running is cancelled: nobody would see its rows. */
export async function run(account: string, request: Request, offset: number): Promise<void> {
  cancel();
  const mine = new AbortController();
  const base = { id: crypto.randomUUID(), request, offset, started: Date.now() };
  stop = mine;
  show({ ...base, state: 'running' });
  remember(account, (entries) =>
    withEntry(entries, {
      id: base.id,
      query: request.query,
      owner: request.username ?? '',
      namespace: request.namespace ?? undefined,
      at: new Date(base.started).toISOString(),
      outcome: { state: 'running' },
    }),
  );
  let end: Run;
  try {
    end = { ...base, state: 'done', result: await query(request, mine.signal) };
  } catch (error) {
    end = mine.signal.aborted ? { ...base, state: 'cancelled' } : { ...base, state: 'failed', error };
  }
  if (shown?.id === base.id) show(end);
  remember(account, (entries) =>
    withOutcome(
      entries,
      base.id,
      end.state === 'done'
        ? { state: 'done', rows: end.result.metadata.count, ms: end.result.metadata.elapsedMs }
        : end.state === 'failed'
          ? { state: 'failed', message: end.error instanceof Error ? end.error.message.slice(0, 300) : '' }
          : { state: 'cancelled' },
    ),
  );
}

export function cancel(): void {
  stop?.abort();
  stop = undefined;
}

/** The rows of a statement. */
export async function query(request: Request, signal: AbortSignal): Promise<Result> {
  const response = await must(await send(request, 'application/json', signal));
  try {
    return (await response.json()) as Result;
  } catch (cause) {
    signal.throwIfAborted();
    // A statement that fails after its first rows were sent can only close the connection.
    throw cause instanceof ApiError ? cause : new ApiError({ code: 'NETWORK', message: 'The answer broke off before its end.', requestId: response.headers.get('X-Request-Id') ?? '' });
  }
}

function send(request: Request, accept: string, signal?: AbortSignal): Promise<Response> {
  return raw('/query', { method: 'POST', body: JSON.stringify(request), headers: { 'Content-Type': 'application/json', Accept: accept }, ...(signal && { signal }) });
}

export type Format = 'csv' | 'csvSafe' | 'parquet' | 'arrow';

const formats: Record<Format, [accept: string, ending: string]> = {
  csv: ['text/csv', 'csv'],
  csvSafe: ['text/csv', 'csv'],
  parquet: ['application/vnd.apache.parquet', 'parquet'],
  arrow: ['application/vnd.apache.arrow.stream', 'arrows'],
};

/** Runs a statement again and saves its rows as a file. The answer is how many there are, and whether that is all. */
export async function exportRows(request: Request, format: Format): Promise<{ count: number; truncated: boolean }> {
  const [accept, ending] = formats[format];
  const response = await must(await send({ ...request, truncate: true, ...(format === 'csvSafe' && { escapeFormulas: true }) }, accept));
  const said = JSON.parse(response.headers.get('X-Quern-Result') ?? '{}') as { count?: number; truncated?: boolean };
  const time = new Date().toISOString().slice(0, 19).replace(/\D/g, '');
  save(await response.blob(), `result-${time}.${ending}`);
  return { count: said.count ?? 0, truncated: said.truncated ?? false };
}
