import { expect, it } from 'vitest';
import { keyOfFault, keysOf, numberType, toSend } from './values';

it('sends numbers with all their digits', () => {
  expect(numberType('7')).toBe('bigint');
  expect(numberType('-19.90')).toBe('decimal(4,2)');
  expect(numberType('.5')).toBe('decimal(1,1)');
  expect(numberType('12345678901234567890')).toBe('decimal(20,0)');
  expect(numberType('1e3')).toBe('double');
  expect(numberType('x')).toBe('double');
  expect(toSend('SELECT $n', { n: { kind: 'number', text: ' 9007199254740993 ' } })).toEqual({ n: { type: 'bigint', value: '9007199254740993' } });
});

it('sends a list or an object, as the statement wants', () => {
  expect(toSend('SELECT 1', {})).toBeUndefined();
  expect(toSend('SELECT $2, $1', { 1: { kind: 'text', text: ' a ' }, 2: { kind: 'null', text: 'x' } })).toEqual([' a ', null]);
  expect(toSend('SELECT $day, $yes', { day: { kind: 'date', text: '2026-01-01' }, yes: { kind: 'boolean', text: 'false' } })).toEqual({ day: { type: 'date', value: '2026-01-01' }, yes: false });
  expect(toSend('SELECT $missing', {})).toEqual({ missing: '' });
});

it('finds the field of a fault', () => {
  expect(keysOf('SELECT ?, ?')).toEqual(['1', '2']);
  expect(keyOfFault('parameters.0', 'SELECT $1')).toBe('1');
  expect(keyOfFault('parameters.REGION', 'SELECT $region')).toBe('region');
  expect(keyOfFault('position', 'SELECT $region')).toBeUndefined();
});
