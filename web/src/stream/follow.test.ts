import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '~/api/errors';
import { follow } from './follow';

const answers: (() => Response | Promise<Response>)[] = [];
const asked: (string | null)[] = [];

vi.mock('~/api/client', async () => {
  const { errorOf } = await import('~/api/errors');
  return {
    raw: async (_: string, init: RequestInit) => {
      asked.push(new Headers(init.headers).get('Last-Event-ID'));
      const next = answers.shift();
      if (!next) throw new Error('one request too many');
      return next();
    },
    must: async (response: Response) => {
      if (response.ok) return response;
      throw errorOf(response, await response.json());
    },
  };
});

afterEach(() => {
  answers.length = 0;
  asked.length = 0;
});

const stream = (text: string) => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });
const failure = (status: number, code: string) => new Response(JSON.stringify({ error_code: code, message: 'no', error_message: '' }), { status });

function run(after?: string) {
  const seen: string[] = [];
  const states: string[] = [];
  const stop = new AbortController();
  const done = follow({
    path: '/x',
    ...(after !== undefined && { after }),
    ends: ['runCompleted'],
    signal: stop.signal,
    onEvent: (event) => seen.push(`${event.id} ${event.name} ${event.data}`),
    onState: (state) => states.push(state),
  });
  return { seen, states, stop, done };
}

describe('follow', () => {
  it('reads until the end event', async () => {
    answers.push(() => stream(': hello\n\nid: 1\nevent: runStarted\ndata: {}\n\nid: 2\nevent: runCompleted\ndata: {"a":1}\n\nid: 3\nevent: late\ndata: x\n\n'));
    const { seen, done } = run();
    await done;
    expect(seen).toEqual(['1 runStarted {}', '2 runCompleted {"a":1}']);
    expect(asked).toEqual([null]);
  });

  it('continues after the last event when the connection ends or fails', async () => {
    answers.push(
      () => stream('id: 1\nevent: runStarted\ndata: {}\n\nid: 2\nevent: step\ndata: cut of'),
      () => Promise.reject(new ApiError({ code: 'NETWORK', message: 'away' })),
      () => failure(503, 'UNAVAILABLE'),
      () => stream('id: 2\nevent: runCompleted\ndata: {}\n\n'),
    );
    const { seen, states, done } = run();
    await done;
    expect(asked).toEqual([null, '1', '1', '1']);
    expect(seen).toEqual(['1 runStarted {}', '2 runCompleted {}']);
    expect(states.filter((state) => state === 'lost')).toHaveLength(3);
  }, 15_000);

  it('starts after an event that is known', async () => {
    answers.push(() => stream('id: 8\nevent: runCompleted\ndata: {}\n\n'));
    await run('7').done;
    expect(asked).toEqual(['7']);
  });

  it('gives up on what time does not heal', async () => {
    answers.push(() => failure(404, 'NOT_FOUND'));
    await expect(run().done).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('ends when it is told', async () => {
    answers.push(() => stream('id: 1\nevent: runStarted\ndata: {}\n\n'));
    const { stop, done } = run();
    setTimeout(() => stop.abort(), 20);
    await expect(done).rejects.toMatchObject({ name: 'AbortError' });
  });
});
