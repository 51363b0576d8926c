import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api, take } from '~/api/client';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Select } from '~/ui/Field';
import { say } from '~/ui/toast';
import { addressOf, connections, nameOf, type Source } from './queries';

const texts = t.sources.move;

/** Gives a source of files another connection of the same kind. */
export function Move({ source: of, onClose }: { source: Source; onClose: () => void }) {
  const queries = useQueryClient();
  const form = useId();
  const known = useInfiniteQuery(connections);
  const kind = of.paths ? 'https' : 's3';
  const others = (known.data?.pages ?? []).flatMap((page) => page.data).filter((one) => one.kind === kind && one.id !== of.connectionId);
  const [chosen, setChosen] = useState<string>();
  const id = chosen ?? others[0]?.id;
  const move = useMutation({
    mutationFn: (connectionId: string) => take(api.PATCH('/sources/{sourceId}', { params: { path: { sourceId: of.id } }, body: { connectionId } })),
    onSuccess: async () => {
      onClose();
      say(texts.done(of.name));
      await queries.invalidateQueries({ queryKey: ['sources'] });
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.title(of.name)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={move.isPending} disabled={!id}>
            {t.common.save}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (id) move.mutate(id);
        }}
      >
        <p className="text-text-2">{texts.lead}</p>
        {known.isError ? (
          <Failure what={t.sources.failed.connections} error={known.error} onRetry={() => void known.refetch()} />
        ) : others.length === 0 ? (
          <p>{texts.none}</p>
        ) : (
          <Field label={texts.label}>
            {(field) => (
              <Select {...field} value={id} onChange={(event) => setChosen(event.target.value)}>
                {others.map((one) => (
                  <option key={one.id} value={one.id}>
                    {nameOf(one)} ({addressOf(one)})
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
        {move.isError && <Failure error={move.error} />}
      </form>
    </Dialog>
  );
}
