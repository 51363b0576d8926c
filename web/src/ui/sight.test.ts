import { describe, expect, it } from 'vitest';
import { sightOf } from './sight';

const shape = { length: 1000, height: 20, header: 36, starts: [50, 150, 250, 350, 450, 550, 650] };

describe('what a grid draws', () => {
  it('is as many rows at every place, so that elements can be used again', () => {
    const drawn = [0, 7, 20, 5000, 5013, 19_900, 1e9].map((y) => sightOf(shape, 0, y, 300, 200));
    expect(new Set(drawn.map(({ top, bottom }) => bottom - top)).size).toBe(1);
    expect(drawn[0]?.top).toBe(0);
    expect(drawn.at(-1)?.bottom).toBe(1000);
  });
  it('covers what is in sight, and a little more', () => {
    for (const y of [0, 333, 4999, 19_836]) {
      const { top, bottom } = sightOf(shape, 0, y, 300, 200);
      expect(top * 20).toBeLessThanOrEqual(y);
      expect(bottom * 20).toBeGreaterThanOrEqual(Math.min(y + 200 - 36, 20_000));
      expect(bottom - top).toBeLessThan(30);
    }
  });
  it('leaves out columns that are out of sight', () => {
    expect(sightOf(shape, 0, 0, 120, 200)).toMatchObject({ left: 0, right: 3 });
    expect(sightOf({ ...shape, starts: Array.from({ length: 101 }, (_, at) => at * 100) }, 5050, 0, 300, 200)).toMatchObject({ left: 48, right: 56 });
    expect(sightOf(shape, 600, 0, 100, 200).right).toBe(6);
  });
  it('is nothing without rows or columns', () => {
    expect(sightOf({ ...shape, length: 0, starts: [50] }, 0, 0, 300, 200)).toEqual({ top: 0, bottom: 0, left: 0, right: 0 });
  });
});
