import { formatNumber } from './number';

export type Kind = 'number' | 'text' | 'time' | 'boolean' | 'json' | 'binary';

/** A cell shows no more than this; the whole value is a click away. */
export const cellLength = 300;

/** All values of such a column have the same number of places, the second figure. */
const decimalType = /^(?:decimal|numeric)\((\d+),\s*(\d+)\)$/;

/** What a column type means for the eye. Types are those of the engine: bigint, decimal(12,2), varchar, timestamp with time zone … */
export function kindOf(type: string): Kind {
  const name = type.toLowerCase();
  if (/\[\]$|^(struct|map|json|list|array|union)/.test(name)) return 'json';
  if (/^(u?(tiny|small|big|huge)?int(eger)?|decimal|numeric|double|real|float)\b/.test(name)) return 'number';
  if (/^(date|time|interval)/.test(name)) return 'time';
  if (/^bool/.test(name)) return 'boolean';
  if (/^(blob|binary|bytea)/.test(name)) return 'binary';
  return 'text';
}

/** The name of a type as a person reads it; the exact type belongs beside it as a title. */
export function typeName(type: string): string {
  const name = type.toLowerCase();
  if (/^(u?(tiny|small|big|huge)?int(eger)?)\b/.test(name) && !name.endsWith(']')) return 'whole number';
  const decimal = decimalType.exec(name);
  if (decimal) return decimal[2] === '0' ? 'whole number' : `decimal, ${decimal[2]} ${decimal[2] === '1' ? 'place' : 'places'}`;
  if (/^timestamp.*(tz|with time zone)$/.test(name)) return 'time with zone';
  if (name.startsWith('timestamp')) return 'date and time';
  const names: Partial<Record<string, string>> = { date: 'date', time: 'time of day', boolean: 'yes or no', varchar: 'text', double: 'number', real: 'number', float: 'number', json: 'JSON', blob: 'bytes', uuid: 'UUID', interval: 'interval' };
  return names[name] ?? (name.endsWith('[]') ? 'list' : name.startsWith('struct') ? 'record' : name);
}

/** Columns whose digits are names, not amounts: no grouping. */
export function isKeyLike(name: string): boolean {
  return /(^|[\W_])(id|key|year|no|nr|number|nummer|code|zip|plz|phone|isbn|ean|sku)\W*$/i.test(name) || /[a-z](Id|Key|Year|Nr|No|Code)$/.test(name);
}

/** The whole value as text, exactly as it was delivered: nothing shifts by a time zone, no digit is lost. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  return JSON.stringify(value);
}

/** A double carries noise behind its 15th digit: a sum of 10768.6 arrives as 10768.599999999999. The whole value stays a click away. */
function rounded(value: number | string): number | string {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(15)) : value;
}

const time = (value: string) => value.replace('T', ' ').replace(/(\.\d*?)0+(?=Z|[+-]|$)/, '$1').replace(/\.(?=Z|[+-]|$)/, '').replace(/Z$/, ' UTC');

/** Control characters become visible marks, so that a cell stays one line; so do spaces at the ends, or two values would look like one. */
function line(value: unknown): string {
  const text = valueText(value);
  const cut = text.length > cellLength ? `${text.slice(0, cellLength)}…` : text;
  return cut
    .replace(/^ +| +$/g, (spaces) => '␣'.repeat(spaces.length))
    .replace(/[\r\n\t\v\f]+/g, ' ⏎ ').replace(/[\u0000-\u0008\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

/** How many places the values of a column of doubles share, so that their points stand below each other: as amounts of money have two. */
export function placesOf(type: string, values: readonly unknown[]): number {
  if (!/^(double|real|float)/i.test(type)) return 0;
  const most = values.reduce<number>((so, value) => (typeof value === 'number' ? Math.max(so, String(rounded(value)).split('.')[1]?.length ?? 0) : so), 0);
  return most <= 2 ? most : 0;
}

const firstOfMonth = /^\d{4}-\d\d-01$/;

/** How a grid shows the values of a column, with at least so many places. What depends on the column alone is decided once. */
export function cellFormatter(type: string, name = '', least = 0): (value: unknown) => string {
  const kind = kindOf(type);
  const amount = kind === 'number' && !isKeyLike(name);
  // Groups by month carry its first day.
  const month = type === 'date' && /(^|[\W_])month$/i.test(name);
  const places = Math.min(Number(decimalType.exec(type.toLowerCase())?.[2] ?? least), 100);
  return (value) => {
    if (value === null || value === undefined) return '';
    if (amount && (typeof value === 'number' || typeof value === 'string')) return formatNumber(rounded(value), places);
    if (kind === 'time' && typeof value === 'string') return month && firstOfMonth.test(value) ? value.slice(0, 7) : time(value);
    return line(value);
  };
}

/** One value as a grid shows it. */
export function formatCell(value: unknown, type: string, name = '', least = 0): string {
  return cellFormatter(type, name, least)(value);
}

/** What a cell is put on the clipboard as: tabs and line ends would break the table there. */
export function copyText(value: unknown): string {
  const text = valueText(value);
  return /[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
