import type { TopLevelSpec } from 'vega-lite';
import { formatCell, kindOf } from '~/format/value';
import { t } from '~/texts';
import { type Chart, type Column, type Kind, mostBars, mostSeries, type Row } from './choose';

/** Colours and type of the page, which Vega cannot read from style sheets. */
export type Look = { text: string; quiet: string; line: string; ground: string; series: string[]; font: string };

export type Drawing = { spec: TopLevelSpec; notes: string[]; height: number };

type Point = { x: string | number; y: number; s?: string };
/** With the texts that a person reads when pointing at it. */
type Shown = Point & { label: string; value: string };

/** How an axis writes its figures: 800 and 1,500, or 2k and 12k. The largest decides for all of them, so that an axis has one notation. */
export function notation(largest: number): string {
  return largest >= 10_000 ? "replace(format(datum.value, '~s'), 'G', 'B')" : "format(datum.value, ',~f')";
}

const mostMonths = 24;

/**
 * The ticks of rows that stand for months: one below each of them. Labels that find no place are left out, so each has its year unless all
 * are of the same one; the first is never left out.
 */
function monthly(points: readonly Point[]): object {
  const moments = [...new Set(points.map(({ x }) => Number(x)))].toSorted((a, b) => a - b);
  const first = (moment: number) => new Date(moment).getUTCDate() === 1 && moment % 86_400_000 === 0;
  if (moments.length < 2 || moments.length > mostMonths || !moments.every(first)) return {};
  // The ticks are dates, not numbers: the chart library draws an empty axis for numbers when the page may not evaluate code.
  const values = moments.map((one) => ({ year: new Date(one).getUTCFullYear(), month: new Date(one).getUTCMonth() + 1, utc: true }));
  const both = "[utcFormat(datum.value, '%b'), utcFormat(datum.value, '%Y')]";
  const several = new Set(values.map(({ year }) => year)).size > 1;
  return { values, labelExpr: several ? both : `datum.index == 0 ? ${both} : utcFormat(datum.value, '%b')`, labelSeparation: 4 };
}

/** What does not add up: an average of others is no sum of theirs. */
const notAdditive = /\b(avg|average|mean|median|min|minimum|max|maximum|share|percent|percentage|rate|ratio|price|smallest|largest)\b/i;

/**
 * The chart as Vega-Lite. The values get names of our own, so that a column can be called anything; its name appears only as a title.
 * If the rows are `ordered`, so are the bars; otherwise the largest is the first.
 */
export function specOf(chart: Chart, kind: Kind, measure: Column, rows: readonly Row[], look: Look, ordered = false): Drawing {
  const notes: string[] = [];
  const time = /^(date|timestamp)/i.test(chart.x.type) || (kindOf(chart.x.type) === 'number' && chart.kind === 'line');
  const pair = chart.kind === 'point' ? [chart.x, chart.y] : chart.measures;
  const points = kind === 'point' ? pairs(pair, rows) : measured(chart, kind, measure, rows, time);
  const [values, others] = kind === 'point' ? [points, ''] : limitSeries(points, measure, chart);
  if (others) notes.push(others);

  const category = kind !== 'point' && !time;
  let shown = values;
  let order: string[] = [];
  if (category) {
    const totals = total(values, (point) => String(point.x));
    const bySize = [...totals.entries()].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    order = ordered ? [...new Set(points.map((point) => String(point.x)))].filter((name) => totals.has(name)) : bySize;
    if (order.length > mostBars) {
      notes.push(t.ask.chart.largest(String(mostBars), order.length.toLocaleString('en')));
      const kept = new Set(bySize.slice(0, mostBars));
      order = order.filter((name) => kept.has(name));
      shown = values.filter((point) => kept.has(String(point.x)));
    }
  }
  const several = shown.some((point) => point.s !== undefined);
  const names = [...total(shown, (point) => point.s ?? '').entries()].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  if (names.includes(t.ask.chart.other)) names.push(...names.splice(names.indexOf(t.ask.chart.other), 1));
  const height = category ? Math.max(80, order.length * 26 + 40) : 260;
  const date = time ? dateFormat(shown) : undefined;
  // The same text as in the cells of a grid.
  const text = (value: number, column: Column | undefined) => formatCell(value, column?.type ?? 'double', column?.name);
  const columnOf = (point: Point) => (kind === 'point' ? pair[1] : chart.together && kind === 'line' ? chart.measures.find((one) => one.name === point.s) : measure);
  const data = shown.map((point): Shown => ({ ...point, label: typeof point.x === 'string' ? point.x : date ? date.format(point.x) : text(point.x, pair[0]), value: text(point.y, columnOf(point)) }));
  // Bars of several colours stand on each other.
  const sizes = kind === 'bar' && several ? total(shown, (point) => String(point.x)).values() : shown.map((point) => Math.abs(point.y));
  const largest = (of: Iterable<number>) => [...of].reduce((most, one) => Math.max(most, one), 0);

  const figure = { field: 'y', type: 'quantitative', title: chart.together && kind === 'line' ? null : measure.name, axis: { grid: true, labelExpr: notation(largest(sizes)), tickCount: 5 } };
  const across = {
    line: { field: 'x', type: 'temporal', title: null, scale: { type: 'utc' }, axis: { grid: false, labelOverlap: true, ...monthly(shown) } },
    bar: { field: 'label', type: 'ordinal', title: null, sort: { field: 'x', op: 'min' }, axis: { grid: false, labelAngle: 0, labelOverlap: true } },
    point: { field: 'x', type: 'quantitative', title: pair[0]?.name, scale: { zero: false }, axis: { grid: true, labelExpr: notation(largest(shown.map((point) => Math.abs(Number(point.x))))), tickCount: 6 } },
  };
  const place = category
    ? { y: { field: 'x', type: 'nominal', title: null, sort: order, axis: { labelLimit: 180, grid: false } }, x: figure }
    : { x: across[kind], y: kind === 'point' ? { ...figure, title: pair[1]?.name, scale: { zero: false } } : figure };
  const colour = several && { color: { field: 's', type: 'nominal', title: null, scale: { domain: names, range: look.series.slice(0, names.length) }, legend: { orient: 'top', columns: 3, symbolType: 'circle', labelLimit: 140 } } };
  const tooltip = [
    { field: 'label', type: 'nominal', title: kind === 'point' ? pair[0]?.name : chart.x.name },
    ...(several ? [{ field: 's', type: 'nominal', title: chart.series?.name ?? t.ask.chart.measure }] : []),
    { field: 'value', type: 'nominal', title: kind === 'point' ? pair[1]?.name : several && chart.together ? ' ' : measure.name },
  ];
  const marks: Record<Kind, object> = {
    line: { type: 'line', strokeWidth: 2, point: data.length <= 100 ? { size: 30, filled: true } : false },
    bar: { type: 'bar', cornerRadiusEnd: 2 },
    point: { type: 'point', filled: true, opacity: 0.7, size: 50 },
  };
  const spec = {
    data: { values: data },
    width: 600,
    height,
    autosize: { type: 'fit', contains: 'padding' },
    padding: 4,
    background: 'transparent',
    mark: marks[kind],
    encoding: { ...place, ...colour, tooltip },
    config: {
      font: look.font,
      mark: { color: look.series[0] },
      view: { stroke: null },
      scale: { bandPaddingInner: 0.3, bandPaddingOuter: 0.15 },
      axis: { labelColor: look.quiet, titleColor: look.quiet, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400, gridColor: look.line, ticks: false, labelPadding: 8, domain: false },
      legend: { labelColor: look.text, labelFontSize: 12, symbolSize: 80 },
    },
  };
  return { spec: spec as unknown as TopLevelSpec, notes, height };
}

