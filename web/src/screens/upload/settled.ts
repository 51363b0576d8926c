import type { Schemas } from '~/api/client';
import { typeName } from '~/format/value';
import { t } from '~/texts';
import type { Options } from './dryRun';

type Doubt = Schemas['Doubt'];

/** A doubt of the same kind about the same column is the same one. */
export const idOf = (doubt: Doubt) => `${doubt.code ?? ''} ${doubt.option ?? ''} ${doubt.column ?? ''}`;

/** The doubts that options settled: those whose option is still set, and that the service does not have any more. */
export function stillSettled(settled: readonly Doubt[], open: readonly Doubt[], options: Options): Doubt[] {
  const isSet = ({ option, column }: Doubt) => {
    if (option === 'types') return column !== undefined && options.types?.[column] !== undefined;
    return option !== undefined && options[option as keyof Options] !== undefined;
  };
  return settled.filter((doubt) => isSet(doubt) && !open.some((one) => idOf(one) === idOf(doubt)));
}

/** The load waits only for doubts with a code. The others have a default, which a person may change. */
export function split(doubts: readonly Doubt[]): { blocking: Doubt[]; open: Doubt[] } {
  return { blocking: doubts.filter((doubt) => doubt.code), open: doubts.filter((doubt) => !doubt.code) };
}

/** The message of a doubt for people: types have their names here, and what to do is said by the control beside it. */
export function said(message: string): { text: string; rows: string[] } {
  const plain = message
    .replace(/ Give the encoding [^"]*$/, '')
    .replace(/ Give the column this type to set these rows aside\.$/, ` ${t.upload.review.asideThen}`)
    .replace(/\b(have the type|is not an?) ([a-z]+(?:\(\d+,\d+\))?)(?=[.;]|$)/g, (_, words: string, type: string) => `${words} ${typeName(type)}`);
  const [text = '', ...rows] = plain.split(/(?:(?<=its type): |; )(?=row \d+: |…$)/);
  return { text: rows.length > 0 ? `${text}:` : text, rows: rows.map((row) => row.replace(/^row (\d+): column "(.*?)": /, (_, number: string, column: string) => t.upload.review.misfit(number, column))) };
}

/** What the load does as long as nobody chooses; nothing if there is nothing to choose, or if the load waits. */
export function otherwise(doubt: Doubt, columns: readonly { name: string; type: string }[]): string {
  if (doubt.code || !doubt.option) return '';
  const column = columns.find((one) => one.name === doubt.column);
  return column ? t.upload.review.until(column.name, typeName(column.type)) : t.upload.review.untilFile;
}
