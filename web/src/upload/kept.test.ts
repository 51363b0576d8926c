import { beforeEach, describe, expect, it } from 'vitest';
import { kept } from './kept';

describe('what is kept over a reload', () => {
  beforeEach(() => sessionStorage.clear());
  const initial = { mode: 'append', options: {}, accepted: [] as string[] };

  it('is the initial value if there is nothing, or nothing that can be read', () => {
    expect(kept('a', initial)).toEqual(initial);
    sessionStorage.setItem('quern.kept.a', '{"mode":');
    expect(kept('a', initial)).toEqual(initial);
    sessionStorage.setItem('quern.kept.a', '"one"');
    expect(kept('a', initial)).toEqual(initial);
    expect(kept('a', 'each')).toBe('one');
  });
  it('is laid over the initial value', () => {
    sessionStorage.setItem('quern.kept.b', '{"options":{"types":{"amount":"bigint"}},"accepted":["rowsPresent"]}');
    expect(kept('b', initial)).toEqual({ mode: 'append', options: { types: { amount: 'bigint' } }, accepted: ['rowsPresent'] });
  });
});
