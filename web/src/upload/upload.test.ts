import { describe, expect, it } from 'vitest';
import { ApiError } from '~/api/errors';
import { lengthOf, Meter, missingParts, nameFor, shortName } from './parts';
import type { Confirmed } from './remember';
import { PartError } from './send';
import { type Service, UploadSession, type View } from './session';

describe('parts', () => {
  it('are those that the store lacks or has in another size', () => {
    expect(missingParts(25, 10, [])).toEqual([1, 2, 3]);
    expect(missingParts(25, 10, [{ partNumber: 2, size: 10 }])).toEqual([1, 3]);
    expect(missingParts(25, 10, [{ partNumber: 3, size: 10 }])).toEqual([1, 2, 3]);
    expect(missingParts(20, 10, [{ partNumber: 1, size: 10 }, { partNumber: 2, size: 10 }])).toEqual([]);
    expect(lengthOf(25, 10, 3)).toBe(5);
  });
  it('are measured over the last seconds', () => {
    const meter = new Meter();
    expect(meter.rate(0)).toBeUndefined();
    meter.add(1000, 0);
    meter.add(1000, 1000);
    expect(meter.rate(1000)).toBe(2000);
    meter.add(500, 20_000);
    expect(meter.rate(21_000)).toBe(500);
  });
  it('have names that the service accepts', () => {
    expect(nameFor('Q3 Umsätze (final).xlsx')).toBe('q3-umsaetze-final');
    expect(nameFor('orders.csv.gz')).toBe('orders');
    expect(shortName(nameFor('Umsatz 2026 Q1-Q3 (final).csv'))).toBe('umsatz');
    expect(shortName('order_lines-2024-01')).toBe('order_lines');
    expect(shortName('2026')).toBe('2026');
    expect(shortName('2026-final')).toBe('2026-final');
    expect(shortName('q3-umsaetze-final')).toBe('q3-umsaetze');
    expect(nameFor('../../etc/passwd')).toBe('passwd');
    expect(nameFor('<script>.csv')).toBe('script');
    expect(nameFor('مرحبا.csv')).toBe('data');
  });
});

/** A store in memory behind the service's operations. */
function fake(size: number, partSize: number) {
  const stored = new Map<number, number>();
  const state = { finished: false, renewed: 0, most: 0, running: 0, fail: (_: number, __: number): Error | undefined => undefined, tries: new Map<number, number>(), hold: false, confirmed: [] as Confirmed[] };
  const given: Service = {
    prepare: async () => ({
      sessionId: 's',
      files: [{ fileId: 'f', uploadId: 'u', key: 'k', filename: 'a.csv', partSize, presignedUrls: missingParts(size, partSize, []).map((n) => ({ url: `first/${n}`, partSize })) }],
    }),
    read: async () => ({
      sessionId: 's',
      sessionStatus: state.finished ? 'completed' : 'preparing',
      createdAt: '',
      expiresAt: '',
      files: [
        {
          fileId: 'f', uploadId: 'u', key: 'k', filename: 'a.csv', size, partSize, fileStatus: state.finished ? 'completed' : 'preparing',
          parts: [...stored].map(([partNumber, bytes]) => ({ partNumber, etag: `"${partNumber}"`, size: bytes })),
        },
      ],
    }),
    renew: async (_, fileId, parts) => {
      state.renewed += 1;
      return { fileId, presignedUrls: parts.map((partNumber) => ({ partNumber, url: `again/${partNumber}`, partSize })) };
    },
    finish: async (_, __, body) => {
      expect(body.parts.map((part) => part.partNumber)).toEqual(missingParts(size, partSize, []));
      state.finished = true;
    },
    send: async (url, body, onProgress, signal) => {
      const number = Number(url.split('/')[1]);
      const attempt = (state.tries.get(number) ?? 0) + 1;
      state.tries.set(number, attempt);
      state.running += 1;
      state.most = Math.max(state.most, state.running);
      try {
        await new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')));
          if (!state.hold) setTimeout(resolve, 1);
        });
        const failure = state.fail(number, attempt);
        if (failure) throw failure;
        onProgress(body.size);
        stored.set(number, body.size);
      } finally {
        state.running -= 1;
      }
    },
    confirm: async (part) => state.confirmed.push(part),
    confirmed: async () => state.confirmed,
    wait: () => Promise.resolve(),
  };
  return { given, state, stored };
}

function until(session: UploadSession, done: (view: View) => boolean): Promise<View> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`still ${JSON.stringify(session.view())}`)), 3000);
    const look = () => {
      if (!done(session.view())) return;
      clearTimeout(timer);
      resolve(session.view());
    };
    session.subscribe(look);
    look();
  });
}

const file = (size: number) => new File([new Uint8Array(size)], 'a.csv');

