import { useQueries } from '@tanstack/react-query';
import type { Schemas } from '~/api/client';
import { semantics } from '~/api/queries';
import type { Where } from './runs';
import type { Named } from './scope';

type Roles = Pick<Schemas['Semantics'], 'columns'>;

/** Questions that the columns of a dataset answer, by the roles that they play in it. */
export function questionsAbout(name: string, { columns }: Roles): string[] {
  const of = (...roles: string[]) => Object.entries(columns).filter(([, column]) => roles.includes(column.role ?? '')).map(([column]) => words(column));
  const [category, second] = of('category');
  const [amount] = of('amount', 'count');
  const [date] = of('date');
  const rows = words(name);
  return [
    ...(amount && date ? [`Total ${amount} of ${rows} by month`] : []),
    ...(category ? [`Number of ${rows} by ${category}`] : []),
    ...(amount && (second ?? category) ? [`Total ${amount} of ${rows} by ${second ?? category}`] : []),
    `How many ${rows} are there?`,
  ];
}

const words = (name: string) => name.replaceAll('_', ' ');

/** Up to four questions about the datasets that were chosen, or the largest ones; one of each in turn. */
export function useSuggestions(where: Where, datasets: Named[], chips: Named[]): string[] {
  const local = datasets.filter((one) => one.username === where.username && one.namespace === where.namespace && one.rowCount > 0).sort((a, b) => b.rowCount - a.rowCount);
  const about = (chips.length > 0 ? chips : local).slice(0, 3);
  const results = useQueries({ queries: about.map((one) => ({ ...semantics({ owner: one.username, namespace: one.namespace, dataset: one.name }), staleTime: 300_000 })) });
  if (results.some((result) => result.isPending)) return [];
  const lists = results.map((result, index) => (result.data ? questionsAbout(about[index]?.name ?? '', result.data.data) : []));
  return [0, 1, 2, 3].flatMap((turn) => lists.flatMap((list) => list[turn] ?? [])).slice(0, 4);
}
