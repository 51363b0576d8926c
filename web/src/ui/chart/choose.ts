import { isKeyLike, kindOf } from '~/format/value';
import { firstOrder } from '~/ui/sqlText';

export type Column = { name: string; type: string };
export type Row = Readonly<Record<string, unknown>>;
export type Kind = 'line' | 'bar' | 'point';

export type Chart = {
  kind: Kind;
  /** The kinds that fit these columns; the first is the best. */
  kinds: Kind[];
  x: Column;
  /** The figures to choose from; the first is drawn. Several are drawn together if `together`. */
  measures: Column[];
  together: boolean;
  series?: Column;
  /** The second figure of a chart of points. */
  y: Column;
};

export const mostBars = 30;
export const mostSeries = 6;

const timeName = /(^|[\W_])(year|jahr|année)s?$/i;

/** The only cell of a result, if it has just one. */
export function figureOf(columns: readonly Column[], rows: readonly Row[]): { column: Column; value: unknown } | undefined {
  const column = columns[0];
  return columns.length === 1 && rows.length === 1 && column ? { column, value: rows[0]?.[column.name] } : undefined;
}

/** The chart that fits the columns: a line over time, bars for categories, points for two numbers; none if nothing fits. */
export function choose(columns: readonly Column[], rows: readonly Row[]): Chart | null {
  if (rows.length < 2 || columns.length > 12) return null;
  const numbers = columns.filter((column) => isNumber(column, rows));
  const times = columns.filter((column) => isTime(column, rows));
  const categories = columns.filter((column) => !numbers.includes(column) && !times.includes(column) && ['text', 'boolean'].includes(kindOf(column.type)));
  const measures = numbers.filter((column) => !times.includes(column) && !(isKeyLike(column.name) && numbers.length > 1));
  const [first, second] = measures;
  const time = times[0];
  const category = categories[0];
  if (!first || columns.length - measures.length > 2) return null;

  if (time && categories.length <= 1 && times.length === 1) {
    const series = category;
    if (!series && distinct(rows, time) < rows.length) return null;
    return { kind: 'line', kinds: ['line', 'bar'], x: time, y: first, measures, together: !series && measures.length > 1 && measures.length <= mostSeries, ...(series && { series }) };
  }
  if (times.length > 0) return null;
  if (category && categories.length === 1) {
    if (distinct(rows, category) < rows.length) return null;
    return { kind: 'bar', kinds: second ? ['bar', 'point'] : ['bar'], x: category, y: first, measures, together: false };
  }
  if (category && categories.length === 2) {
    const [a, b] = categories as [Column, Column];
    const [x, series] = distinct(rows, a) >= distinct(rows, b) ? [a, b] : [b, a];
    return { kind: 'bar', kinds: ['bar'], x, y: first, measures, together: false, series };
  }
  if (!category && second && measures.length === columns.length) return { kind: 'point', kinds: ['point'], x: first, y: second, measures, together: false };
  return null;
}

/** Names that sort as what they mean: 2026-01, 10–19, > 30, Q1. */
const ordinal = /^[<>≤≥]?\s*\d|^(q|h|w|kw|quarter|week)\s?\d/i;

/**
 * Whether the chart of an answer has the order of its statement. The rules order by the names of categories if a question says nothing about it:
 * then the largest bar is the first, unless the names have an order of their own.
 */
export function keepsOrder(chart: Chart | null, rows: readonly Row[], query: string): boolean {
  const by = firstOrder(query);
  if (!chart || chart.kind !== 'bar' || by?.toLowerCase() !== chart.x.name.toLowerCase()) return by !== undefined;
  const names = rows.map((row) => row[chart.x.name]).filter((name) => name !== null && name !== undefined);
  return names.every((name) => ordinal.test(String(name)));
}

/** The rows as the chart shows them: as they are if the statement orders them, otherwise by time, or with the largest bar first. */
export function inOrder(chart: Chart, rows: readonly Row[], ordered: boolean): readonly Row[] {
  if (ordered || chart.kind === 'point') return rows;
  const place = (row: Row) => String(row[chart.x.name]);
  if (chart.kind === 'line') return rows.toSorted((a, b) => (place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : 0));
  const totals = new Map<string, number>();
  for (const row of rows) totals.set(place(row), (totals.get(place(row)) ?? 0) + Math.abs(Number(row[chart.y.name] ?? 0)));
  return rows.toSorted((a, b) => (totals.get(place(b)) ?? 0) - (totals.get(place(a)) ?? 0));
}

function isNumber(column: Column, rows: readonly Row[]): boolean {
  return kindOf(column.type) === 'number' && !isTime(column, rows);
}

/** A date, a time, or a number that is a year by its name and its values. */
function isTime(column: Column, rows: readonly Row[]): boolean {
  if (/^(date|timestamp)/i.test(column.type)) return true;
  return timeName.test(column.name) && kindOf(column.type) === 'number' && rows.every((row) => isYear(row[column.name]));
}

function isYear(value: unknown): boolean {
  const year = Number(value);
  return value !== null && Number.isInteger(year) && year >= 1000 && year <= 2999;
}

function distinct(rows: readonly Row[], column: Column): number {
  return new Set(rows.map((row) => String(row[column.name]))).size;
}
