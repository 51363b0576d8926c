import { describe, expect, it } from 'vitest';
import type { Schemas } from '~/api/client';
import { groupsOf } from './groups';

const item = (username: string, namespace: string, name: string) => ({ username, namespace, name }) as Schemas['DatasetItem'];

describe('the list of datasets', () => {
  it('has a heading for each namespace, also for those of the same name of others, and empty ones at the end', () => {
    const known = [
      { username: 'ada', name: 'empty', role: 'owner' as const },
      { username: 'ada', name: 'shop', role: 'owner' as const },
      { username: 'bob', name: 'shop', role: 'viewer' as const },
    ];
    const groups = groupsOf([item('ada', 'shop', 'b10'), item('ada', 'shop', 'B9'), item('bob', 'shop', 'a'), item('eve', 'lab', 'x')], known.slice(0, 2), known);
    expect(groups.map(({ space, items }) => [space?.username, space?.name, space?.role, items.length])).toEqual([
      ['ada', 'shop', 'owner', 2],
      ['bob', 'shop', 'viewer', 1],
      ['eve', 'lab', undefined, 1],
      ['ada', 'empty', 'owner', 0],
    ]);
    expect(groups[0]?.items.map(({ name }) => name)).toEqual(['B9', 'b10']);
  });
});
