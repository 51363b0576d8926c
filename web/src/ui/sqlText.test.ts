import { describe, expect, it } from 'vitest';
import { colour, firstOrder, hasOrder, layOut } from './sqlText';

const statement = `SELECT "from where", sum(x) AS total FROM orders LEFT JOIN c ON a = b WHERE d BETWEEN 1 AND 2 AND s = 'a FROM b' AND (x = 1 OR y = 2) GROUP BY 1 -- from`;

describe('layOut', () => {
  it('breaks before clauses, outside of quotes and parentheses', () => {
    expect(layOut(statement).split('\n')).toEqual([
      'SELECT "from where", sum(x) AS total',
      'FROM orders',
      'LEFT JOIN c ON a = b',
      'WHERE d BETWEEN 1 AND 2',
      `  AND s = 'a FROM b'`,
      '  AND (x = 1 OR y = 2)',
      'GROUP BY 1 -- from',
    ]);
  });
  it('changes white space only', () => {
    const bare = (text: string) => text.replace(/\s/g, '');
    expect(bare(layOut(statement))).toBe(bare(statement));
    expect(layOut('SELECT\n  1')).toBe('SELECT\n  1');
  });
});

describe('colour', () => {
  it('loses nothing', () => {
    for (const text of [statement, `'open`, '"open', '/* open', "SELECT 'Zürich', 1.5e3, größe", '\u0000<script>']) {
      expect(colour(text).map((token) => token.text).join('')).toBe(text);
    }
  });
});

describe('hasOrder', () => {
  it('counts only the order of the whole statement', () => {
    expect(hasOrder('SELECT a FROM t ORDER BY a')).toBe(true);
    expect(hasOrder('select a from t\norder by a limit 3')).toBe(true);
    expect(hasOrder('SELECT a FROM t QUALIFY rank() OVER (ORDER BY a) = 1')).toBe(false);
    expect(hasOrder(`SELECT "order" FROM t WHERE s = 'ORDER BY a' -- ORDER BY a`)).toBe(false);
  });
});

describe('firstOrder', () => {
  it('is the name of the column that orders the rows', () => {
    expect(firstOrder('SELECT a FROM t ORDER BY "the ""a""" DESC NULLS LAST, b')).toBe('the "a"');
    expect(firstOrder('SELECT a FROM t ORDER BY a -- by name')).toBe('a');
    expect(firstOrder('SELECT a FROM t')).toBeUndefined();
  });
  it('is empty for a calculation and for a place', () => {
    for (const by of ['lower(a)', 'a + b', 't.a', '1', 'sum(n) DESC']) expect(firstOrder(`SELECT a FROM t ORDER BY ${by}`)).toBe('');
  });
});
