import { useQuery } from '@tanstack/react-query';
import { api, take } from '~/api/client';
import type { Where } from './runs';
import type { Named } from './scope';

/** Up to four questions that the rules answer: about the dataset that was chosen, or the namespace. */
export function useSuggestions(where: Where, chips: Named[]): { questions: string[]; isPending: boolean } {
  const [chip] = chips;
  const about = chip ? { username: chip.username, namespace: chip.namespace, dataset: chip.name } : where;
  const { data, isPending } = useQuery({
    queryKey: ['suggestions', about],
    queryFn: ({ signal }) => take(api.GET('/query/suggestions', { params: { query: { ...about, limit: 4 } }, signal })),
    staleTime: 300_000,
  });
  return { questions: (data?.data ?? []).map((one) => one.question), isPending };
}
