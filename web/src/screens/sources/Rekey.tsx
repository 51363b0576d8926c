import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api, take } from '~/api/client';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Field, Input } from '~/ui/Field';
import { say } from '~/ui/toast';
import { ConnectionFailure } from './ConnectionFailure';
import { type Connection, connections } from './queries';

const texts = t.sources.rekey;
const fields = t.sources.connection;

/** Replaces the credentials of a connection. The service tries them first and keeps the old ones if they do not work. */
export function Rekey({ connection, onClose }: { connection: Connection; onClose: () => void }) {
  const queries = useQueryClient();
  const form = useId();
  const { iceberg } = connection;
  // A catalog has credentials of its own, and those of its store.
  const [ofStore, setOfStore] = useState(iceberg?.auth === 'none');
  const hasKey = connection.s3 !== undefined || (iceberg !== undefined && ofStore);
  const hasToken = connection.https?.auth === 'bearer' || iceberg?.auth === 'bearer';
  const [id, setId] = useState(connection.s3?.accessKeyId ?? iceberg?.store.accessKeyId ?? '');
  const [secret, setSecret] = useState('');
  const change = useMutation({
    mutationFn: () =>
      take(
        api.PATCH('/connections/{connectionId}', {
          params: { path: { connectionId: connection.id } },
          body: hasKey ? { accessKeyId: id.trim(), secretAccessKey: secret } : hasToken ? { token: secret } : { password: secret },
        }),
      ),
    onSuccess: async () => {
      onClose();
      say(texts.done(connection.name));
      await queries.invalidateQueries({ queryKey: connections.queryKey, exact: true });
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.title(connection.name)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={change.isPending} disabled={secret === '' || (hasKey && id.trim() === '')}>
            {texts.save}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <p className="text-text-2">{texts.lead}</p>
        {iceberg && iceberg.auth !== 'none' && (
          <label className="flex items-center gap-3">
            <input type="checkbox" checked={ofStore} onChange={(event) => setOfStore(event.target.checked)} className="accent-accent" />
            {texts.ofStore}
          </label>
        )}
        {hasKey && <Field label={fields.accessKeyId}>{(field) => <Input {...field} value={id} autoComplete="off" spellCheck={false} onChange={(event) => setId(event.target.value)} />}</Field>}
        <Field label={hasKey ? fields.secretAccessKey : hasToken ? fields.token : iceberg ? fields.clientSecret : fields.password}>
          {(field) => <Input {...field} type="password" value={secret} autoComplete="new-password" onChange={(event) => setSecret(event.target.value)} />}
        </Field>
        {change.isError && <ConnectionFailure error={change.error} />}
      </form>
    </Dialog>
  );
}
