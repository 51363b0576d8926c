import * as vega from 'vega';
import { expressionInterpreter } from 'vega-interpreter';
import { compile } from 'vega-lite';
import { describe, expect, it } from 'vitest';
import { choose, type Column, figureOf, inOrder, type Kind, type Row } from './choose';
import { type Look, moment, notation, specOf } from './spec';

const look: Look = { text: '#000', quiet: '#555', line: '#eee', ground: '#fff', series: ['#1', '#2', '#3', '#4', '#5', '#6'], font: 'x' };
const columns = (...pairs: [string, string][]): Column[] => pairs.map(([name, type]) => ({ name, type }));
const rows = (names: string[], ...values: unknown[][]): Row[] => values.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]])));

const months = columns(['month', 'date'], ['total amount', 'double']);
const monthRows = rows(['month', 'total amount'], ['2026-01-01', 1], ['2026-02-01', 2.5], ['2026-03-01', null]);
const countries = columns(['country', 'varchar'], ['n', 'decimal(12,2)']);

describe('choose', () => {
  it('shows one cell as a figure', () => {
    expect(figureOf(columns(['n', 'bigint']), [{ n: 18 }])?.value).toBe(18);
    expect(choose(columns(['n', 'bigint']), [{ n: 18 }])).toBeNull();
  });
  it('draws a line over time, also over years', () => {
    expect(choose(months, monthRows)).toMatchObject({ kind: 'line', x: { name: 'month' }, y: { name: 'total amount' } });
    expect(choose(columns(['year', 'bigint'], ['n', 'bigint']), rows(['year', 'n'], [2024, 1], [2025, 2]))).toMatchObject({ kind: 'line', x: { name: 'year' } });
    expect(choose(columns(['year', 'bigint'], ['n', 'bigint']), rows(['year', 'n'], [1, 1], [2, 2]))?.kind).not.toBe('line');
  });
  it('draws one line for each category', () => {
    const chart = choose(columns(['month', 'date'], ['country', 'varchar'], ['n', 'bigint']), rows(['month', 'country', 'n'], ['2026-01-01', 'A', 1], ['2026-01-01', 'B', 2]));
    expect(chart).toMatchObject({ kind: 'line', series: { name: 'country' } });
  });
  it('draws bars for categories and points for two numbers', () => {
    expect(choose(countries, rows(['country', 'n'], ['A', '1.50'], ['B', '2.00']))?.kind).toBe('bar');
    expect(choose(columns(['price', 'double'], ['weight', 'double']), rows(['price', 'weight'], [1, 2], [3, 4]))?.kind).toBe('point');
  });
  it('draws nothing where nothing fits', () => {
    expect(choose(columns(['a', 'varchar'], ['b', 'varchar']), rows(['a', 'b'], ['x', 'y'], ['z', 'w']))).toBeNull();
    expect(choose(countries, [])).toBeNull();
    expect(choose(countries, rows(['country', 'n'], ['A', 1], ['A', 2]))).toBeNull();
    expect(choose(columns(['order_id', 'bigint'], ['ordered_on', 'date'], ['customer', 'varchar'], ['product', 'varchar'], ['amount', 'double']), rows(['order_id'], [1], [2]))).toBeNull();
  });
});

const compiled = (cols: Column[], data: Row[], kind?: Kind, ordered = false) => {
  const chart = choose(cols, data);
  if (!chart) throw new Error('no chart');
  const warnings: unknown[] = [];
  const logger = { level: () => logger, error: (...all: unknown[]) => (warnings.push(all), logger), warn: (...all: unknown[]) => (warnings.push(all), logger), info: () => logger, debug: () => logger };
  const drawing = specOf(chart, kind ?? chart.kind, chart.measures[0] ?? chart.y, data, look, ordered);
  compile(drawing.spec, { logger: logger as never });
  return { ...drawing, warnings, values: (drawing.spec as { data: { values: Record<string, unknown>[] } }).data.values };
};

