import { describe, expect, it } from 'vitest';
import { fixAt, hasLimit, offsetOf, parametersOf, quoteName, sourcesOf, spanAt, statementAt, statements, tokens } from './tokens';

const cut = (sql: string, { from, to }: { from: number; to: number }) => sql.slice(from, to);
const fix = (sql: string, offset: number, candidate: string) => {
  const change = fixAt(sql, offset, candidate);
  return change && sql.slice(0, change.from) + change.insert + sql.slice(change.to);
};

describe('tokens', () => {
  it('knows what is text and what is not', () => {
    expect(tokens(`SELECT 'a;b' -- c;\n, "x;""y", $1`).map(({ kind, text }) => [kind, text])).toEqual([
      ['word', 'SELECT'],
      ['string', `'a;b'`],
      ['comment', '-- c;'],
      ['sign', ','],
      ['quoted', '"x;""y"'],
      ['sign', ','],
      ['parameter', '$1'],
    ]);
    expect(tokens(`$$a $1 ; ' b$$`)).toHaveLength(1);
    expect(tokens(`$q$ $$ $q$`)).toHaveLength(1);
  });
  it('survives text that is not finished', () => {
    for (const text of [`'abc`, `"abc`, '/* abc', '$$ abc', '--', '$', '\\', '\ud83d']) expect(tokens(text).at(-1)?.to).toBe(text.length);
  });
});

describe('statements', () => {
  it('are separated by semicolons outside of texts', () => {
    expect(statements(`SELECT ';' ; ; -- x\nSELECT 2 -- y\n`).map(({ text }) => text)).toEqual([`SELECT ';'`, 'SELECT 2']);
  });
  it('runs the one at the cursor, or what is selected', () => {
    const sql = 'SELECT 1;\n\nSELECT 2;\n';
    expect(statementAt(sql, 3)?.text).toBe('SELECT 1');
    expect(statementAt(sql, 9)?.text).toBe('SELECT 2');
    expect(statementAt(sql, 10)?.text).toBe('SELECT 2');
    expect(statementAt(sql, sql.length)?.text).toBe('SELECT 2');
    expect(statementAt(sql, 9, 19)).toEqual({ from: 11, to: 19, text: 'SELECT 2' });
    expect(statementAt('  ', 1)).toBeUndefined();
    expect(statementAt('a ; ', 2, 4)).toBeUndefined();
  });
});

describe('parameters', () => {
  it('are named or listed', () => {
    expect(parametersOf(`SELECT $a, $B, $A, '$c' -- $d`)).toEqual({ kind: 'named', names: ['a', 'B'] });
    expect(parametersOf('SELECT $2, $1')).toEqual({ kind: 'listed', count: 2 });
    expect(parametersOf('SELECT ?, ?')).toEqual({ kind: 'listed', count: 2 });
    expect(parametersOf('SELECT $99999999')).toEqual({ kind: 'listed', count: 1000 });
    expect(parametersOf('SELECT $$a$$')).toEqual({ kind: 'none' });
  });
});

describe('names', () => {
  it('get quotes if they need them', () => {
    expect(quoteName('orders')).toBe('orders');
    expect(quoteName('orders-2026')).toBe('"orders-2026"');
    expect(quoteName('a"b')).toBe('"a""b"');
    expect(quoteName('Order')).toBe('"Order"');
    expect(quoteName('ß')).toBe('"ß"');
  });
  it('are found after FROM and JOIN', () => {
    expect(sourcesOf(`SELECT a, b FROM orders o, "my.shop"."x-1" AS y LEFT JOIN bob.sales.leads ON true WHERE z IN (1, 2)`)).toEqual([
      { parts: ['orders'], alias: 'o' },
      { parts: ['my.shop', 'x-1'], alias: 'y' },
      { parts: ['bob', 'sales', 'leads'] },
    ]);
    expect(sourcesOf('FROM range(10) r JOIN "bob/sales/leads" l')).toEqual([{ parts: ['bob', 'sales', 'leads'], alias: 'l' }]);
    expect(sourcesOf('SELECT * FROM (SELECT * FROM a) x')).toEqual([{ parts: ['a'] }]);
    expect(sourcesOf('SELECT * FROM')).toEqual([]);
  });
});

describe('faults', () => {
  it('stand where the service says, counted in characters', () => {
    expect(offsetOf('SELECT 1', 'line 1, column 8')).toBe(7);
    expect(offsetOf(`SELECT '😀', x`, 'line 1, column 13')).toBe(13);
    expect(offsetOf('a\nbc', 'line 2, column 2')).toBe(3);
    expect(offsetOf('a', 'line 3, column 1')).toBeUndefined();
    expect(offsetOf('a', 'here')).toBeUndefined();
    expect(offsetOf('a', 'line 1, column 99')).toBe(1);
  });
  it('are underlined as a whole name', () => {
    expect(cut('SELECT c.contry FROM x', spanAt('SELECT c.contry FROM x', 7))).toBe('c.contry');
    expect(cut('SELECT (', spanAt('SELECT (', 8))).toBe('(');
    expect(spanAt('', 0)).toEqual({ from: 0, to: 0 });
  });
  it('are mended with a name', () => {
    expect(fix('SELECT c.contry FROM x', 7, 'country')).toBe('SELECT c.country FROM x');
    expect(fix('SELECT a FROM roastry.customers c', 14, 'roastery.customers')).toBe('SELECT a FROM roastery.customers c');
    expect(fix('SELECT a FROM orders', 14, 'roastery.orders')).toBe('SELECT a FROM roastery.orders');
    expect(fix('SELECT a FROM orders', 7, 'order date')).toBe('SELECT "order date" FROM orders');
    expect(fix('SELECT "a" FROM orders', 7, '"A"')).toBe('SELECT "A" FROM orders');
    expect(fix('SELECT sum(x)', 7, 'sum(DECIMAL) -> DECIMAL')).toBeUndefined();
    expect(fix('SELECT 1', 7, 'a')).toBeUndefined();
  });
});

describe('limits', () => {
  it('count only outside of parentheses', () => {
    expect(hasLimit('SELECT 1 limit 5')).toBe(true);
    expect(hasLimit('SELECT (SELECT 1 LIMIT 1)')).toBe(false);
    expect(hasLimit(`SELECT 'LIMIT'`)).toBe(false);
  });
});
