import { useMutation, useQueryClient } from '@tanstack/react-query';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { say } from '~/ui/toast';

const texts = t.sources;

/** Asks before a source or a connection is deleted. */
export function Remove({ name, text, remove, onClose, onRemoved }: { name: string; text: string; remove: () => Promise<unknown>; onClose: () => void; onRemoved: () => void }) {
  const queries = useQueryClient();
  const gone = useMutation({
    mutationFn: remove,
    onSuccess: async () => {
      onRemoved();
      say(texts.deleted(name));
      await Promise.all([queries.invalidateQueries({ queryKey: ['sources'], exact: true }), queries.invalidateQueries({ queryKey: ['connections'], exact: true })]);
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.deleteTitle(name)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="danger" busy={gone.isPending} onClick={() => gone.mutate()}>
            {texts.delete}
          </Button>
        </>
      }
    >
      <p className="text-text-2">{text}</p>
      {gone.isError && <Failure error={gone.error} className="mt-4" />}
    </Dialog>
  );
}
