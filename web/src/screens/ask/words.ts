import type { Schemas } from '~/api/client';
import { t } from '~/texts';

export type Explained = Schemas['Explained'];
export type Piece = { text: string; explained?: Explained };

/** Divides a text at the words that an answer explains. They are looked for from left to right; what is not found is left out. */
export function explain(text: string, explained: readonly Explained[]): Piece[] {
  const lower = text.toLowerCase();
  const taken: [number, number, Explained][] = [];
  let from = 0;
  for (const one of explained) {
    const words = one.words.toLowerCase();
    if (words === '' || lower.length !== text.length) continue;
    const at = [find(lower, words, from), find(lower, words, 0)].find((place) => place >= 0 && !taken.some(([start, end]) => place < end && place + words.length > start));
    if (at === undefined) continue;
    taken.push([at, at + words.length, one]);
    from = at + words.length;
  }
  taken.sort(([a], [b]) => a - b);
  const pieces: Piece[] = [];
  let end = 0;
  for (const [start, stop, one] of taken) {
    if (start > end) pieces.push({ text: text.slice(end, start) });
    pieces.push({ text: text.slice(start, stop), explained: one });
    end = stop;
  }
  if (end < text.length) pieces.push({ text: text.slice(end) });
  return pieces;
}

/** Finds whole words only: `or` is not in `orders`. */
function find(text: string, words: string, from: number): number {
  const letter = /[\p{L}\p{N}_]/u;
  for (let at = text.indexOf(words, from); at >= 0; at = text.indexOf(words, at + 1)) {
    const before = text[at - 1] ?? ' ';
    const after = text[at + words.length] ?? ' ';
    if (!(letter.test(before) && letter.test(words[0] ?? '')) && !(letter.test(after) && letter.test(words.at(-1) ?? ''))) return at;
  }
  return -1;
}

/** What words were taken for, in a sentence. */
export function meaning(one: Explained): string {
  const x = t.ask.explained;
  const place = one.column ? (one.dataset ? x.columnOf(one.column, one.dataset) : x.column(one.column)) : one.dataset ? x.dataset(one.dataset) : '';
  const known = (x.as as Record<string, string | undefined>)[one.as];
  const what = one.as === 'column' && place ? x.isColumn(place) : `${known ?? x.other(one.as)}${place && one.as !== 'unused' ? ` ${place}` : ''}`;
  return one.how === 'guessed' ? `${what}. ${x.guessed}` : one.how === 'confirmed' ? `${what}. ${x.confirmed}` : what;
}

/** Interpretations mark the names in them: total *amount* of *orders*. */
export function emphasis(text: string): { text: string; strong: boolean }[] {
  return text
    .split(/\*([^*\n]+)\*/)
    .map((part, index) => ({ text: part, strong: index % 2 === 1 }))
    .filter((part) => part.text !== '');
}
