import type { Schemas } from '~/api/client';

type Place = Schemas['ClaimPlace'];
type Citation = Schemas['Citation'];

export type Claim = { text: string; verified: boolean; sources: Citation[] };

/** Signs that no answer contains: they mark a claim in the text while Markdown is read. */
export const opening = '\ue000';
export const closing = '\ue001';

const sign = ' (?)';
const note = '(?) The rows do not confirm this.';

/**
 * Puts marks around the claims of an answer. Places are counted in code points, not in the units of a JavaScript string. The service's
 * own signs for doubt are removed where a mark takes their place.
 */
export function mark(response: string, places: readonly Place[], citations: readonly Citation[]): { text: string; claims: Claim[] } {
  const points = Array.from(response, (point) => (point === opening || point === closing ? '\ufffd' : point));
  const valid = places.filter((place, index) => place.start >= (places[index - 1]?.end ?? 0) && place.end > place.start && place.end <= points.length);
  const sources = sourcesOf(valid, citations);
  let text = '';
  let from = 0;
  let marked = false;
  const claims: Claim[] = [];
  valid.forEach((place, index) => {
    const words = points.slice(place.start, place.end).join('');
    text += points.slice(from, place.start).join('') + opening + words + closing;
    claims.push({ text: words, verified: place.verified, sources: sources[index] ?? [] });
    from = place.end;
    if (!place.verified && points.slice(from, from + sign.length).join('') === sign) {
      from += sign.length;
      marked = true;
    }
  });
  text += points.slice(from).join('');
  if (marked) text = text.replace(new RegExp(`\\s*(?:> *)?${note.replace(/[()?.]/g, '\\$&')}\\s*$`), '');
  return { text, claims };
}

/** Citations are listed in the order of the claims: one for a cell, or several with the same calculation. */
function sourcesOf(places: readonly Place[], citations: readonly Citation[]): Citation[][] {
  let next = 0;
  return places.map((place) => {
    if (!place.verified) return [];
    let at = next;
    while (at < citations.length && citations[at]?.claim !== place.claim) at += 1;
    const first = citations[at];
    if (!first) return [];
    const found = [first];
    at += 1;
    while (first.calculation && citations[at]?.claim === first.claim && citations[at]?.calculation === first.calculation) {
      found.push(citations[at] as Citation);
      at += 1;
    }
    next = at;
    return found;
  });
}

/** `0:2:orders / sum(0:*:orders)` as a person reads it: orders in row 3, sum of orders. */
export function readCalculation(calculation: string): string {
  return calculation
    .replace(/\b(sum|avg|average|min|max|count)\(\d+:\*:([^\s()+*/,-]+)\)/g, '$1 of $2')
    .replace(/\b\d+:(\d+):([^\s()+*/,]+)/g, (_, row: string, column: string) => `${column} in row ${Number(row) + 1}`)
    .replace(/\b\d+:count\b/g, 'number of rows')
    .replace(/ \/ /g, ' ÷ ')
    .replace(/ \* /g, ' × ');
}
