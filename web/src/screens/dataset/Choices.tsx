import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { api, take } from '~/api/client';
import { keyOf, pathOf, type Ref } from '~/api/queries';
import { count } from '~/format/number';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Failure } from '~/ui/Failure';
import { say } from '~/ui/toast';

const texts = t.dataset.choices;

/**
 * Which meanings of words people chose when a question had several. A person forgets their own choices; editors make those of others
 * valid for everybody, as synonyms.
 */
export function Choices({ at, has, onSynonym }: { at: Ref; has: (column: string, words: string) => boolean; onSynonym: (column: string, words: string) => void }) {
  const queries = useQueryClient();
  const key = [...keyOf(at), 'choices'];
  const found = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => take(api.GET('/data/{username}/{namespace}/{datasetName}/choices', { params: { path: pathOf(at) }, signal })),
  });
  const forget = useMutation({
    mutationFn: () => take(api.DELETE('/data/{username}/{namespace}/{datasetName}/choices', { params: { path: pathOf(at) } })),
    onSuccess: async () => {
      say(texts.forgotten);
      await queries.invalidateQueries({ queryKey: key });
    },
  });
  if (found.isError) return <Failure error={found.error} onRetry={() => void found.refetch()} className="mt-8" />;
  const { chosen = [], proposed = [] } = found.data ?? {};
  if (chosen.length + proposed.length === 0) return null;
  const line = 'flex min-h-11 flex-wrap items-center gap-x-4 gap-y-1 px-4 py-1';
  return (
    <>
      <h3 className="mt-8">{texts.title}</h3>
      <p className="mb-2 max-w-160 text-sm text-text-3">{texts.text}</p>
      <ul className="mb-2 divide-y divide-line rounded-md border border-line bg-surface">
        {proposed.map(({ words, column, people }) => (
          <li key={`${words} ${column}`} className={line}>
            <span className="grow [overflow-wrap:anywhere]">
              {texts.means(words, column)} · <span className="text-text-3">{texts.people(count(people, 'person', 'people'))}</span>
            </span>
            <Button look="quiet" icon={Plus} disabled={has(column, words)} onClick={() => onSynonym(column, words)}>
              {texts.add}
            </Button>
          </li>
        ))}
        {chosen.map(({ words, as, column }) => (
          <li key={`${words} ${as}`} className={line}>
            <span className="grow [overflow-wrap:anywhere]">{texts.means(words, column ?? as)}</span>
            <span className="text-sm text-text-3">{texts.yours}</span>
          </li>
        ))}
      </ul>
      {forget.isError && <Failure error={forget.error} className="mb-2" />}
      {chosen.length > 0 && (
        <Button busy={forget.isPending} onClick={() => forget.mutate()}>
          {texts.forget}
        </Button>
      )}
    </>
  );
}
