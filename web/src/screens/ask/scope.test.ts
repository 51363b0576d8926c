import { expect, it } from 'vitest';
import { namedIn, nameFor } from './scope';

const where = { username: 'ada', namespace: 'shop' };
const orders = { ...where, name: 'Orders', rowCount: 3 };
const leads = { username: 'bob', namespace: 'sales', name: 'leads', rowCount: 5 };

it('finds the datasets that a question named, and keeps those that it does not know', () => {
  const list = [orders, leads];
  expect(namedIn(undefined, list, where)).toEqual([]);
  const found = namedIn(['orders', 'bob/sales/leads', 'gone', 'bob/sales/gone'], list, where);
  expect(found.slice(0, 2)).toEqual([orders, leads]);
  expect(found[0]).toBe(orders);
  expect(found.map((one) => nameFor(one, where))).toEqual(['Orders', 'bob/sales/leads', 'gone', 'bob/sales/gone']);
});
