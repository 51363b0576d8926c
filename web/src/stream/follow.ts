import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';
import { must, raw } from '~/api/client';
import { ApiError } from '~/api/errors';

export type Follow = {
  /** Path after /api/v1. */
  path: string;
  /** The last event that is known already. */
  after?: string;
  onEvent: (event: { id: string; name: string; data: string }) => void;
  /** Names of the events after which nothing follows. */
  ends: readonly string[];
  /** Names of the events after which the service may close the stream for good: something else must happen first. */
  rests?: readonly string[];
  signal: AbortSignal;
  /** Told when the connection is lost and found again. */
  onState?: (state: 'open' | 'lost') => void;
};

/** A stream sends an event or a comment every few seconds, so this much silence means that the connection is dead. */
const silence = 35_000;
const first = 500;
const longest = 15_000;

/**
 * Reads the events of a run until its last one, over as many connections as it takes: each continues after the last event that
 * arrived. While the tab is hidden no connection is held, because a browser opens only six to one host over HTTP/1.1.
 */
export async function follow(options: Follow): Promise<void> {
  const { signal, onState } = options;
  let last = options.after;
  let wait = first;
  let name = '';
  for (;;) {
    await shown(signal);
    signal.throwIfAborted();
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal.addEventListener('abort', stop);
    document.addEventListener('visibilitychange', stop);
    try {
      const finished = await readOnce(options, last, connection, (event) => {
        last = event.id ?? last;
        name = event.event ?? name;
        wait = first;
      });
      if (finished || options.rests?.includes(name)) return;
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof ApiError && !cause.temporary) throw cause;
    } finally {
      signal.removeEventListener('abort', stop);
      document.removeEventListener('visibilitychange', stop);
      connection.abort();
    }
    onState?.('lost');
    await pause(wait / 2 + (Math.random() * wait) / 2, signal);
    wait = Math.min(wait * 2, longest);
  }
}

async function readOnce(options: Follow, last: string | undefined, connection: AbortController, seen: (event: EventSourceMessage) => void): Promise<boolean> {
  const headers: Record<string, string> = { Accept: 'text/event-stream' };
  if (last !== undefined) headers['Last-Event-ID'] = last;
  let timer = setTimeout(() => connection.abort(), silence);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => connection.abort(), silence);
  };
  try {
    const response = await must(await raw(options.path, { headers, signal: connection.signal }));
    options.onState?.('open');
    for await (const event of eventsOf(response, alive)) {
      const name = event.event ?? 'message';
      seen(event);
      options.onEvent({ id: event.id ?? '', name, data: event.data });
      if (options.ends.includes(name)) return true;
    }
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** The events of a response; `alive` is called for every piece that arrives, comments too. */
export async function* eventsOf(response: Response, alive: () => void = () => undefined): AsyncGenerator<EventSourceMessage> {
  if (!response.body) return;
  const heartbeat = new TransformStream<string, string>({
    transform(chunk, controller) {
      alive();
      controller.enqueue(chunk);
    },
  });
  const events = response.body
    .pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)
    .pipeThrough(heartbeat)
    .pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function shown(signal: AbortSignal): Promise<void> {
  if (document.visibilityState !== 'hidden' || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.visibilityState === 'hidden' && !signal.aborted) return;
      document.removeEventListener('visibilitychange', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    document.addEventListener('visibilitychange', done);
    signal.addEventListener('abort', done);
  });
}

function pause(time: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, time);
    signal.addEventListener('abort', done);
  });
}
