import { describe, expect, it } from 'vitest';
import { ApiError } from '~/api/errors';
import { type Loader, loadSample } from './sample';

const at = { owner: 'ada', namespace: 'sample', dataset: 'orders' };

/** A service that has `rows`, and whose load takes these states. */
function service(rows: number, states: string[], message?: string) {
  const calls: string[] = [];
  const ingestion = () => ({ id: 'i', status: states.shift(), ...(message && { error: { message } }) }) as Awaited<ReturnType<Loader['read']>>;
  const given: Loader = {
    file: async () => new File(['a\n1\n'], 'orders.csv'),
    create: async () => ({ dataset: { owner: 'ada', namespace: 'sample', name: 'orders' }, metadata: { rowCount: rows } }) as Awaited<ReturnType<Loader['create']>>,
    send: async (file) => {
      calls.push(`send ${file.name}`);
      return 's';
    },
    load: async (_, session) => {
      calls.push(`load ${session}`);
      return ingestion();
    },
    read: async () => {
      calls.push('read');
      return ingestion();
    },
    wait: async () => undefined,
  };
  return { calls, given };
}

describe('the sample', () => {
  it('is sent, loaded and waited for', async () => {
    const { calls, given } = service(0, ['queued', 'running', 'completed']);
    expect(await loadSample(given)).toEqual(at);
    expect(calls).toEqual(['send orders.csv', 'load s', 'read', 'read']);
  });
  it('is not loaded twice', async () => {
    const { calls, given } = service(360, []);
    expect(await loadSample(given)).toEqual(at);
    expect(calls).toEqual([]);
  });
  it('says why it could not be loaded', async () => {
    const { given } = service(0, ['failed'], 'The disk is full.');
    await expect(loadSample(given)).rejects.toThrow('The disk is full.');
    await expect(loadSample(service(0, ['cancelled']).given)).rejects.toBeInstanceOf(ApiError);
  });
});
