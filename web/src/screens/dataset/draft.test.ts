import { describe, expect, it } from 'vitest';
import type { Schemas } from '~/api/client';
import { draftOf, Faults, fieldsOf, hasSynonym, listOf, sentOf, withSynonym, words } from './draft';

const saved: Schemas['Semantics'] = {
  row: 'order line',
  rowSource: 'drafted',
  columns: {
    price: { role: 'price', unit: 'EUR', synonyms: ['cost, net', 'fee'], notForFigures: false, source: 'confirmed' },
    quantity: { role: 'count', synonyms: [], notForFigures: false, source: 'drafted' },
  },
  joins: [{ columns: ['region'], to: 'old/regions', keys: ['name'], source: 'rejected' }],
  measures: [
    { name: 'total', synonyms: [], function: 'sum', expression: 'quantity', source: 'drafted' },
    { name: 'revenue', synonyms: ['turnover'], function: 'sum', expression: 'quantity * price', unit: 'EUR', source: 'confirmed' },
  ],
};

describe('what a dataset means', () => {
  it('is sent as far as people said it', () => {
    expect(sentOf(draftOf(saved)).body).toEqual({
      columns: { price: { role: 'price', unit: 'EUR', synonyms: ['cost, net', 'fee'], notForFigures: false } },
      measures: [{ name: 'revenue', synonyms: ['turnover'], function: 'sum', expression: 'quantity * price', unit: 'EUR', source: 'confirmed' }],
      joins: [{ columns: ['region'], to: 'old/regions', keys: ['name'], source: 'rejected' }],
    });
  });
  it('takes what was edited, and leaves out what is empty', () => {
    const draft = draftOf(saved);
    draft.row = ' sale ';
    draft.rowSaid = true;
    draft.columns['quantity'] = { ...draft.columns['quantity']!, synonyms: { text: 'pieces, , number of items,pieces', was: [] }, said: true };
    draft.columns['price'] = { ...draft.columns['price']!, said: false };
    expect(sentOf(draft).body.row).toBe('sale');
    expect(sentOf(draft).body.columns).toEqual({ quantity: { role: 'count', synonyms: ['pieces', 'number of items'], notForFigures: false } });
    draft.row = ' ';
    expect(sentOf(draft).body).not.toHaveProperty('row');
  });
  it('keeps words with commas until they are edited', () => {
    expect(listOf(words(['a, b', 'c']))).toEqual(['a, b', 'c']);
    expect(listOf({ text: 'a, b, c, d', was: ['a, b', 'c'] })).toEqual(['a', 'b', 'c', 'd']);
  });
  it('takes a meaning that people chose as a synonym, once', () => {
    const draft = draftOf(saved);
    const next = withSynonym(withSynonym(draft, 'quantity', 'Items'), 'quantity', 'items');
    expect(sentOf(next).body.columns?.['quantity']).toEqual({ role: 'count', synonyms: ['Items'], notForFigures: false });
    expect(hasSynonym(next, 'quantity', 'ITEMS')).toBe(true);
    expect(withSynonym(draft, 'gone', 'x')).toBe(draft);
  });
  it('shows a fault at its field, whatever was left out before it', () => {
    const draft = draftOf(saved);
    const sent = sentOf(draft);
    const faults = new Faults(
      [
        { code: 'measures.0.expression', message: 'no column prise' },
        { code: 'columns.price.synonyms.1', message: 'contains a control character' },
        { code: 'joins[0].to', message: 'unknown' },
        { code: 'columns.quantity', message: 'changed' },
      ],
      sent,
      fieldsOf(draft),
    );
    expect(faults.others).toBe(false);
    expect(faults.at('measures.saved 1.expression')).toBe('no column prise');
    expect(faults.at('measures.saved 0.expression')).toBeUndefined();
    expect(faults.at('columns.price.synonyms')).toBe('contains a control character');
    expect(faults.at('joins.saved 0.to')).toBe('unknown');
    expect(faults.at('columns.quantity')).toBe('changed');
    expect(new Faults([{ code: 'measures', message: 'too many' }], sent, fieldsOf(draft)).others).toBe(true);
  });
});
