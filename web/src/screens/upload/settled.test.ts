import { describe, expect, it } from 'vitest';
import { stillSettled } from './settled';

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