function measured(chart: Chart, kind: Kind, measure: Column, rows: readonly Row[], time: boolean): Point[] {
  const figures = chart.together && kind === 'line' ? chart.measures : [measure];
  const points: Point[] = [];
  for (const row of rows) {
    const x = time ? moment(row[chart.x.name]) : name(row[chart.x.name]);
    if (x === undefined) continue;
    for (const figure of figures) {
      const y = amount(row[figure.name]);
      if (y === undefined) continue;
      points.push({ x, y, ...(chart.series ? { s: name(row[chart.series.name]) } : figures.length > 1 && { s: figure.name }) });
    }
  }
  return points;
}

function pairs([a, b]: readonly Column[], rows: readonly Row[]): Point[] {
  return rows.flatMap((row) => {
    const x = amount(row[a?.name ?? '']);
    const y = amount(row[b?.name ?? '']);
    return x === undefined || y === undefined ? [] : [{ x, y }];
  });
}

/** More than six lines or colours cannot be told apart: the small ones become one, if they can be added up. */
function limitSeries(points: Point[], measure: Column, chart: Chart): [Point[], string] {
  const totals = total(points, (point) => point.s ?? '');
  if (totals.size <= mostSeries) return [points, ''];
  const kept = new Set([...totals.entries()].sort((a, b) => b[1] - a[1]).slice(0, mostSeries - 1).map(([one]) => one));
  const rest = (totals.size - kept.size).toLocaleString('en');
  const large = points.filter((point) => kept.has(point.s ?? ''));
  if (chart.together || notAdditive.test(measure.name)) return [large, t.ask.chart.left(rest)];
  const sums = new Map<string | number, number>();
  for (const point of points) if (!kept.has(point.s ?? '')) sums.set(point.x, (sums.get(point.x) ?? 0) + point.y);
  return [[...large, ...[...sums].map(([x, y]) => ({ x, y, s: t.ask.chart.other }))], t.ask.chart.otherNote(rest)];
}

function total(points: Point[], of: (point: Point) => string): Map<string, number> {
  const totals = new Map<string, number>();
  for (const point of points) totals.set(of(point), (totals.get(of(point)) ?? 0) + Math.abs(point.y));
  return totals;
}

function amount(value: unknown): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  const number = value === '' ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : undefined;
}

function name(value: unknown): string {
  return value === null || value === undefined ? t.ask.chart.empty : formatCell(value, 'varchar').slice(0, 100);
}

/** Times are drawn as they are written, whatever the zone of the browser. */
export function moment(value: unknown): number | undefined {
  if (value === null || value === undefined) return undefined;
  const text = String(value);
  if (/^\d{4}$/.test(text)) return Date.UTC(Number(text), 0, 1);
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return Date.parse(text);
  const zone = /(Z|[+-]\d\d(:?\d\d)?)$/.exec(text)?.[0];
  const at = Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00') + (zone ? '' : 'Z'));
  return Number.isNaN(at) ? undefined : at;
}

/** As short as the times allow: the year, the month, the day or the minute. */
function dateFormat(points: Point[]): Intl.DateTimeFormat {
  const rests = points.map((point) => new Date(Number(point.x)).toISOString());
  const all = (pattern: RegExp) => rests.every((text) => pattern.test(text));
  const base = { timeZone: 'UTC', year: 'numeric' } as const;
  if (all(/-01-01T00:00:00/) && points.length > 1) return new Intl.DateTimeFormat('en', base);
  if (all(/-01T00:00:00/)) return new Intl.DateTimeFormat('en', { ...base, month: 'short' });
  if (all(/T00:00:00/)) return new Intl.DateTimeFormat('en', { ...base, month: 'short', day: 'numeric' });
  return new Intl.DateTimeFormat('en', { ...base, month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
}
