import { describe, expect, it } from 'vitest';
import { closing as c, opening as o } from './claims';
import { firstOf, tableOf } from './table';

const step = {
  query: 'SELECT category, sum(amount) AS total FROM orders GROUP BY category',
  columns: [
    { name: 'category', type: 'varchar' },
    { name: 'total', type: 'double' },
  ],
  data: [
    { category: 'beans', total: 320.5 },
    { category: 'cold*brew', total: 11684.699999999999 },
    { category: null, total: 7 },
  ],
};
const table = (...lines: string[]) => ['| category | total |', '|---|---:|', ...lines].join('\n');
const written = table('| beans | 320.50 |', '| cold\\*brew | 11684.70 |', '| (empty) | 7 |');
const names = (found: ReturnType<typeof tableOf>) => found?.lines.map(({ row }) => row['category']);

describe('tableOf', () => {
  it('has the rows of the step in the order of the chart', () => {
    const found = tableOf(`Total amount, by category\n\n${written}`, step, 'service');
    expect(found).toMatchObject({ before: 'Total amount, by category\n', after: '', heads: ['category', 'total'] });
    expect(names(found)).toEqual(['cold*brew', 'beans', null]);
    expect(found?.lines[0]?.row['total']).toBe(11684.699999999999);
  });
  it('keeps the order of a statement that has one', () => {
    expect(names(tableOf(written, { ...step, query: `${step.query} ORDER BY total NULLS LAST` }, 'service'))).toEqual(['beans', 'cold*brew', null]);
  });
  it('has the largest first if the statement orders by name', () => {
    expect(names(tableOf(written, { ...step, query: `${step.query} ORDER BY "category"` }, 'service'))).toEqual(['cold*brew', 'beans', null]);
  });
  it('keeps names that have an order of their own', () => {
    const named = (...list: string[]) => names(tableOf(table(...list.map((name, n) => `| ${name} | ${n} |`)), { ...step, query: `${step.query} ORDER BY "category"`, data: list.map((category, total) => ({ category, total })) }, 'service'));
    for (const list of [['2026-01', '2026-02'], ['Q1', 'Q2'], ['0–9', '10–19']]) expect(named(...list)).toEqual(list);
    expect(named('apples', 'pears')).toEqual(['pears', 'apples']);
  });
  it('leaves each claim with its cell', () => {
    const text = `In all ${o}12,012.2${c}.\n\n${table(`| **beans** | ${o}320.5${c} |`, `| cold\\*brew | ${o}11,684.70${c} |`)}\n\nMost by far: ${o}97%${c}.`;
    const found = tableOf(text, step, 'model');
    expect(names(found)).toEqual(['cold*brew', 'beans']);
    expect(found?.lines.map(({ claims }) => claims)).toEqual([
      [undefined, 2],
      [undefined, 1],
    ]);
    expect(found).toMatchObject({ next: 3, after: `\nMost by far: ${o}97%${c}.` });
  });
  it('is none if a model wrote something else than the rows', () => {
    expect(tableOf(table('| beans | 320.50 |', '| tea | 11684.70 |'), step, 'model')).toBeNull();
    expect(tableOf(table('| beans | 321 |'), step, 'model')).toBeNull();
    expect(tableOf(table('| beans | 320.50 |', '| beans | 320.50 |'), step, 'model')).toBeNull();
    expect(tableOf(table('| beans | about 320 |'), step, 'model')).toBeNull();
    expect(tableOf('| category |\n|---|\n| beans |', step, 'model')).toBeNull();
    expect(tableOf(table(`| ${o}beans | 320.50${c} |`), step, 'model')).toBeNull();
    expect(tableOf('Beans made most.', step, 'model')).toBeNull();
  });
  it('is none if the service left rows out', () => {
    expect(tableOf(table('| beans | 320.50 |'), step, 'service')).toBeNull();
  });
});

describe('firstOf', () => {
  const columns = [{ name: 'city', type: 'varchar' }, { name: 'n', type: 'bigint' }];
  const data = Array.from({ length: 12 }, (_, index) => ({ city: `c${index}`, n: index }));
  it('is the largest bars, as the chart has them', () => {
    expect(firstOf({ columns, data, query: 'SELECT city, n FROM x ORDER BY city' }, 2).map(({ row }) => row['n'])).toEqual([11, 10]);
  });
});
