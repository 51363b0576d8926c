import type { Schemas } from '~/api/client';

export type DocumentRecord = Schemas['DocumentRecord'];
export type DocumentField = Schemas['DocumentField'];

/** Positions of the service count code points. A string counts UTF-16 units, of which an emoji has two. */
export function unitsOf(text: string, points: number): number {
  let at = 0;
  for (let left = points; left > 0 && at < text.length; left -= 1) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

/** A part of a text, split at a quote in it. `isCut` says at which ends there is more text. */
export type Cut = { before: string; quote: string; after: string; isCut: { before: boolean; after: boolean } };

/**
 * Splits a text at a quote, with at most so many units around it: a document of HTML is one page, of up to 32 MiB. The parts begin and end
 * with a whole line if one is near, and never within a character. Without a quote it is the beginning of the text.
 */
export function cutAt(text: string, place: { from: number; to: number } | undefined, room: { before: number; after: number }): Cut {
  const from = place ? unitsOf(text, place.from) : 0;
  const to = place ? from + unitsOf(text.slice(from), place.to - place.from) : 0;
  const begin = place ? lineStart(text, from - room.before, from) : 0;
  const end = lineEnd(text, to + room.after, to);
  return { before: text.slice(begin, from), quote: text.slice(from, to), after: text.slice(to, end), isCut: { before: begin > 0, after: end < text.length } };
}

/** How far a cut moves to the end of a line. */
const nearLine = 200;

function lineStart(text: string, at: number, quote: number): number {
  if (at <= 0) return 0;
  const line = text.indexOf('\n', at);
  return whole(text, line >= 0 && line < Math.min(at + nearLine, quote) ? line + 1 : at);
}

function lineEnd(text: string, at: number, quote: number): number {
  if (at >= text.length) return text.length;
  const line = text.lastIndexOf('\n', at);
  return whole(text, line >= Math.max(at - nearLine, quote) ? line : at);
}

/** A position that is not between the two halves of a character. */
function whole(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}

/** Whether somebody should look at a field. One that a person corrected is settled. */
export const isDoubted = (field: DocumentField) => field.flag !== undefined && !field.corrected;

export const doubtsOf = (record: DocumentRecord) => Object.values(record.fields).filter(isDoubted).length;

/**
 * The fields of a record in the order of the columns, then those that are no columns. Fields of the definition about which the model said nothing are
 * among them, without a quote.
 */
export function fieldsOf(record: DocumentRecord, columns: readonly string[], defined: readonly string[]): (readonly [string, DocumentField])[] {
  const rank = new Map(columns.map((name, index) => [name.toLowerCase(), index]));
  const place = (name: string) => rank.get(name.toLowerCase()) ?? columns.length;
  const silent = defined.filter((name) => record.fields[name] === undefined).map((name) => [name, { quote: '' }] as const);
  return [...Object.entries(record.fields), ...silent].sort(([a], [b]) => place(a) - place(b));
}

/** The values by which a person tells a record from others. */
export const nameOf = (record: DocumentRecord, columns: readonly string[]) =>
  fieldsOf(record, columns, [])
    .flatMap(([, { value }]) => value ?? [])
    .slice(0, 3)
    .join(' · ');
