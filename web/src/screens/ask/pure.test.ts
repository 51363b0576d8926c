import { describe, expect, it } from 'vitest';
import { closing as c, mark, opening as o, readCalculation } from './claims';
import { explain, emphasis, meaning } from './words';
import { noteOf, proseOf, suggestionsOf, withoutLosses } from './prose';

const place = (text: string, claim: string, verified: boolean, from = 0) => {
  const points = Array.from(text);
  const words = Array.from(claim);
  for (let at = from; at < points.length; at += 1) {
    if (words.every((point, index) => points[at + index] === point)) return { claim, start: at, end: at + words.length, verified };
  }
  throw new Error(claim);
};

describe('mark', () => {
  it('counts in code points', () => {
    const text = '☕️🇦🇹 𝒱ienna has 18, Graz 7.';
    const { text: marked, claims } = mark(text, [place(text, '18', true), place(text, '7', true)], [{ claim: '18', step: 0, row: 1, column: 'n' }, { claim: '7', step: 0, row: 0, column: 'n' }]);
    expect(marked).toBe(`☕️🇦🇹 𝒱ienna has ${o}18${c}, Graz ${o}7${c}.`);
    expect(claims.map((claim) => claim.sources[0]?.row)).toEqual([1, 0]);
  });
  it('replaces the signs of doubt, and their note', () => {
    const text = 'North made 320.5, south 181 (?).\n\n(?) The rows do not confirm this.';
    const { text: marked, claims } = mark(text, [place(text, '320.5', true), place(text, '181', false)], [{ claim: '320.5', step: 0, row: 0, column: 'x' }]);
    expect(marked).toBe(`North made ${o}320.5${c}, south ${o}181${c}.`);
    expect(claims).toMatchObject([{ verified: true }, { verified: false, sources: [] }]);
  });
  it('gives equal claims their own cells, and a calculation all of its cells', () => {
    const text = '5 and 5, in all 10';
    const calculation = '0:0:n + 0:1:n';
    const { claims } = mark(text, [place(text, '5', true), place(text, '5', true, 1), place(text, '10', true)], [
      { claim: '5', step: 0, row: 0, column: 'n' },
      { claim: '5', step: 0, row: 1, column: 'n' },
      { claim: '10', step: 0, row: 0, column: 'n', calculation },
      { claim: '10', step: 0, row: 1, column: 'n', calculation },
    ]);
    expect(claims.map((claim) => claim.sources.map((source) => source.row))).toEqual([[0], [1], [0, 1]]);
  });
  it('leaves out places that cannot be, and signs that the text brought along', () => {
    expect(mark(`a${o}b`, [{ claim: 'x', start: 9, end: 12, verified: true }, { claim: 'b', start: 2, end: 2, verified: true }], []).text).toBe('a\ufffdb');
  });
});

describe('readCalculation', () => {
  it('names rows from one', () => {
    expect(readCalculation('0:2:orders / sum(0:*:orders)')).toBe('orders in row 3 ÷ sum of orders');
    expect(readCalculation('0:count')).toBe('number of rows');
  });
});

describe('explain', () => {
  it('finds whole words in their order', () => {
    const pieces = explain('How many orders or deliveries by country?', [{ words: 'or', as: 'unused' }, { words: 'country', as: 'column', dataset: 'orders', column: 'country' }, { words: 'gone', as: 'unused' }]);
    expect(pieces.map((piece) => [piece.text, piece.explained?.as])).toEqual([
      ['How many orders ', undefined],
      ['or', 'unused'],
      [' deliveries by ', undefined],
      ['country', 'column'],
      ['?', undefined],
    ]);
  });
  it('says it in words', () => {
    expect(meaning({ words: 'amount', as: 'column', dataset: 'orders', column: 'amount' })).toContain('amount of orders');
    expect(meaning({ words: 'ordrs', as: 'rows', dataset: 'orders', how: 'guessed' })).toMatch(/orders.*guess/i);
  });
});

describe('emphasis', () => {
  it('keeps a lone asterisk', () => {
    expect(emphasis('total *amount* of 5 * 3')).toEqual([
      { text: 'total ', strong: false },
      { text: 'amount', strong: true },
      { text: ' of 5 * 3', strong: false },
    ]);
  });
});

describe('proseOf', () => {
  it('leaves the table to the rows', () => {
    expect(proseOf('Total amount, by country:\n\n| country | total |\n|---|---:|\n| Austria | 1 |')).toBe('Total amount, by country:');
    expect(proseOf('One | two')).toBe('One | two');
  });
});

describe('withoutLosses', () => {
  it('leaves out what stands in a box of its own', () => {
    const told = '2 of 6 rows of *orders* have no *customer* and are not counted; their total *freight* is $& 3.';
    const result = { response: `Total freight: 20.\n\n${told}\n\nMore.`, outcome: 'answer' as const, steps: [] };
    expect(withoutLosses({ ...result, doubts: [{ kind: 'leftOut', text: told }, { kind: 'value', text: 'More.' }] }).response).toBe('Total freight: 20.\n\nMore.');
    expect(withoutLosses(result)).toBe(result);
  });
});

describe('suggestionsOf', () => {
  it('takes the questions out of a refusal', () => {
    const refused = 'An answer to this question would be a guess, so there is none.\n\nNot understood: weather.\n\nQuestions that can be answered, for example:\n- How many customers are there?\n- Number of customers by segment\n\nSQL always works: `quern query`, or `POST /query`.';
    expect(suggestionsOf(refused)).toEqual({ text: 'An answer to this question would be a guess, so there is none.\n\nNot understood: weather.', questions: ['How many customers are there?', 'Number of customers by segment'] });
  });
});

describe('noteOf', () => {
  const left = 'Rows of *sales* that are totals of other rows are left out.';
  const step = { reasoning: `Answered by the planner, without a model. ${left}` };
  it('is what rules add to their answer', () => {
    expect(noteOf({ basis: 'rules', steps: [step] })).toBe(left);
    expect(noteOf({ basis: 'rules', steps: [{ reasoning: 'Answered by the planner, without a model.' }] })).toBe('');
  });
  it('is not the reasoning of a model, nor of one step among several', () => {
    expect(noteOf({ basis: 'form', steps: [step] })).toBe('');
    expect(noteOf({ basis: 'rules', steps: [step, step] })).toBe('');
    expect(noteOf({ basis: 'rules', steps: [{}] })).toBe('');
  });
});
