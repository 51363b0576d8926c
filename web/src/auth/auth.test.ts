import { describe, expect, it } from 'vitest';
import { local } from './auth';

describe('the address to return to', () => {
  it('is one of this site', () => {
    expect(local('/data/ada/shop/orders/rows?x=1#y')).toBe('/data/ada/shop/orders/rows?x=1#y');
    expect(local(undefined)).toBe('/');
  });
  it('never leads elsewhere or in a circle', () => {
    for (const address of ['https://evil.example', '//evil.example/x', '/\\evil.example', 'javascript:alert(1)', '/callback?code=1', '/signin', 'http://[']) expect(local(address)).toBe('/');
  });
});
