import { expect, it } from 'vitest';
import { type Entry, historyOf, remember, withEntry, withOutcome } from './past';

const entry = (id: string, query: string, namespace = 'shop'): Entry => ({ id, query, owner: 'ada', namespace, at: '2026-11-15T09:30:00Z', outcome: { state: 'running' } });

it('puts the newest first and each statement once', () => {
  const list = [entry('3', 'b'), entry('2', 'a', 'other'), entry('1', 'a')].reduceRight<Entry[]>(withEntry, []);
  expect(list.map(({ id }) => id)).toEqual(['3', '2', '1']);
  expect(withEntry(list, entry('4', 'a')).map(({ id }) => id)).toEqual(['4', '3', '2']);
});

it('forgets the oldest', () => {
  let list: Entry[] = [];
  for (let index = 0; index < 150; index += 1) list = withEntry(list, entry(String(index), `SELECT ${index}`));
  expect(list).toHaveLength(100);
  expect(list[0]?.id).toBe('149');
  const large = ['a', 'b', 'c', 'd', 'e'].map((letter) => entry(letter, letter.repeat(100_000)));
  expect(large.reduce<Entry[]>(withEntry, []).map(({ id }) => id)).toEqual(['e', 'd', 'c', 'b']);
});

it('gives an outcome to the run it belongs to', () => {
  const list = [entry('2', 'b'), entry('1', 'a')];
  expect(withOutcome(list, '1', { state: 'done', rows: 3, ms: 5 }).map(({ outcome }) => outcome.state)).toEqual(['running', 'done']);
  expect(withOutcome(list, 'gone', { state: 'cancelled' })).toEqual(list);
});

it('is kept for each account', () => {
  remember('one', (entries) => withEntry(entries, entry('1', 'a')));
  expect(historyOf('one')).toHaveLength(1);
  expect(historyOf('two')).toEqual([]);
  localStorage.setItem('quern.sql.history.one', '{"broken');
  expect(historyOf('one')).toEqual([]);
  localStorage.setItem('quern.sql.history.one', '[null, {"query": 1}]');
  expect(historyOf('one')).toEqual([]);
});
