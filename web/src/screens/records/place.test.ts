import { describe, expect, it } from 'vitest';
import { cutAt, type DocumentField, doubtsOf, fieldsOf, nameOf, unitsOf } from './place';

const all = { before: 10_000, after: 10_000 };

describe('a quote in the text of a page', () => {
  it('is counted in code points', () => {
    // The service counts 👩‍🏭 as three characters and é, written as e with a sign, as two.
    const text = 'Offer 🔩🔩 of 👩‍🏭\nBolt cafe\u0301 𝟙 costs 1 €';
    const points = [...text];
    for (const quote of ['🔩🔩', '👩‍🏭', 'Bolt cafe\u0301 𝟙', '€', 'Offer']) {
      const from = [...text.slice(0, text.indexOf(quote))].length;
      const to = from + [...quote].length;
      expect(points.slice(from, to).join('')).toBe(quote);
      expect(cutAt(text, { from, to }, all)).toEqual({
        before: text.slice(0, text.indexOf(quote)),
        quote,
        after: text.slice(text.indexOf(quote) + quote.length),
        isCut: { before: false, after: false },
      });
    }
    expect(unitsOf('🔩', 1)).toBe(2);
    expect(unitsOf('a', 9)).toBe(1);
  });

  it('has the lines around it, not the whole page', () => {
    const text = Array.from({ length: 5000 }, (_, line) => `Line ${line} 🔩`).join('\n');
    const at = text.indexOf('Line 2500');
    const from = [...text.slice(0, at)].length;
    const cut = cutAt(text, { from, to: from + 9 }, { before: 300, after: 300 });
    expect(cut.quote).toBe('Line 2500');
    expect(cut.before).toMatch(/^Line \d+ 🔩\n/);
    expect(cut.before.length).toBeLessThanOrEqual(300);
    expect(cut.after).toMatch(/🔩$/);
    expect(cut.after.length).toBeLessThanOrEqual(300);
    expect(cut.isCut).toEqual({ before: true, after: true });
    expect(text).toContain(cut.before + cut.quote + cut.after);
  });

  it('is never cut within a character', () => {
    const text = '🔩'.repeat(2000);
    for (const room of [{ before: 501, after: 500 }, { before: 500, after: 501 }]) {
      const cut = cutAt(text, { from: 1000, to: 1001 }, room);
      expect(cut.before + cut.quote + cut.after).toMatch(/^🔩+$/u);
      expect(cut.isCut).toEqual({ before: true, after: true });
    }
  });

  it('may be absent, or be the whole text, or lie beyond it', () => {
    expect(cutAt('a\nb\nc', undefined, { before: 3, after: 3 })).toEqual({ before: '', quote: '', after: 'a\nb', isCut: { before: false, after: true } });
    expect(cutAt('abc', { from: 0, to: 3 }, all)).toMatchObject({ before: '', quote: 'abc', after: '' });
    expect(cutAt('abc', { from: 7, to: 9 }, all)).toMatchObject({ before: 'abc', quote: '', after: '' });
    expect(cutAt('', { from: 0, to: 1 }, all)).toMatchObject({ before: '', quote: '', after: '' });
  });
});

describe('the fields of a record', () => {
  const fields: Record<string, DocumentField> = {
    zeal: { quote: 'zealous', value: 'high' },
    Price: { quote: '12 USD', flag: 'unit', said: '12 USD' },
    item: { quote: 'Bolt', value: 'Bolt', corrected: true, said: 'Nut' },
  };
  const record = { id: '0-1', file: 'a.pdf', page: 1, fields };
  const names = (columns: string[], defined: string[]) => fieldsOf(record, columns, defined).map(([name]) => name);
  it('stand in the order of the columns', () => {
    expect(names(['item', 'price'], [])).toEqual(['item', 'Price', 'zeal']);
    expect(names([], [])).toEqual(['zeal', 'Price', 'item']);
  });
  it('include those about which the model said nothing', () => {
    expect(names(['item', 'stock', 'price'], ['stock', 'item', 'colour'])).toEqual(['item', 'stock', 'Price', 'zeal', 'colour']);
    expect(fieldsOf(record, [], ['stock'])).toContainEqual(['stock', { quote: '' }]);
  });
  it('are doubted until somebody corrects them', () => {
    expect(doubtsOf(record)).toBe(1);
    expect(doubtsOf({ ...record, fields: { Price: { ...fields['Price'], quote: '', corrected: true } } })).toBe(0);
  });
  it('name the record by their values', () => {
    expect(nameOf(record, ['item', 'price'])).toBe('Bolt · high');
    expect(nameOf({ ...record, fields: { Price: { quote: '' } } }, [])).toBe('');
  });
});
