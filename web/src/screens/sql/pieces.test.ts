import { expect, it, vi } from 'vitest';
import { ApiError } from '~/api/errors';
import { bytesOf, join } from './pieces';

const piece = (number: number, text: string, headBytes: number, tailBytes: number) => ({ number, rows: 1, bytes: text.length, sha256: '', headBytes, tailBytes });
const texts = ['', 'i\n1\n', 'i\n2\n', 'end'];
const get = (number: number) => Promise.resolve(new Blob([texts[number] ?? '']));

it('joins pieces without what makes each of them a file', async () => {
  const list = { data: [piece(1, 'i\n1\n', 0, 0), piece(2, 'i\n2\n', 2, 1)], end: { number: 3, bytes: 3, sha256: '' } };
  const seen: number[] = [];
  const file = await join(list, get, (done) => seen.push(done));
  expect(await file.text()).toBe('i\n1\n2end');
  expect(seen).toEqual([1, 2]);
  expect(bytesOf(list)).toBe(11);
});

it('fetches a piece again if the connection breaks, and nothing that is refused', async () => {
  const list = { data: [piece(1, 'i\n1\n', 0, 0)] };
  const flaky = vi.fn().mockRejectedValueOnce(new TypeError('network')).mockImplementation(get);
  expect(await (await join(list, flaky, () => undefined)).text()).toBe('i\n1\n');
  expect(flaky).toHaveBeenCalledTimes(2);

  const refused = vi.fn().mockRejectedValue(new ApiError({ code: 'NOT_FOUND', message: 'gone' }));
  await expect(join(list, refused, () => undefined)).rejects.toThrow('gone');
  expect(refused).toHaveBeenCalledTimes(1);

  const short = () => Promise.resolve(new Blob(['i']));
  await expect(join(list, short, () => undefined)).rejects.toThrow('broke off');
});
