import { describe, expect, it } from 'vitest';
import { count, formatBytes, formatNumber, formatPercent } from './number';
import { formatAgo, formatDuration, formatExact } from './time';
import { copyText, formatCell, kindOf, placesOf, typeName } from './value';

describe('numbers', () => {
  it('keeps every digit of integers beyond 2^53', () => {
    expect(formatNumber('9007199254740993')).toBe('9,007,199,254,740,993');
    expect(formatNumber('-170141183460469231731687303715884105728')).toBe('-170,141,183,460,469,231,731,687,303,715,884,105,728');
  });
  it('keeps the places of decimals', () => {
    expect(formatNumber('12.50')).toBe('12.50');
    expect(formatNumber('1234567890123456789.10')).toBe('1,234,567,890,123,456,789.10');
  });
  it('shows what is not a number as it is', () => {
    expect(formatNumber('NaN')).toBe('NaN');
    expect(formatNumber('Infinity')).toBe('Infinity');
  });
  it('says sizes and counts', () => {
    expect(formatBytes(1)).toBe('1 byte');
    expect(formatBytes(999)).toBe('999 bytes');
    expect(formatBytes(999_900)).toBe('1.0 MB');
    expect(formatBytes(1_610_612_736)).toBe('1.6 GB');
    expect(count(1, 'row')).toBe('1 row');
    expect(count(1204, 'row')).toBe('1,204 rows');
    expect(formatPercent(0.0001)).toBe('< 0.1%');
    expect(formatPercent(0.9999)).toBe('> 99.9%');
  });
});

describe('times', () => {
  it('stay in UTC, as written', () => {
    expect(formatCell('2024-03-31T23:30:00Z', 'timestamp with time zone')).toBe('2024-03-31 23:30:00 UTC');
    expect(formatCell('2024-03-31T23:30:00.250000', 'timestamp')).toBe('2024-03-31 23:30:00.25');
    expect(formatCell('2024-01-01', 'date')).toBe('2024-01-01');
    expect(formatCell('2024-01-01', 'date', 'month')).toBe('2024-01');
    expect(formatCell('2024-01-15', 'date', 'month')).toBe('2024-01-15');
    expect(formatExact('2026-11-15T09:30:00Z')).toBe('Nov 15, 2026, 09:30:00 UTC');
  });
  it('are told from now', () => {
    const now = Date.parse('2026-11-15T12:00:00Z');
    expect(formatAgo('2026-11-15T11:59:40Z', now)).toBe('just now');
    expect(formatAgo('2026-11-15T09:00:00Z', now)).toBe('3 hours ago');
    expect(formatAgo('2026-11-14T12:00:00Z', now)).toBe('yesterday');
    expect(formatAgo('2026-01-01T12:00:00Z', now)).toBe('Jan 1, 2026');
    expect(formatDuration(3.14)).toBe('3.1 s');
    expect(formatDuration(3900)).toBe('1 h 5 min');
  });
});

describe('places', () => {
  it('are those of the longest value, as of amounts of money', () => {
    expect(placesOf('double', [193005.4, 125595.07, null, 3])).toBe(2);
    expect(formatCell(193005.4, 'double', 'total', 2)).toBe('193,005.40');
    expect(placesOf('double', [10768.599999999999, 2])).toBe(1);
  });
  it('are not added to measurements, whole numbers and exact decimals', () => {
    expect(placesOf('double', [0.125, 0.5])).toBe(0);
    expect(placesOf('bigint', [1, 2])).toBe(0);
    expect(placesOf('decimal(12,2)', ['1.50'])).toBe(0);
  });
});

describe('cells', () => {
  it('group amounts but not keys', () => {
    expect(formatCell(12345, 'bigint', 'amount')).toBe('12,345');
    expect(formatCell(12345, 'bigint', 'order_id')).toBe('12345');
    expect(formatCell(2024, 'integer', 'year')).toBe('2024');
    expect(formatCell(12345, 'bigint', 'Order No.')).toBe('12345');
  });
  it('have the places of their decimal type, and no others', () => {
    for (const [value, text] of [['11684.7', '11,684.70'], ['12', '12.00'], ['-0.50', '-0.50'], [8.9, '8.90'], [3, '3.00'], ['1234567890123456789.1', '1,234,567,890,123,456,789.10']] as const) {
      expect(formatCell(value, 'decimal(38,2)', 'amount')).toBe(text);
    }
    expect(formatCell('12', 'decimal(18,0)', 'amount')).toBe('12');
    expect(formatCell('NaN', 'numeric(12, 2)', 'amount')).toBe('NaN');
    expect(formatCell(10768.599999999999, 'double', 'amount')).toBe('10,768.6');
    expect(formatCell(3, 'double', 'amount')).toBe('3');
  });
  it('are one line of text, cut', () => {
    expect(formatCell('a\nb', 'varchar')).toBe('a ⏎ b');
    expect([' Graz', 'Graz  ', 'Bad Ischl'].map((value) => formatCell(value, 'varchar'))).toEqual(['␣Graz', 'Graz␣␣', 'Bad Ischl']);
    expect(formatCell('x'.repeat(1_000_000), 'varchar')).toHaveLength(301);
    expect(formatCell('\u202eevil', 'varchar')).toBe('\ufffdevil');
    expect(formatCell('<img src=x onerror=alert(1)>', 'varchar')).toBe('<img src=x onerror=alert(1)>');
    expect(formatCell({ a: [1] }, 'struct(a integer[])')).toBe('{"a":[1]}');
  });
  it('are copied so that a table survives', () => {
    expect(copyText('a\tb')).toBe('"a\tb"');
    expect(copyText('say "x"')).toBe('"say ""x"""');
  });
  it('have kinds and names', () => {
    expect(kindOf('decimal(12,2)')).toBe('number');
    expect(kindOf('interval')).toBe('time');
    expect(kindOf('integer[]')).toBe('json');
    expect(typeName('decimal(12,2)')).toBe('decimal, 2 places');
    expect(typeName('timestamp with time zone')).toBe('time with zone');
  });
});
