import { describe, expect, it } from 'vitest';
import { otherwise, split, stillSettled } from './settled';

const dates = { option: 'dateFormat', column: 'day', message: 'The dates could be dd/mm/yyyy or mm/dd/yyyy.' };
const type = { option: 'types', column: 'id', message: 'Numbers or codes?' };

describe('doubts that were settled', () => {
  it('stay as long as their option is set', () => {
    expect(stillSettled([dates, type], [], { dateFormat: 'dd/mm/yyyy', types: { id: 'varchar' } })).toEqual([dates, type]);
    expect(stillSettled([dates, type], [], { types: { other: 'varchar' } })).toEqual([]);
  });
  it('are open again if the service says so', () => {
    expect(stillSettled([dates], [{ ...dates, message: 'Still unclear.' }], { dateFormat: 'yyyy' })).toEqual([]);
  });
});

describe('doubts that are open', () => {
  const before = { code: 'loaded_before', message: 'This file was loaded before.' };
  it('hold the load only if they have a code', () => {
    expect(split([dates, before, type])).toEqual({ blocking: [before], open: [dates, type] });
    expect(split([])).toEqual({ blocking: [], open: [] });
  });
  it('say what happens if nobody chooses', () => {
    const columns = [{ name: 'day', type: 'varchar' }, { name: 'id', type: 'bigint' }];
    expect(otherwise(dates, columns)).toBe('Until you choose, day is loaded as text.');
    expect(otherwise(type, columns)).toBe('Until you choose, id is loaded with the type whole number.');
    expect(otherwise({ option: 'sheet', message: 'The first sheet is loaded.' }, columns)).toBe('Until you choose, the file is loaded as shown below.');
  });
  it('say nothing if there is nothing to choose, or if the load waits', () => {
    expect(otherwise({ column: 'day', message: 'The column "Day" is renamed to "day".' }, [{ name: 'day', type: 'date' }])).toBe('');
    expect(otherwise({ code: 'wrapped_rows', option: 'rowsAt', column: 'items', message: 'One object.' }, [{ name: 'items', type: 'json' }])).toBe('');
  });
});
