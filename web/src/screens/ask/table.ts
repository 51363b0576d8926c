import { kindOf, valueText } from '~/format/value';
import { choose, type Column, inOrder, keepsOrder, type Row } from '~/ui/chart/choose';
import { closing, opening } from './claims';

type Step = { columns: readonly Column[]; data: readonly Row[]; query: string };
/** A row of the step, with the number of the claim that each of its cells is. */
type Line = { row: Row; claims: readonly (number | undefined)[] };

export type StepTable = {
  before: string;
  after: string;
  /** The number of the first claim behind the table. */
  next: number;
  heads: string[];
  lines: Line[];
};

/**
 * The table of an answer, if its rows are rows of the step. Then it is drawn from the step: with figures as in the grid, and in the order
 * of the chart. A table that a model wrote must agree with the step in each cell; that of the service does, and only rounds.
 */
export function tableOf(text: string, step: Step, written: 'service' | 'model'): StepTable | null {
  const lines = text.split('\n');
  const start = lines.findIndex((line, index) => isLine(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[index + 1] ?? ''));
  if (start < 0) return null;
  let end = start + 2;
  while (end < lines.length && isLine(lines[end] ?? '')) end += 1;
  const heads = cellsOf(lines[start] ?? '');
  if (heads.length !== step.columns.length || heads.some((head) => head.includes(opening))) return null;

  let next = count(lines.slice(0, start).join('\n'));
  const free = new Set(step.data);
  const found: Line[] = [];
  for (const line of lines.slice(start + 2, end)) {
    const cells = cellsOf(line);
    const row = [...free].find((one) => written === 'service' || (cells.length === heads.length && step.columns.every((column, at) => same(cells[at] ?? '', one[column.name], column))));
    if (!row || cells.some((cell) => count(cell) > 1 || count(cell) !== count(cell, closing))) return null;
    free.delete(row);
    found.push({ row, claims: cells.map((cell) => (cell.includes(opening) ? next++ : undefined)) });
  }
  if (found.length === 0 || (written === 'service' && free.size > 0)) return null;
  return { before: lines.slice(0, start).join('\n'), after: lines.slice(end).join('\n'), next, heads: heads.map(bare), lines: arranged(found, step) };
}

/** The first rows of a step, in the order of its chart. Nothing claims them. */
export function firstOf(step: Step, most: number): Line[] {
  return arranged(step.data.map((row) => ({ row, claims: [] })), step).slice(0, most);
}

/** As the chart has them. Without a chart, as the statement orders them, or else as they were written. */
function arranged(lines: Line[], step: Step): Line[] {
  const chart = choose(step.columns, step.data);
  const ordered = keepsOrder(chart, step.data, step.query);
  if (!chart && !ordered) return lines;
  const places = new Map((chart ? inOrder(chart, step.data, ordered) : step.data).map((row, index) => [row, index]));
  return lines.toSorted((a, b) => (places.get(a.row) ?? 0) - (places.get(b.row) ?? 0));
}

const isLine = (line: string) => line.trimStart().startsWith('|');
const count = (text: string, sign = opening) => text.split(sign).length - 1;
const cellsOf = (line: string) => line.trim().replace(/^\||(?<!\\)\|$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim());
/** Without marks and markup. */
const bare = (text: string) => text.replaceAll(opening, '').replaceAll(closing, '').replace(/[\\`*]/g, '').replace(/\s+/g, ' ').trim();

function same(cell: string, value: unknown, column: Column): boolean {
  const text = bare(cell);
  if (value === null || value === undefined) return ['', '(empty)', '-', '–', 'null'].includes(text.toLowerCase());
  if (kindOf(column.type) !== 'number') return text === bare(valueText(value));
  if (!/^-?[\d,]+(\.\d+)?$/.test(text)) return false;
  const places = text.split('.')[1]?.length ?? 0;
  // A fraction may be rounded, a whole number is exact.
  return Math.abs(Number(text.replaceAll(',', '')) - Number(value)) <= (places > 0 ? 0.5 * 10 ** -places * (1 + 1e-9) : 0);
}
