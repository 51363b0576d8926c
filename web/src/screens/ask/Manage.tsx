import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, take } from '~/api/client';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input } from '~/ui/Field';
import { say } from '~/ui/toast';
import { type Conversation, conversation } from './runs';

export function Rename({ id, title, onClose }: { id: string; title: string; onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState(title.slice(0, 200));
  const rename = useMutation({
    mutationFn: () => take(api.PATCH('/query/conversations/{conversationId}', { params: { path: { conversationId: id } }, body: { title: name.trim() } })),
    onSuccess: (item) => {
      queries.setQueryData<Conversation>(conversation(id).queryKey, (old) => old && { ...old, title: item.title });
      void queries.invalidateQueries({ queryKey: ['conversations'] });
      onClose();
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={t.ask.conversation.renameTitle}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" busy={rename.isPending} disabled={name.trim() === ''} onClick={() => rename.mutate()}>
            {t.common.save}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) rename.mutate();
        }}
      >
        <Field label={t.ask.conversation.name}>{(field) => <Input {...field} autoFocus maxLength={200} value={name} onChange={(event) => setName(event.target.value)} onFocus={(event) => event.target.select()} />}</Field>
      </form>
      {rename.isError && <Failure error={rename.error} className="mt-3" />}
    </Dialog>
  );
}

export function Delete({ id, onClose, onDeleted }: { id: string; onClose: () => void; onDeleted: () => Promise<void> | undefined }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => take(api.DELETE('/query/conversations/{conversationId}', { params: { path: { conversationId: id } } })),
    onSuccess: async () => {
      say(t.ask.conversation.deleted);
      onClose();
      await onDeleted();
      // A page that still shows it would ask for it again.
      queries.removeQueries({ queryKey: ['conversation', id], type: 'inactive' });
      void queries.invalidateQueries({ queryKey: ['conversations'] });
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={t.ask.conversation.deleteTitle}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="danger" busy={remove.isPending} onClick={() => remove.mutate()}>
            {t.ask.conversation.delete}
          </Button>
        </>
      }
    >
      <p className="text-text-2">{t.ask.conversation.deleteText}</p>
      {remove.isError && <Failure error={remove.error} className="mt-3" />}
    </Dialog>
  );
}
