const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 20 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const percent = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });
/** Making a format takes far longer than using it, and a grid needs one for each cell. */
const formats = new Map<string, Intl.NumberFormat>();
const decimal = /^-?\d+(\.\d+)?$/;

function withPlaces(least: number, most: number): Intl.NumberFormat {
  const key = `${least} ${most}`;
  let format = formats.get(key);
  if (!format) formats.set(key, (format = new Intl.NumberFormat('en', { minimumFractionDigits: least, maximumFractionDigits: most })));
  return format;
}

/** A number with groups of digits and at least so many places. Decimal strings are kept exactly: they may have more digits than a double. */
export function formatNumber(value: number | string, least = 0): string {
  if (typeof value === 'number') return least === 0 ? plain.format(value) : withPlaces(least, Math.max(20, least)).format(value);
  if (!decimal.test(value)) return value;
  // Intl drops zeros at the end, but 12.50 was written with two places.
  const [, fraction = ''] = value.split('.');
  const places = Math.min(Math.max(fraction.length, least), 100);
  return withPlaces(places, places).format(value as Intl.StringNumericLiteral);
}

/** 1,234 → 1.2k, for places where the exact number stands elsewhere. */
export function formatShort(value: number): string {
  // The axes of charts write it small, as the unit does.
  return short.format(value).replace('K', 'k');
}

export function formatPercent(share: number): string {
  if (share > 0 && share < 0.001) return '< 0.1%';
  if (share < 1 && share > 0.999) return '> 99.9%';
  return percent.format(share);
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Sizes as file managers show them: powers of ten. */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  if (unit === 0) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  return `${size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

/** `1 row`, `1,204 rows`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${plain.format(number)} ${number === 1 ? one : many}`;
}
