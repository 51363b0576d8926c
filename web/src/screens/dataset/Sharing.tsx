import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { LogOut, UserPlus, X } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { api, newKey, type Schemas, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { keyOf, pathOf, shares } from '~/api/queries';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, IconButton } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import type { Part } from './part';

const texts = t.dataset.sharing;
type Share = Schemas['Share'];
type Role = Schemas['ShareRole'];

export default function Sharing(part: Part) {
  return part.role === 'owner' ? (
    <div className="max-w-120">
      <ShareList {...part} />
    </div>
  ) : (
    <Leave {...part} />
  );
}

/** People and groups, their roles, and what is still pending: all in one place. */
export function ShareList({ at }: Part) {
  const queries = useQueryClient();
  const list = useQuery(shares(at));
  const [who, setWho] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const path = pathOf(at);
  const refresh = () => queries.invalidateQueries({ queryKey: [...keyOf(at), 'shares'] });

  const grant = useMutation({
    mutationFn: (share: { username: string; role: Role }) =>
      take(api.POST('/permissions/datasets/{username}/{namespace}/{datasetName}/shares', { params: { path, header: { 'Idempotency-Key': newKey() } }, body: share, parseAs: 'text' })),
    onSuccess: async (_, share) => {
      say(texts.shared(share.username));
      setWho('');
      await refresh();
    },
  });
  const revoke = useMutation({
    mutationFn: (share: Share) =>
      take(api.DELETE('/permissions/datasets/{username}/{namespace}/{datasetName}/shares', { params: { path }, body: { username: share.username }, parseAs: 'text' })),
    onSuccess: async (_, share) => {
      const other = list.data?.some((one) => one.username === share.username && one.via);
      say(other ? texts.revokedPartly(share.username) : texts.revoked(share.username));
      await refresh();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (who.trim()) grant.mutate({ username: who.trim(), role });
  };
  const fault = grant.error instanceof ApiError ? grant.error.field('username') : undefined;
  return (
    <>
      <form onSubmit={submit} className="grid grid-cols-[minmax(0,1fr)_auto] items-start gap-2">
        <Field label={texts.who} help={texts.whoHelp} fault={fault} className="col-span-2">
          {(props) => <Input {...props} value={who} onChange={(event) => setWho(event.target.value)} maxLength={256} autoComplete="off" autoCapitalize="none" spellCheck={false} />}
        </Field>
        <Field label={texts.role} hideLabel>
          {(props) => (
            <Select {...props} value={role} onChange={(event) => setRole(event.target.value as Role)}>
              <option value="viewer">{texts.roles.viewer}</option>
              <option value="editor">{texts.roles.editor}</option>
            </Select>
          )}
        </Field>
        <Button type="submit" look="primary" icon={UserPlus} busy={grant.isPending} disabled={!who.trim()}>
          {texts.add}
        </Button>
      </form>
      {grant.isError && !fault && <Failure error={grant.error} className="mt-4" />}
      {revoke.isError && <Failure error={revoke.error} className="mt-4" />}
      <h3 className="mt-6 mb-2 text-sm text-text-2">{texts.list}</h3>
      {list.isError ? (
        <Failure error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={2} />
      ) : (
        <ul className="divide-y divide-line rounded-md border border-line bg-surface">
          <Person name={at.owner}>
            <span className="pr-2 text-sm text-text-2">{texts.owner}</span>
          </Person>
          {list.data.map((share) => (
            <Person key={`${share.username} ${share.via ?? ''}`} name={share.username} pending={share.pending ?? false} via={share.via ? at.namespace : undefined}>
              {share.via ? (
                <span className="pr-2 text-sm text-text-2">{t.common.roles[share.role]}</span>
              ) : (
                <>
                  <Select
                    aria-label={`${texts.role} ${share.username}`}
                    value={share.role}
                    disabled={grant.isPending}
                    onChange={(event) => grant.mutate({ username: share.username, role: event.target.value as Role })}
                    fit
                    className="border-transparent bg-transparent"
                  >
                    <option value="viewer">{t.common.roles.viewer}</option>
                    <option value="editor">{t.common.roles.editor}</option>
                  </Select>
                  <IconButton icon={X} label={texts.revoke(share.username)} disabled={revoke.isPending} onClick={() => revoke.mutate(share)} />
                </>
              )}
            </Person>
          ))}
        </ul>
      )}
      {list.data?.length === 0 && <p className="mt-2 text-sm text-text-3">{texts.alone}</p>}
    </>
  );
}

function Person({ name, pending = false, via, children }: { name: string; pending?: boolean; via?: string | undefined; children: React.ReactNode }) {
  return (
    <li className="flex min-h-11 items-center gap-3 py-1 pr-2 pl-3">
      <span aria-hidden className="flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-xs font-semibold text-accent uppercase">
        {name.replace('@', '').slice(0, 1)}
      </span>
      <span className="flex min-w-0 grow flex-wrap items-center gap-x-2">
        <span className="truncate font-medium">{name}</span>
        {pending && <Badge tone="warn">{texts.pending}</Badge>}
        {via && <Badge title={texts.viaTitle(via)}>{texts.via}</Badge>}
      </span>
      {children}
    </li>
  );
}

function Leave({ at }: Part) {
  const [open, setOpen] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: () => take(api.DELETE('/permissions/datasets/{username}/{namespace}/{datasetName}/shares/self', { params: { path: pathOf(at) } })),
    onSuccess: async () => {
      say(texts.left);
      await navigate({ to: '/data' });
      queries.removeQueries({ queryKey: keyOf(at) });
      await queries.invalidateQueries({ queryKey: ['datasets'] });
    },
  });
  return (
    <div className="max-w-120">
      <p className="mb-4 text-text-2">{texts.ownerOnly}</p>
      <Button icon={LogOut} onClick={() => setOpen(true)}>
        {texts.leave}
      </Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={texts.leave}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{t.common.cancel}</Button>
            <Button look="danger" busy={leave.isPending} onClick={() => leave.mutate()}>
              {texts.leave}
            </Button>
          </>
        }
      >
        <p className="text-text-2">{texts.leaveText}</p>
        {leave.isError && <Failure error={leave.error} className="mt-4" />}
      </Dialog>
    </div>
  );
}
