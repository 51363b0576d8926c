import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { UserPlus, X } from 'lucide-react';
import { useState } from 'react';
import { api, newKey, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, IconButton } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input } from '~/ui/Field';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { ConnectionFailure } from './ConnectionFailure';
import { type Connection, sharesOf } from './queries';

const texts = t.sources.share;
const common = t.dataset.sharing;

/** Who may use a connection. They make sources with it and never see its secret. */
export function ShareConnection({ connection, onClose }: { connection: Connection; onClose: () => void }) {
  const queries = useQueryClient();
  const list = useQuery(sharesOf(connection.id));
  const [who, setWho] = useState('');
  const path = { connectionId: connection.id };
  const read = () => queries.invalidateQueries({ queryKey: sharesOf(connection.id).queryKey });
  // The bodies of the answers are empty.
  const give = useMutation({
    mutationFn: (username: string) => take(api.POST('/connections/{connectionId}/shares', { params: { path, header: { 'Idempotency-Key': newKey() } }, body: { username }, parseAs: 'text' })),
    onSuccess: async (_, username) => {
      say(common.shared(username));
      setWho('');
      await read();
    },
  });
  const end = useMutation({
    mutationFn: (username: string) => take(api.DELETE('/connections/{connectionId}/shares', { params: { path }, body: { username }, parseAs: 'text' })),
    onSuccess: async (_, username) => {
      say(common.revoked(username));
      await read();
    },
  });
  const fault = give.error instanceof ApiError ? give.error.field('username') : undefined;
  return (
    <Dialog open onClose={onClose} title={common.title(connection.name)} footer={<Button onClick={onClose}>{t.common.close}</Button>}>
      <p className="mb-4 text-text-2">{texts.lead}</p>
      <form
        className="flex flex-col items-start gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          if (who.trim()) give.mutate(who.trim());
        }}
      >
        <Field label={common.who} help={common.whoHelp} fault={fault} className="self-stretch">
          {(props) => <Input {...props} value={who} onChange={(event) => setWho(event.target.value)} maxLength={256} autoComplete="off" autoCapitalize="none" spellCheck={false} />}
        </Field>
        <Button type="submit" look="primary" icon={UserPlus} busy={give.isPending} disabled={!who.trim()}>
          {common.add}
        </Button>
      </form>
      {give.isError && !fault && <ConnectionFailure error={give.error} className="mt-4" />}
      {end.isError && <ConnectionFailure error={end.error} className="mt-4" />}
      <h3 className="mt-6 mb-2 text-sm text-text-2">{texts.list}</h3>
      {list.isError ? (
        <Failure what={t.failure.what.shares} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={2} />
      ) : list.data.length === 0 ? (
        <p className="text-sm text-text-3">{texts.alone}</p>
      ) : (
        <ul className="divide-y divide-line rounded-md border border-line bg-surface">
          {list.data.map((share) => (
            <li key={share.username} className="flex min-h-11 items-center gap-3 py-1 pr-2 pl-3">
              <span className="min-w-0 grow truncate font-medium">{share.username}</span>
              {share.pending && (
                <Badge tone="warn" title={common.pendingTitle}>
                  {common.pending}
                </Badge>
              )}
              <IconButton icon={X} label={common.revoke(share.username)} disabled={end.isPending} onClick={() => end.mutate(share.username)} />
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
