import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Facts } from './Facts';

test('facts have a point between them, and those that are not there leave none', () => {
  expect(renderToStaticMarkup(<Facts of={[undefined, '2 rows', false, 0, null, 'now', '']} />)).toBe('<p><span>2 rows</span>\u00a0· <span>0</span>\u00a0· <span>now</span></p>');
});
