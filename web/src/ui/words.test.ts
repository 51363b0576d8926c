import { expect, it } from 'vitest';
import { wordsOf } from './words';

it('keeps what a person can use of a message', () => {
  expect(wordsOf('There is no dataset "a/b/c" that you can see. GET /schema/a/b/datasets lists those that you can see.')).toBe('There is no dataset "a/b/c" that you can see.');
  expect(wordsOf('The server is full.')).toBe('The server is full.');
  expect(wordsOf('Call GET /user/me first.')).toBe('Call GET /user/me first.');
});