describe('specOf', () => {
  it('makes specifications that Vega-Lite takes without a warning', () => {
    const two = columns(['month', 'date'], ['a', 'bigint'], ['b', 'bigint']);
    const twoRows = rows(['month', 'a', 'b'], ['2026-01-01', 1, 2], ['2026-02-01', 2, 3]);
    const all: [Column[], Row[], Kind?][] = [
      [months, monthRows],
      [months, monthRows, 'bar'],
      [two, twoRows],
      [countries, rows(['country', 'n'], ['A', '1.50'], [null, '2.00'])],
      [columns(['country', 'varchar'], ['n', 'double'], ['m', 'double']), rows(['country', 'n', 'm'], ['A', 1, 2], ['B', 2, 3]), 'point'],
      [columns(['price', 'double'], ['weight', 'double']), rows(['price', 'weight'], [1, 2], [3, 4])],
      [columns(['a', 'varchar'], ['b', 'varchar'], ['n', 'bigint']), rows(['a', 'b', 'n'], ['x', 'p', 1], ['y', 'q', 2])],
    ];
    for (const [cols, data, kind] of all) expect(compiled(cols, data, kind).warnings).toEqual([]);
  });
  it('never uses the name of a column as a field', () => {
    const { values, warnings } = compiled(columns(['a.b[0]', 'varchar'], ["n'\\", 'bigint']), rows(['a.b[0]', "n'\\"], ['<script>', 1], ['B', 2]));
    expect(Object.keys(values[0] ?? {})).toEqual(['x', 'y', 'label', 'value']);
    expect(warnings).toEqual([]);
  });
  it('keeps the 30 largest bars and says so', () => {
    const data = Array.from({ length: 40 }, (_, index) => ({ country: `c${index}`, n: index }));
    const { values, notes } = compiled(countries, data);
    expect(values).toHaveLength(30);
    expect(notes.join()).toContain('30 largest of 40');
  });
  it('draws bars in the order of the statement, or by size', () => {
    const data = rows(['country', 'n'], ['A', '1.50'], ['C', '3.00'], ['B', '2.00']);
    const bars = (ordered: boolean) => (compiled(countries, data, 'bar', ordered).spec as unknown as { encoding: { y: { sort: string[] } } }).encoding.y.sort;
    expect(bars(false)).toEqual(['C', 'B', 'A']);
    expect(bars(true)).toEqual(['A', 'C', 'B']);
    const chart = choose(countries, data);
    for (const ordered of [true, false]) expect(chart && inOrder(chart, data, ordered).map((row) => row['country'])).toEqual(bars(ordered));
    const many = Array.from({ length: 40 }, (_, index) => ({ country: `c${index}`, n: index }));
    expect(compiled(countries, many, 'bar', true).values[0]?.['x']).toBe('c10');
  });
  it('shows rows over time from the first to the last', () => {
    const data = rows(['month', 'total amount'], ['2026-02-01', 2], ['2026-01-01', 1]);
    const chart = choose(months, data);
    expect(chart && inOrder(chart, data, false).map((row) => row['month'])).toEqual(['2026-01-01', '2026-02-01']);
  });
  it('writes figures as the cells do', () => {
    expect(compiled(countries, rows(['country', 'n'], ['A', '11684.7'], ['B', '2.00'])).values.map((point) => point['value'])).toEqual(['11,684.70', '2.00']);
    expect(compiled(months, monthRows).values.map((point) => point['value'])).toEqual(['1', '2.5']);
  });
  it('has one notation on an axis, that of its largest figure', () => {
    const axis = (cols: Column[], data: Row[]) => (compiled(cols, data).spec as unknown as { encoding: Record<'x' | 'y', { axis: { labelExpr?: string } }> }).encoding;
    expect(axis(countries, rows(['country', 'n'], ['A', 8000], ['B', -12_000])).x.axis.labelExpr).toBe(notation(12_000));
    expect(axis(countries, rows(['country', 'n'], ['A', 8000], ['B', 9999])).x.axis.labelExpr).toBe(notation(9999));
    const stacked = columns(['a', 'varchar'], ['b', 'varchar'], ['n', 'bigint']);
    expect(axis(stacked, rows(['a', 'b', 'n'], ['x', 'p', 6000], ['x', 'q', 6000], ['y', 'q', 1])).x.axis.labelExpr).toBe(notation(12_000));
    const both = axis(columns(['price', 'double'], ['weight', 'double']), rows(['price', 'weight'], [1, 20_000], [3, 40_000]));
    expect([both.x.axis.labelExpr, both.y.axis.labelExpr]).toEqual([notation(3), notation(40_000)]);
    expect(notation(9999)).not.toBe(notation(10_000));
  });
  it('names each month, as it is drawn on the page', async () => {
    const labels = async (data: Row[]) => {
      const { spec } = compiled(months, data);
      const view = new vega.View(vega.parse(compile(spec).spec, undefined, { ast: true }), { renderer: 'none', expr: expressionInterpreter } as vega.ViewOptions);
      return [...(await view.toSVG()).matchAll(/<text[^>]*>(.*?)<\/text>/g)].map(([, text]) => text?.replace(/<[^>]*>/g, ' ').trim().replace(/ +/g, ' ')).filter((text) => text && /[A-Z]|20\d\d/.test(text));
    };
    const month = (name: string, amount: number) => ({ month: `${name}-01`, 'total amount': amount });
    expect(await labels([month('2026-11', 1), month('2026-12', 2), month('2027-01', 3), month('2027-03', 4)])).toEqual(['Nov 2026', 'Dec 2026', 'Jan 2027', 'Mar 2027']);
    expect(await labels([month('2026-02', 1), month('2026-03', 2), month('2026-05', 3)])).toEqual(['Feb 2026', 'Mar', 'May']);
    expect((await labels(Array.from({ length: 30 }, (_, at) => month(`${2022 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`, at)))).length).toBeGreaterThan(2);
    expect((await labels([month('2026-11', 1), { month: '2026-11-15', 'total amount': 2 }])).length).toBeGreaterThan(1);
  });
  it('adds small series up, unless they cannot be added', () => {
    const data = Array.from({ length: 9 }, (_, index) => ({ month: '2026-01-01', s: `s${index}`, n: index, 'average n': index }));
    const sum = compiled(columns(['month', 'date'], ['s', 'varchar'], ['n', 'bigint']), data);
    expect(sum.values.find((point) => point['s'] === 'other')?.['y']).toBe(0 + 1 + 2 + 3);
    const average = compiled(columns(['month', 'date'], ['s', 'varchar'], ['average n', 'double']), data);
    expect(average.values).toHaveLength(5);
    expect(average.notes.join()).toContain('not drawn');
  });
});

describe('moment', () => {
  it('does not move by a time zone', () => {
    expect(moment('2026-03-01')).toBe(Date.UTC(2026, 2, 1));
    expect(moment('2026-03-01T10:00:00')).toBe(Date.UTC(2026, 2, 1, 10));
    expect(moment('2026-03-01 10:00:00+00')).toBe(Date.UTC(2026, 2, 1, 10));
    expect(moment(2026)).toBe(Date.UTC(2026, 0, 1));
    expect(moment('soon')).toBeUndefined();
  });
});
