import { describe, expect, it } from 'vitest';
import { otherwise, said, split, stillSettled } from './settled';

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
    expect(otherwise({ option: 'sheet', message: 'The first sheet is loaded.' }, columns)).toBe('If the rows below are right, there is nothing to do.');
  });
  it('say nothing if there is nothing to choose, or if the load waits', () => {
    expect(otherwise({ column: 'day', message: 'The column "Day" is renamed to "day".' }, [{ name: 'day', type: 'date' }])).toBe('');
    expect(otherwise({ code: 'wrapped_rows', option: 'rowsAt', column: 'items', message: 'One object.' }, [{ name: 'items', type: 'json' }])).toBe('');
  });
});

describe('said', () => {
  it('names types as people do, and says what a choice does', () => {
    expect(said('The column is text because of 1 of 9 values: "k.A." in row 3. All others have the type double. Give the column this type to set these rows aside.')).toEqual({
      text: 'The column is text because of 1 of 9 values: "k.A." in row 3. All others have the type number. With this type these rows are set aside.',
      rows: [],
    });
    expect(said('Line 4 is not in UTF-8. Give the encoding of the file with the option encoding, for example windows-1252 or latin-1.').text).toBe('Line 4 is not in UTF-8.');
  });
  it('lists the rows that do not fit', () => {
    expect(said('4 of the first 59 rows would be set aside, because a value does not fit its type: row 41: column "a: b": "x; y" is not a double; row 52: column "c": "n/a" is not a bigint; …')).toEqual({
      text: '4 of the first 59 rows would be set aside, because a value does not fit its type:',
      rows: ['Row 41, a: b: "x; y" is not a number', 'Row 52, c: "n/a" is not a whole number', '…'],
    });
  });
  it('leaves other messages as they are', () => {
    for (const message of ['The dates could be dd/mm/yyyy or mm/dd/yyyy.', 'The first lines of the file (3) are above the table and were omitted.']) expect(said(message)).toEqual({ text: message, rows: [] });
  });
});