describe('a session', () => {
  it('sends all parts, four at once, and finishes with what the store has', async () => {
    const { given, state, stored } = fake(95, 10);
    const session = await UploadSession.start([file(95)], given);
    const view = await until(session, (now) => now.state === 'done');
    expect(view.sent).toBe(95);
    expect(stored.size).toBe(10);
    expect(stored.get(10)).toBe(5);
    expect(state.most).toBe(4);
    expect(state.finished).toBe(true);
  });

  it('notes each part before the next one takes its turn, while the others go on', async () => {
    const { given, state } = fake(100, 10);
    const held = Promise.withResolvers<void>();
    given.confirm = async (part) => {
      if (part.partNumber === 2) await held.promise;
      state.confirmed.push(part);
    };
    const session = await UploadSession.start([file(100)], given);
    // All parts have gone by the three other turns, but without the note of the second the file is not finished.
    const view = await until(session, (now) => now.sent === 100);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(view.state).toBe('sending');
    expect(state.finished).toBe(false);
    expect(state.confirmed.map((part) => part.partNumber)).toEqual([1, 3, 4, 5, 6, 7, 8, 9, 10]);
    held.resolve();
    await until(session, (now) => now.state === 'done');
  });

  it('repeats at most the parts of the turns when the notes do not come', async () => {
    const { given, state, stored } = fake(100, 10);
    given.confirm = () => new Promise(() => undefined);
    const session = await UploadSession.start([file(100)], given);
    await until(session, (now) => now.sent === 40);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect([...stored.keys()]).toEqual([1, 2, 3, 4]);
    expect(state.tries.size).toBe(4);
    session.dispose();
  });

  it('tries a part again after a fault, with a new address after 403', async () => {
    const { given, state } = fake(40, 10);
    state.fail = (number, attempt) => (number === 2 && attempt === 1 ? new PartError(0) : number === 3 && attempt === 1 ? new PartError(403) : undefined);
    const session = await UploadSession.start([file(40)], given);
    await until(session, (now) => now.state === 'done');
    expect(state.renewed).toBeGreaterThan(0);
    expect(state.tries.get(2)).toBe(2);
  });

  it('fails after several tries, says why, and continues when told', async () => {
    const { given, state } = fake(30, 10);
    state.fail = (number) => (number === 2 ? new PartError(500) : undefined);
    const session = await UploadSession.start([file(30)], given);
    const view = await until(session, (now) => now.state === 'failed');
    expect(view.files[0]?.error).toBeInstanceOf(PartError);
    expect(state.finished).toBe(false);
    state.fail = () => undefined;
    session.resume();
    await until(session, (now) => now.state === 'done');
  });

  it('stops while it is paused', async () => {
    const { given, state } = fake(100, 10);
    state.hold = true;
    const session = await UploadSession.start([file(100)], given);
    session.pause();
    await until(session, (now) => now.state === 'paused');
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(state.running).toBe(0);
    state.hold = false;
    session.resume();
    await until(session, (now) => now.state === 'done');
  });

  it('continues on another page with the missing parts alone', async () => {
    const { given, state, stored } = fake(50, 10);
    for (const number of [1, 2, 4]) stored.set(number, 10);
    const picked = file(50);
    state.confirmed = [1, 2, 4].map((partNumber) => ({ sessionId: 's', fileId: 'f', partNumber, modified: picked.lastModified }));
    const session = await UploadSession.resume('s', [picked], given);
    expect(session.view().sent).toBe(30);
    await until(session, (now) => now.state === 'done');
    expect([...state.tries.keys()].sort()).toEqual([3, 5]);
    expect(state.confirmed.map((part) => part.partNumber).sort()).toEqual([1, 2, 3, 4, 5]);
  });

  it('sends a part again that the store lists but never confirmed, or confirmed of an older file', async () => {
    const { given, state, stored } = fake(50, 10);
    for (const number of [1, 2, 4]) stored.set(number, 10);
    const picked = file(50);
    state.confirmed = [1, 2].map((partNumber) => ({ sessionId: 's', fileId: 'f', partNumber, modified: picked.lastModified - (partNumber === 2 ? 1 : 0) }));
    const session = await UploadSession.resume('s', [picked], given);
    expect(session.view().sent).toBe(10);
    await until(session, (now) => now.state === 'done');
    expect([...state.tries.keys()].sort()).toEqual([2, 3, 4, 5]);
  });

  it('waits for a file that was not picked again, or is another one', async () => {
    const { given } = fake(50, 10);
    const session = await UploadSession.resume('s', [file(49)], given);
    expect(session.view().files[0]?.status).toBe('absent');
    expect(session.view().state).toBe('failed');
  });

  it('does not repeat what cannot succeed', async () => {
    const { given, state } = fake(10, 10);
    given.renew = () => Promise.reject(new ApiError({ code: 'INVALID_STATE', message: 'closed' }));
    state.fail = () => new PartError(403);
    const session = await UploadSession.start([file(10)], given);
    const view = await until(session, (now) => now.state === 'failed');
    expect(view.files[0]?.error).toBeInstanceOf(ApiError);
  });
});
