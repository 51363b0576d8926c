import { describe, expect, it } from 'vitest';
import { matcher } from './pattern';

describe('patterns of files', () => {
  it.each([
    ['', '', 'a/b.csv', true],
    ['', '*.csv', 'a/b.csv', true],
    ['', '*.csv', 'a/b.csv.gz', false],
    ['', '*.csv', 'axcsv', false],
    ['orders/', '*.csv', 'other/b.csv', false],
    ['orders/', '2026/*.csv', 'orders/2026/b.csv', true],
    ['orders/', '2026/*.csv', 'orders/2026/11/b.csv', false],
    ['', 'part-?.csv', 'x/part-1.csv', true],
    ['', 'part-?.csv', 'x/part-12.csv', false],
    ['', '[a-c]*.csv', 'b.csv', true],
    ['', '[^a-c]*.csv', 'b.csv', false],
    ['', 'a\\*.csv', 'a*.csv', true],
    ['', 'a\\*.csv', 'ab.csv', false],
    ['', 'ü?.csv', 'üä.csv', true],
    ['', '', 'folder/', false],
  ])('prefix %j, pattern %j, path %j: %s', (prefix, pattern, path, expected) => {
    expect(matcher(prefix, pattern)?.(path)).toBe(expected);
  });

  it('knows what is not a pattern', () => {
    for (const pattern of ['[a', 'a\\', '[z-a]']) expect(matcher('', pattern)).toBeUndefined();
  });
});
