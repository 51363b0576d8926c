import type { Schemas } from '~/api/client';
import type { SubError } from '~/api/errors';

type Semantics = Schemas['Semantics'];
export type Role = Schemas['ColumnRole'];
export type Fn = Schemas['MeasureFunction'];
type Source = Schemas['SuggestionSource'];

/** A list of words as a person writes it, with the list that it was made of: words with commas stay whole until somebody edits them. */
export type Words = { text: string; was: readonly string[] };

export type ColumnDraft = { role: Role; unit: string; synonyms: Words; notForFigures: boolean; said: boolean };
export type MeasureDraft = { key: string; name: string; synonyms: Words; function: Fn; expression: string; unit: string; source: Source };
export type JoinDraft = { key: string; columns: Words; to: string; keys: Words; source: Source };
/** What a person edits. `said` and `source` tell what is sent: the service drafts the rest again at every read. */
export type Draft = { row: string; rowSaid: boolean; columns: Record<string, ColumnDraft>; measures: MeasureDraft[]; joins: JoinDraft[] };

export const words = (list: readonly string[]): Words => ({ text: list.join(', '), was: list });

export function listOf({ text, was }: Words): string[] {
  if (text === was.join(', ')) return [...was];
  return [...new Set(text.split(',').map((word) => word.trim()).filter((word) => word !== ''))];
}

export function draftOf(saved: Semantics): Draft {
  return {
    row: saved.row,
    rowSaid: saved.rowSource === 'confirmed',
    columns: Object.fromEntries(
      Object.entries(saved.columns).map(([name, { role, unit, synonyms, notForFigures, source }]) => [name, { role, unit: unit ?? '', synonyms: words(synonyms), notForFigures, said: source === 'confirmed' }]),
    ),
    measures: saved.measures.map((one, at) => ({ key: `saved ${at}`, name: one.name, synonyms: words(one.synonyms), function: one.function, expression: one.expression, unit: one.unit ?? '', source: one.source })),
    joins: saved.joins.map((one, at) => ({ key: `saved ${at}`, columns: words(one.columns), to: one.to, keys: words(one.keys), source: one.source })),
  };
}

export function hasSynonym(draft: Draft, column: string, word: string): boolean {
  const known = draft.columns[column];
  return known === undefined || listOf(known.synonyms).some((one) => one.toLowerCase() === word.toLowerCase());
}

export function withSynonym(draft: Draft, column: string, word: string): Draft {
  const known = draft.columns[column];
  if (!known || hasSynonym(draft, column, word)) return draft;
  const all = [...listOf(known.synonyms), word];
  return { ...draft, columns: { ...draft.columns, [column]: { ...known, synonyms: words(all), said: true } } };
}

/** What is sent, and the keys of the entries in the order in which they are sent. */
export type Sent = { body: Schemas['SemanticsChange']; measures: string[]; joins: string[] };

/** Only what people said is sent. What is left out stays as drafted. */
export function sentOf(draft: Draft): Sent {
  const measures = draft.measures.filter((one) => one.source !== 'drafted');
  const joins = draft.joins.filter((one) => one.source !== 'drafted');
  return {
    measures: measures.map((one) => one.key),
    joins: joins.map((one) => one.key),
    body: {
      ...(draft.rowSaid && draft.row.trim() !== '' && { row: draft.row.trim() }),
      columns: Object.fromEntries(
        Object.entries(draft.columns)
          .filter(([, one]) => one.said)
          .map(([name, { role, unit, synonyms, notForFigures }]) => [name, { role, ...(unit.trim() && { unit: unit.trim() }), synonyms: listOf(synonyms), notForFigures }]),
      ),
      measures: measures.map(({ name, synonyms, function: fn, expression, unit, source }) => ({
        name: name.trim(),
        function: fn,
        synonyms: listOf(synonyms),
        ...(expression.trim() && { expression: expression.trim() }),
        ...(unit.trim() && { unit: unit.trim() }),
        source,
      })),
      joins: joins.map(({ columns, to, keys, source }) => ({ columns: listOf(columns), to: to.trim(), keys: listOf(keys), source })),
    },
  };
}

/** The faults of an answer by the fields of the page: `columns.NAME.role`, `measures.KEY.expression`, `row`. */
export class Faults {
  readonly #of = new Map<string, string>();
  /** Whether some fault belongs to no field of the page. */
  readonly others: boolean;

  constructor(faults: readonly SubError[], sent: Sent | undefined, fields: readonly string[]) {
    let others = false;
    for (const fault of faults) {
      const code = fault.code.replace(/\[(\d+)\]/g, '.$1').replace(/^(measures|joins)\.(\d+)/, (whole, list: 'measures' | 'joins', at: string) => {
        const key = sent?.[list][Number(at)];
        return key === undefined ? whole : `${list}.${key}`;
      });
      const field = fields.find((one) => code === one || code.startsWith(`${one}.`));
      if (field === undefined) others = true;
      else if (!this.#of.has(field)) this.#of.set(field, fault.message);
    }
    this.others = others;
  }

  at(field: string): string | undefined {
    return this.#of.get(field);
  }
}

/** Every field that can show a fault, the most exact ones first. */
export function fieldsOf(draft: Draft): string[] {
  return [
    'row',
    ...Object.keys(draft.columns).flatMap((name) => ['role', 'unit', 'synonyms'].map((part) => `columns.${name}.${part}`)),
    ...draft.measures.flatMap(({ key }) => ['name', 'unit', 'synonyms', 'function', 'expression'].map((part) => `measures.${key}.${part}`)),
    ...draft.joins.flatMap(({ key }) => ['columns', 'to', 'keys'].map((part) => `joins.${key}.${part}`)),
    ...Object.keys(draft.columns).map((name) => `columns.${name}`),
    ...draft.measures.map(({ key }) => `measures.${key}`),
    ...draft.joins.map(({ key }) => `joins.${key}`),
  ];
}
