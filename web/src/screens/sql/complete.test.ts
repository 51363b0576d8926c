import { expect, it } from 'vitest';
import { complete, type Names } from './complete';

const names: Names = {
  owner: 'ada',
  namespace: 'shop',
  tables: [
    { owner: 'ada', namespace: 'shop', name: 'orders', rows: 1 },
    { owner: 'ada', namespace: 'shop', name: 'odd-name', rows: 1 },
    { owner: 'ada', namespace: 'other', name: 'things', rows: 1 },
    { owner: 'bob', namespace: 'sales', name: 'leads', rows: 1 },
  ],
  columns: (table) => ({ orders: [{ name: 'total', type: 'DOUBLE' }, { name: 'order', type: 'VARCHAR' }], leads: [{ name: 'company', type: 'VARCHAR' }] })[table.name] ?? [],
};

/** The suggestions at the bar. */
function at(text: string, kinds = ['column', 'dataset', 'namespace']): string[] | null {
  const place = text.indexOf('|');
  const found = complete(text.replace('|', ''), place, names);
  return found && found.options.filter(({ kind }) => kinds.includes(kind)).map(({ insert }) => insert);
}

it('names datasets after FROM', () => {
  expect(at('SELECT * FROM |')).toEqual(['orders', '"odd-name"', 'other.things', 'bob.sales.leads']);
  expect(at('SELECT * FROM orders o, |')).toEqual(['orders', '"odd-name"', 'other.things', 'bob.sales.leads']);
  expect(at('SELECT * FROM other.|')).toEqual(['things']);
  expect(at('SELECT * FROM bob.|')).toEqual(['sales']);
  expect(at('SELECT * FROM bob.sales.l|')).toEqual(['leads']);
});

it('names columns of what the statement reads', () => {
  expect(at('SELECT | FROM orders')).toEqual(['total', '"order"', 'orders']);
  expect(at('SELECT o.| FROM orders o')).toEqual(['total', '"order"']);
  expect(at('SELECT leads.| FROM bob.sales.leads')).toEqual(['company']);
  expect(at('SELECT 1; SELECT x, t| FROM orders')).toEqual(['total', '"order"', 'orders']);
  expect(at('SELECT a, |', ['column'])).toEqual([]);
});

it('knows functions and words', () => {
  expect(at('SELECT su|', ['function'])).toContain('sum()');
  expect(at('SEL|', ['keyword'])).toContain('SELECT');
});

it('is silent in texts, remarks and numbers', () => {
  expect(at(`SELECT 'a|'`)).toBeNull();
  expect(at('SELECT 1 -- a|')).toBeNull();
  expect(at('SELECT 12|')).toBeNull();
  expect(at('SELECT $a|')).toBeNull();
});

it('replaces a name that is being typed, with its quotes', () => {
  expect(complete('SELECT * FROM "od', 17, names)).toMatchObject({ from: 14, typed: true });
  expect(complete('SELECT * FROM ', 14, names)).toMatchObject({ from: 14, typed: false });
});
