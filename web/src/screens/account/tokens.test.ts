import { expect, it } from 'vitest';
import { amountText, expiryOf, standing, targetText } from './tokens';

const now = Date.parse('2026-11-15T12:00:00Z');

it('names what a token sees', () => {
  expect(targetText({ username: 'ada', namespace: 'shop' }, 'ada')).toBe('shop');
  expect(targetText({ username: 'bob', namespace: 'sales', dataset: 'leads' }, 'ada')).toBe('bob/sales/leads');
});

it('shows usage in the unit of its kind', () => {
  expect(amountText('questions', 1200)).toBe('1,200');
  expect(amountText('storedBytes', 999)).toBe('999 bytes');
  expect(amountText('querySeconds', 60)).toBe('60 s');
});

it('says when a token ends', () => {
  expect(standing('2026-11-15T11:59:59Z', now)).toBe('expired');
  expect(standing('2026-11-18T00:00:00Z', now)).toBe('soon');
  expect(standing('2027-02-13T00:00:00Z', now)).toBe('good');
  expect(expiryOf('30', '', now)).toBe('2026-12-15T12:00:00.000Z');
  expect(expiryOf('date', '2026-11-16', now)).toBe('2026-11-16T23:59:59.000Z');
  expect(expiryOf('date', '2026-11-14', now)).toBeUndefined();
  expect(expiryOf('date', '', now)).toBeUndefined();
});
