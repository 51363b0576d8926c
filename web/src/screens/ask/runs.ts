import { infiniteQueryOptions, type QueryClient, queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, newKey, type Schemas, take } from '~/api/client';
import { type ApiError, networkError } from '~/api/errors';
import { follow } from '~/stream/follow';
import { ends, type LiveRun, reduce, rests, started, type Turn } from '~/stream/run';

export type Conversation = Schemas['Conversation'];
export type Where = { username: string; namespace: string };

export const conversation = (id: string) =>
  queryOptions({
    queryKey: ['conversation', id],
    queryFn: ({ signal }) => take(api.GET('/query/conversations/{conversationId}', { params: { path: { conversationId: id } }, signal })),
    // What changes here changes by our own hand; a reload of the page checks the rights again.
    staleTime: 60_000,
  });

/** When the runs of a conversation began and ended; turns do not say it. */
export const runTimes = (id: string) =>
  queryOptions({
    queryKey: ['conversation', id, 'times'],
    queryFn: async ({ signal }) => {
      const page = await take(api.GET('/query/runs', { params: { query: { conversationId: id, limit: 100 } }, signal }));
      return Object.fromEntries(page.data.map((run) => [run.runId, { createdAt: run.createdAt, finishedAt: run.finishedAt }]));
    },
  });

export const allConversations = infiniteQueryOptions({
  queryKey: ['conversations', 'all'],
  queryFn: ({ signal, pageParam }) => take(api.GET('/query/conversations', { params: { query: { limit: 20, ...(pageParam && { cursor: pageParam }) } }, signal })),
  initialPageParam: '',
  getNextPageParam: (last) => last.nextCursor,
});

export const verifiedQuestions = (where: Where) =>
  queryOptions({
    queryKey: ['verified', where.username, where.namespace],
    queryFn: ({ signal }) => take(api.GET('/verified/{username}/{namespace}', { params: { path: where, query: { status: 'verified', limit: 20 } }, signal })),
  });

/** Longer questions cannot be kept. */
export const longestKept = 500;

/** Whether a verified question answers this question by now. */
export const isKept = (where: Where, question: string) =>
  queryOptions({
    queryKey: [...verifiedQuestions(where).queryKey, 'answering', question],
    queryFn: async ({ signal }) => (await take(api.GET('/verified/{username}/{namespace}', { params: { path: where, query: { question } }, signal }))).data.length > 0,
  });

const liveKey = (runId: string) => ['run', runId, 'live'];

/** Starts a run, and puts its question into the conversation before anything has come back from the stream. */
export async function ask(queries: QueryClient, question: { where: Where; text: string; datasets: string[]; conversationId?: string | undefined; key?: string }): Promise<{ conversationId: string; runId: string }> {
  const run = await take(
    api.POST('/query/ask', {
      params: { header: { Prefer: 'respond-async', 'Idempotency-Key': question.key ?? newKey() } },
      body: {
        ...question.where,
        agent: 'assistant',
        query: question.text,
        timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC',
        ...(question.datasets.length > 0 && { datasets: question.datasets }),
        ...(question.conversationId && { conversationId: question.conversationId }),
      },
      headers: { Accept: 'application/json' },
    }),
  );
  const { conversationId, runId } = run as Schemas['Run'];
  queries.setQueryData<Conversation>(conversation(conversationId).queryKey, (old) => {
    const turn: Turn = { runId, agent: 'assistant', question: question.text, status: 'running', ...(question.datasets.length > 0 && { datasets: question.datasets }) };
    if (!old) return { id: conversationId, title: question.text, ...question.where, turns: [turn] };
    // A question that waited for a choice is given up by the next one.
    const turns = old.turns.map((other) => (other.status === 'waiting' ? { ...other, status: 'completed' as const } : other));
    return { ...old, turns: turns.some((other) => other.runId === runId) ? turns : [...turns, turn] };
  });
  void queries.invalidateQueries({ queryKey: ['conversations'] });
  return { conversationId, runId };
}

export function patchTurn(queries: QueryClient, conversationId: string, runId: string, change: Partial<Turn>): void {
  queries.setQueryData<Conversation>(conversation(conversationId).queryKey, (old) => old && { ...old, turns: old.turns.map((turn) => (turn.runId === runId ? { ...turn, ...change } : turn)) });
}

/** Goes on with an option of a run that asked what was meant. */
export async function choose(queries: QueryClient, conversationId: string, runId: string, option: number): Promise<void> {
  await take(
    api.POST('/query/runs/{runId}/choose', {
      params: { path: { runId }, header: { Prefer: 'respond-async' } },
      body: { option },
      headers: { Accept: 'application/json' },
    }),
  );
  queries.setQueryData<LiveRun>(liveKey(runId), started);
  queries.setQueryData<Conversation>(
    conversation(conversationId).queryKey,
    (old) =>
      old && {
        ...old,
        turns: old.turns.map((turn) => {
          if (turn.runId !== runId) return turn;
          const { result: _, ...rest } = turn;
          return { ...rest, status: 'running' };
        }),
      },
  );
}

export async function cancel(queries: QueryClient, conversationId: string, runId: string): Promise<void> {
  try {
    await take(api.POST('/query/runs/{runId}/cancel', { params: { path: { runId } } }));
  } catch (cause) {
    // It ended in the same moment: the stream brings how.
    if ((cause as ApiError).code !== 'INVALID_STATE') throw cause;
    return;
  }
  patchTurn(queries, conversationId, runId, { status: 'cancelled' });
}

export type Connection = { lost: boolean; error: ApiError | undefined; retry: () => void };

/**
 * Follows a run while it is going on. Its events change the query cache only, so that a run looks the same whether it was followed, left
 * and found again, or read when it had ended.
 */
export function useLiveRun(conversationId: string, turn: Turn): { run: LiveRun | undefined; connection: Connection } {
  const queries = useQueryClient();
  const [lost, setLost] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [attempt, setAttempt] = useState(0);
  const { data } = useQuery<LiveRun>({ queryKey: liveKey(turn.runId), queryFn: () => started, enabled: false, staleTime: Number.POSITIVE_INFINITY });
  const running = turn.status === 'running';
  const { runId } = turn;

  useEffect(() => {
    if (!running) return;
    const abort = new AbortController();
    let run = started;
    const put = (next: LiveRun) => {
      run = next;
      queries.setQueryData<LiveRun>(liveKey(runId), next);
    };
    setError(undefined);
    follow({
      path: `/query/runs/${runId}/events`,
      ends,
      rests,
      signal: abort.signal,
      onState: (state) => setLost(state === 'lost'),
      onEvent: ({ name, data }) => put(reduce(run, name, data)),
    })
      .then(() => {
        patchTurn(queries, conversationId, runId, { status: run.status, ...(run.result && { result: run.result }), ...(run.error && { error: run.error }) });
        // The end of the run is recorded just after its last event was sent.
        const times = () => void queries.invalidateQueries({ queryKey: runTimes(conversationId).queryKey });
        times();
        setTimeout(times, 1500);
        void queries.invalidateQueries({ queryKey: ['conversations'] });
      })
      .catch((cause: unknown) => {
        if (!abort.signal.aborted) setError(networkError(cause));
      });
    return () => abort.abort();
  }, [running, runId, conversationId, queries, attempt]);

  return { run: data, connection: { lost: running && lost, error, retry: () => setAttempt((old) => old + 1) } };
}
