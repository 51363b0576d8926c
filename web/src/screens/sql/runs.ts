import { useSyncExternalStore } from 'react';
import { must, newKey, raw, type Schemas } from '~/api/client';
import { ApiError } from '~/api/errors';
import { save } from '~/api/download';
import { type Outcome, remember, withEntry, withOutcome } from './past';
import type { Sent } from './values';

export type Request = Pick<Schemas['QueryRequest'], 'query' | 'username' | 'namespace' | 'asOf' | 'overflow'> & {
  parameters?: Sent | undefined;
  explain?: boolean;
  escapeFormulas?: boolean;
  format?: Schemas['StatementFormat'];
};
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
  const { base, mine } = begin(account, request, offset);
  let end: Run;
  try {
    end = { ...base, state: 'done', result: await query(request, mine.signal) };
  } catch (error) {
    end = mine.signal.aborted ? { ...base, state: 'cancelled' } : { ...base, state: 'failed', error };
  }
  if (shown?.id === base.id) show(end);
  remember(account, (entries) => withOutcome(entries, base.id, outcomeOf(end)));
}

function outcomeOf(end: Run): Outcome {
  switch (end.state) {
    case 'done':
      return { state: 'done', rows: end.result.metadata.count, ms: end.result.metadata.elapsedMs };
    case 'failed':
      return { state: 'failed', message: end.error instanceof Error ? end.error.message.slice(0, 300) : '' };
    default:
      return { state: 'cancelled' };
  }
}

/** Shows a run that has begun, and puts it into the history. */
function begin(account: string, request: Request, offset: number) {
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
  return { base, mine };
}

/**
 * Has a worker run a statement, and answers with its id. The rows of an earlier run stay, for whoever comes back to them. A statement that
 * is refused is shown like one that failed.
 */
export async function runLong(account: string, request: Request, offset: number, format: Format): Promise<string | undefined> {
  const before = shown;
  const { base, mine } = begin(account, request, offset);
  try {
    const answer = await must(await send(asLong(request, format), 'application/json', mine.signal, { Prefer: 'respond-async', 'Idempotency-Key': newKey() }));
    const { id } = (await answer.json()) as Schemas['Statement'];
    remember(account, (entries) => withOutcome(entries, base.id, { state: 'long' }));
    if (shown?.id === base.id) show(before?.state === 'done' ? before : undefined);
    return id;
  } catch (error) {
    const end: Run = mine.signal.aborted ? { ...base, state: 'cancelled' } : { ...base, state: 'failed', error };
    if (shown?.id === base.id) show(end);
    remember(account, (entries) => withOutcome(entries, base.id, outcomeOf(end)));
    return undefined;
  }
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

function send(request: Request, accept: string, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
  return raw('/query', { method: 'POST', body: JSON.stringify(request), headers: { 'Content-Type': 'application/json', Accept: accept, ...headers }, ...(signal && { signal }) });
}

export const formats = ['csv', 'csvSafe', 'parquet', 'arrow', 'ndjson'] as const;
export type Format = (typeof formats)[number];
/** The formats that an answer can have. Others need a worker. */
export const direct = ['csv', 'csvSafe', 'parquet', 'arrow'] as const;

const files: Record<(typeof direct)[number], [accept: string, ending: string]> = {
  csv: ['text/csv', 'csv'],
  csvSafe: ['text/csv', 'csv'],
  parquet: ['application/vnd.apache.parquet', 'parquet'],
  arrow: ['application/vnd.apache.arrow.stream', 'arrows'],
};

function asLong(request: Request, format: Format): Request {
  return { ...request, format: format === 'csvSafe' ? 'csv' : format, ...(format === 'csvSafe' && { escapeFormulas: true }) };
}

/** Runs a statement again and saves its rows as a file: how many there are. A result that is too large becomes a long statement: its id. */
export async function exportRows(request: Request, format: (typeof direct)[number]): Promise<{ count: number } | { statement: string }> {
  const [accept, ending] = files[format];
  const response = await must(await send({ ...asLong(request, format), overflow: 'statement' }, accept, undefined, { 'Idempotency-Key': newKey() }));
  if (response.status === 202) return { statement: ((await response.json()) as Schemas['Statement']).id };
  const said = JSON.parse(response.headers.get('X-Quern-Result') ?? '{}') as { count?: number };
  save(await response.blob(), `result-${stamp()}.${ending}`);
  return { count: said.count ?? 0 };
}

/** The time, for names of files. */
export function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/\D/g, '');
}
