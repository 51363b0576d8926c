import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { RotateCcw } from 'lucide-react';
import { api, type Schemas, take } from '~/api/client';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';

export function Deleted({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title={t.data.deleted}>
      <List />
    </Dialog>
  );
}

function List() {
  const queries = useQueryClient();
  const list = useQuery({
    queryKey: ['deleted'],
    queryFn: ({ signal }) => take(api.GET('/schema/deleted', { params: { query: { limit: 100 } }, signal })),
    staleTime: 0,
  });
  const restore = useMutation({
    mutationFn: (item: Schemas['DeletedItem']) => take(api.POST('/schema/deleted/{deletedId}/restore', { params: { path: { deletedId: item.id } }, body: {} })),
    onSuccess: async (item) => {
      say(t.data.restored(item.dataset ?? item.namespace));
      await Promise.all([queries.invalidateQueries({ queryKey: ['deleted'] }), queries.invalidateQueries({ queryKey: ['datasets'] })]);
    },
  });
  if (list.isError) return <Failure what={t.failure.what.deleted} error={list.error} onRetry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton lines={4} />;
  if (list.data.data.length === 0) return <p className="text-text-2">{t.data.deletedEmpty}</p>;
  return (
    <>
      <p className="mb-4 text-text-2">{t.data.deletedText}</p>
      {restore.isError && <Failure error={restore.error} className="mb-4" />}
      <ul className="divide-y divide-line">
        {list.data.data.map((item) => (
          <li key={item.id} className="flex items-center gap-4 py-2">
            <div className="min-w-0 grow">
              <p className="truncate font-medium">
                <span className="font-normal text-text-3">{item.dataset ? `${item.namespace} / ` : `${t.data.namespace} `}</span>
                {item.dataset ?? item.namespace}
              </p>
              <p className="text-xs text-text-3">
                {t.data.erased} <Ago time={item.erasedAt} />
              </p>
            </div>
            <Button icon={RotateCcw} busy={restore.isPending && restore.variables.id === item.id} onClick={() => restore.mutate(item)}>
              {t.data.restore}
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
