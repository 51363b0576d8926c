import type { Completions, Suggestion } from '~/ui/Editor';
import { functions, keywords } from '~/ui/sqlWords';
import { nameOf, quoteName, type Source, sourcesOf, statements, type Token, tokens } from './tokens';

export type Column = { name: string; type: string };
export type Table = { owner: string; namespace: string; name: string; rows: number };

/** What names can mean. */
export type Names = {
  /** Whose namespaces are meant where no owner is named, and in which namespace names without one are looked up. */
  owner: string;
  namespace: string | undefined;
  tables: readonly Table[];
  /** The columns of a dataset, as far as they are known. */
  columns: (table: Table) => readonly Column[];
};

const same = (a: string | undefined, b: string | undefined) => a !== undefined && b !== undefined && a.toLowerCase() === b.toLowerCase();

/** The dataset that a name in a statement means. */
export function tableOf(parts: readonly string[], names: Names): Table | undefined {
  const [name, namespace = names.namespace, owner = names.owner] = parts.toReversed();
  return names.tables.find((table) => same(table.name, name) && same(table.namespace, namespace) && same(table.owner, owner));
}

/** The name by which a statement reaches a dataset from where it looks names up. */
export function nameFrom(table: Table, names: Pick<Names, 'owner' | 'namespace'>): string {
  const parts = [table.owner, table.namespace, table.name].map(quoteName);
  if (!same(table.owner, names.owner)) return parts.join('.');
  return same(table.namespace, names.namespace) ? (parts[2] ?? '') : parts.slice(1).join('.');
}

/** The datasets that the statement at a place reads. */
export function tablesAt(sql: string, at: number, names: Names): Table[] {
  return sourcesAt(sql, at).flatMap((source) => tableOf(source.parts, names) ?? []);
}

function sourcesAt(sql: string, at: number): Source[] {
  const part = statements(sql).find(({ from, to }) => at >= from && at <= to + 1);
  return part ? sourcesOf(part.text) : [];
}

/** What can stand at a place of a statement. */
export function complete(sql: string, at: number, names: Names): Completions | null {
  const all = tokens(sql).filter(({ from }) => from < at);
  const current = all.at(-1);
  if (current && ['string', 'comment', 'parameter', 'number'].includes(current.kind) && current.to >= at && (current.kind !== 'comment' || current.to > at || current.text.startsWith('--'))) return null;
  const typing = current && current.to >= at && (current.kind === 'word' || current.kind === 'quoted') ? current : undefined;
  const before = typing ? all.slice(0, -1) : all;
  const from = typing?.from ?? at;

  const path: string[] = [];
  let rest = before.length - 1;
  while (before[rest]?.text === '.') {
    const word = before[rest - 1];
    if (!word || (word.kind !== 'word' && word.kind !== 'quoted')) break;
    path.unshift(nameOf(word));
    rest -= 2;
  }
  const sources = sourcesAt(sql, at);
  const inFrom = wantsTable(before.slice(0, rest + 1));
  const options = path.length > 0 ? below(path, names, sources, inFrom) : inFrom ? tableOptions(names) : valueOptions(names, sources);
  if (options.length === 0) return null;
  return { from, options, whole: typing?.kind === 'quoted' ? /^"[^"]*"?$/ : /^[\p{L}_][\p{L}\p{N}_$]*$/u, typed: typing !== undefined || path.length > 0 };
}

/** Whether a dataset is to be named next: after FROM or JOIN, or after a comma of that list. */
function wantsTable(before: readonly Token[]): boolean {
  const last = before.at(-1);
  const word = last?.kind === 'word' ? last.text.toLowerCase() : '';
  if (['from', 'join', 'describe', 'summarize'].includes(word)) return true;
  if (last?.text !== ',') return false;
  let depth = 0;
  for (const token of before.toReversed()) {
    if (token.text === ')') depth += 1;
    if (token.text === '(') depth -= 1;
    if (depth < 0) return false;
    if (depth > 0 || token.kind !== 'word') continue;
    const clause = token.text.toLowerCase();
    if (clause === 'from' || clause === 'join') return true;
    if (['select', 'where', 'by', 'on', 'having', 'qualify', 'using', 'values'].includes(clause)) return false;
  }
  return false;
}

function below(path: readonly string[], names: Names, sources: readonly Source[], inFrom: boolean): Suggestion[] {
  const [first] = path;
  if (!inFrom) {
    const source = sources.find((one) => (path.length === 1 && same(one.alias, first)) || (same(one.parts.at(-1), path.at(-1)) && path.length <= 3));
    const table = source ? tableOf(source.parts, names) : tableOf(path, names);
    if (table) return columnOptions(names.columns(table));
  }
  const tables = names.tables.filter((table) =>
    path.length === 1 ? same(table.namespace, first) && same(table.owner, names.owner) : path.length === 2 && same(table.owner, first) && same(table.namespace, path[1]),
  );
  const found = tables.map((table) => ({ label: table.name, insert: quoteName(table.name), kind: 'dataset' as const, detail: '' }));
  if (path.length !== 1) return found;
  const owned = new Set(names.tables.filter((table) => same(table.owner, first)).map((table) => table.namespace));
  return [...found, ...[...owned].map((name) => ({ label: name, insert: quoteName(name), kind: 'namespace' as const, detail: '' }))];
}

function tableOptions(names: Names): Suggestion[] {
  return names.tables.map((table) => {
    const insert = nameFrom(table, names);
    const near = !insert.includes('.') || (same(table.owner, names.owner) && same(table.namespace, names.namespace));
    return { label: near ? table.name : insert, insert, kind: 'dataset', detail: near ? '' : `${table.owner}/${table.namespace}`, rank: near ? 3 : same(table.owner, names.owner) ? 2 : 1 };
  });
}

function columnOptions(columns: readonly Column[], rank = 3): Suggestion[] {
  return columns.map((column) => ({ label: column.name, insert: quoteName(column.name), kind: 'column', detail: column.type.toLowerCase(), rank }));
}

const fixed: readonly Suggestion[] = [
  ...functions.map(([name, args]) => ({ label: name, insert: `${name}()`, kind: 'function' as const, detail: `(${args})`, rank: 0 })),
  ...keywords.map((word) => ({ label: word, insert: word, kind: 'keyword' as const, detail: '', rank: -1 })),
];

function valueOptions(names: Names, sources: readonly Source[]): Suggestion[] {
  const seen = new Set<string>();
  const columns = sources
    .flatMap((source) => {
      const table = tableOf(source.parts, names);
      return table ? columnOptions(names.columns(table)) : [];
    })
    .filter(({ label }) => !seen.has(label.toLowerCase()) && seen.add(label.toLowerCase()));
  const aliases = sources.flatMap((source) => {
    const name = source.alias ?? source.parts.at(-1);
    return name ? [{ label: name, insert: quoteName(name), kind: 'dataset' as const, detail: source.alias ? source.parts.join('.') : '', rank: 1 }] : [];
  });
  return [...columns, ...aliases, ...fixed];
}
