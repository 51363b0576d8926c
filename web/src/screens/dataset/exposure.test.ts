import { expect, test } from 'vitest';
import { widens } from './exposure';

test('an exposure is wider if models see more', () => {
  expect(widens('schema', 'values')).toBe(true);
  expect(widens('schema', 'rows')).toBe(true);
  expect(widens('values', 'rows')).toBe(true);
  expect(widens('values', 'values')).toBe(false);
  expect(widens('rows', 'values')).toBe(false);
  expect(widens('rows', 'schema')).toBe(false);
  expect(widens(undefined, 'values')).toBe(true);
  expect(widens(undefined, 'schema')).toBe(false);
});
