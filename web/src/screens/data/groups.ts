import type { Schemas } from '~/api/client';

type Item = Schemas['DatasetItem'];
/** A namespace as the list shows it. `role` is that on the whole namespace. */
export type SpaceOf = { username: string; name: string; role?: Schemas['Role'] | undefined };
export type Group = { space?: SpaceOf; items: Item[] };

/** The datasets by namespace, each by name, and then the namespaces of `also` that have none. */
export function groupsOf(items: readonly Item[], also: readonly SpaceOf[], known: readonly SpaceOf[]): Group[] {
  const groups = new Map<string, Group & { space: SpaceOf }>();
  const at = (username: string, name: string) => {
    const key = `${username}/${name}`;
    const found = groups.get(key) ?? { space: known.find((one) => one.username === username && one.name === name) ?? { username, name }, items: [] };
    groups.set(key, found);
    return found;
  };
  for (const item of items) at(item.username, item.namespace).items.push(item);
  for (const space of also) at(space.username, space.name);
  for (const { items: some } of groups.values()) some.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  return [...groups.values()];
}
