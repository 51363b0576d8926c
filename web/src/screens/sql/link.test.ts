import { expect, it } from 'vitest';
import { givenBy, linkTo } from './link';

it('carries a statement and its namespace', () => {
  const sql = `SELECT '100 % + & # ü 😀'\nFROM "x-1"`;
  const url = new URL(linkTo('https://quern.example.org', sql, 'ada/shop'));
  expect(url.search).toBe('');
  expect(givenBy({}, url.hash)).toEqual({ statement: sql, namespace: 'ada/shop' });
});

it('also reads q, which people write by hand', () => {
  expect(givenBy({ q: 'SELECT 1', namespace: 'shop' }, '')).toEqual({ statement: 'SELECT 1', namespace: 'shop' });
  expect(givenBy({}, '')).toBeUndefined();
  expect(givenBy({}, '#other')).toBeUndefined();
});

it('opens a namespace without a statement', () => {
  expect(givenBy({ namespace: 'shop' }, '')).toEqual({ statement: undefined, namespace: 'shop' });
});
