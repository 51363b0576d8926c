import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { datasets as datasetList, namespaces } from '~/api/queries';
import type { Where } from './runs';

export type Named = { username: string; namespace: string; name: string; rowCount: number };

const key = 'quern.namespace';
const text = (where: Where) => `${where.username}/${where.namespace}`;

export function whereOf(path: string | undefined): Where | undefined {
  const [username, namespace] = (path ?? '').split('/');
  return username && namespace ? { username, namespace } : undefined;
}

/** Which namespace a question is about: the one of the address, else the last one, else the one with the newest data. */
export function useScope(wanted?: string) {
  const spaces = useQuery(namespaces);
  const list = useInfiniteQuery(datasetList(''));
  const all = useMemo<Named[]>(() => (list.data?.pages ?? []).flatMap((page) => page.data), [list.data]);
  const choices = useMemo<Where[]>(() => {
    const seen = new Map<string, Where>();
    for (const space of spaces.data?.data ?? []) seen.set(`${space.username}/${space.name}`, { username: space.username, namespace: space.name });
    for (const one of all) seen.set(`${one.username}/${one.namespace}`, { username: one.username, namespace: one.namespace });
    return [...seen.values()];
  }, [spaces.data, all]);
  const [picked, setPicked] = useState<Where | undefined>(() => whereOf(wanted));

  const ready = spaces.isSuccess && list.isSuccess;
  const known = (where: Where | undefined) => choices.find((choice) => where && text(choice) === text(where));
  const where = known(picked) ?? known(whereOf(localStorage.getItem(key) ?? undefined)) ?? known(all[0] && { username: all[0].username, namespace: all[0].namespace }) ?? choices[0];
  useEffect(() => setPicked(whereOf(wanted)), [wanted]);

  return {
    ready,
    error: spaces.error ?? list.error,
    retry: () => {
      void spaces.refetch();
      void list.refetch();
    },
    where,
    choices,
    datasets: all,
    choose: (next: Where) => {
      localStorage.setItem(key, text(next));
      setPicked(next);
    },
  };
}

/** A dataset as a question names it. */
export function nameFor(dataset: Named, where: Where): string {
  return dataset.username === where.username && dataset.namespace === where.namespace ? dataset.name : `${dataset.username}/${dataset.namespace}/${dataset.name}`;
}

/** The datasets that a question named. One that is not in the list stays: leaving it out would ask about all datasets instead. */
export function namedIn(names: readonly string[] | undefined, datasets: readonly Named[], where: Where): Named[] {
  return (names ?? []).map((name) => {
    const [username, namespace, own] = name.split('/');
    return (
      datasets.find((one) => nameFor(one, where).toLowerCase() === name.toLowerCase()) ??
      (own !== undefined && username && namespace ? { username, namespace, name: own, rowCount: 0 } : { ...where, name, rowCount: 0 })
    );
  });
}
