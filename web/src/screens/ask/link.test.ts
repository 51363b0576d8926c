import { describe, expect, it } from 'vitest';
import { decode, encode } from './link';

describe('link', () => {
  const shared = { question: 'Wie viele & welche?\n#1', where: { username: 'ada', namespace: 'my.shop' }, statement: `SELECT '100%' AS "a+b" FROM "ö"`, meaning: 'number of *orders*' };
  it('comes back as it was', () => {
    expect(decode(`#${encode(shared)}`)).toEqual(shared);
    expect(decode(encode(shared))).toEqual(shared);
  });
  it('refuses half a link', () => {
    expect(decode('')).toBeUndefined();
    expect(decode('in=ada&q=x&sql=y')).toBeUndefined();
    expect(decode('in=ada/shop&q=x')).toBeUndefined();
  });
});
