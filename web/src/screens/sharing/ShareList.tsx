import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { UserPlus, X } from 'lucide-react';
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import type { Schemas } from '~/api/client';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, IconButton } from '~/ui/Button';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { grant, grantsOf, refresh, revoke, type Role, type Thing } from './grants';

const texts = t.dataset.sharing;
type Share = Schemas['Share'];

/** People and groups, their roles, and what is still pending: all in one place. */
export function ShareList({ of }: { of: Thing }) {
  const queries = useQueryClient();
  const list = useQuery(grantsOf(of));
  const [who, setWho] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const field = useRef<HTMLInputElement>(null);
  // A dialog is open before this is loaded.
  useEffect(() => {
    if (field.current?.closest('dialog') && !matchMedia('(pointer: coarse)').matches) field.current.focus();
  }, []);

  const give = useMutation({
    mutationFn: (share: { username: string; role: Role }) => grant(of, share),
    onSuccess: async (_, share) => {
      say(texts.shared(share.username));
      setWho('');
      await refresh(queries, of);
    },
  });
  const take = useMutation({
    mutationFn: (share: Share) => revoke(of, share.username),
    onSuccess: async (_, share) => {
      const other = list.data?.some((one) => one.username === share.username && one.via);
      say(of.dataset === undefined ? texts.revokedSpace(share.username) : other ? texts.revokedPartly(share.username) : texts.revoked(share.username));
      await refresh(queries, of);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (who.trim()) give.mutate({ username: who.trim(), role });
  };
  const fault = give.error instanceof ApiError ? give.error.field('username') : undefined;
  return (
    <>
      <form onSubmit={submit} className="grid items-start gap-2 sm:grid-cols-[minmax(0,1fr)_auto]">
        <Field label={texts.who} help={texts.whoHelp} fault={fault} className="sm:col-span-2">
          {(props) => <Input {...props} ref={field} value={who} onChange={(event) => setWho(event.target.value)} maxLength={256} autoComplete="off" autoCapitalize="none" spellCheck={false} />}
        </Field>
        <Field label={texts.role} hideLabel>
          {(props) => (
            <Select {...props} value={role} onChange={(event) => setRole(event.target.value as Role)}>
              <option value="viewer">{texts.roles.viewer}</option>
              <option value="editor">{texts.roles.editor}</option>
            </Select>
          )}
        </Field>
        <Button type="submit" look="primary" icon={UserPlus} busy={give.isPending} disabled={!who.trim()}>
          {texts.add}
        </Button>
      </form>
      {give.isError && !fault && <Failure error={give.error} className="mt-4" />}
      {take.isError && <Failure error={take.error} className="mt-4" />}
      <h3 className="mt-6 mb-2 text-sm text-text-2">{texts.list}</h3>
      {list.isError ? (
        <Failure what={t.failure.what.shares} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={2} />
      ) : (
        <ul className="divide-y divide-line rounded-md border border-line bg-surface">
          <Person name={of.owner}>
            <span className="pr-2 text-sm text-text-2">{texts.owner}</span>
          </Person>
          {list.data.map((share) => (
            <Person key={`${share.username} ${share.via ?? ''}`} name={share.username} pending={share.pending ?? false} via={share.via ? of : undefined}>
              {share.via ? (
                <span className="pr-2 text-sm text-text-2">{t.common.roles[share.role]}</span>
              ) : (
                <>
                  <Select
                    aria-label={`${texts.role} ${share.username}`}
                    value={share.role}
                    disabled={give.isPending}
                    onChange={(event) => give.mutate({ username: share.username, role: event.target.value as Role })}
                    fit
                    className="border-transparent bg-transparent"
                  >
                    <option value="viewer">{t.common.roles.viewer}</option>
                    <option value="editor">{t.common.roles.editor}</option>
                  </Select>
                  <IconButton icon={X} label={texts.revoke(share.username)} disabled={take.isPending} onClick={() => take.mutate(share)} />
                </>
              )}
            </Person>
          ))}
        </ul>
      )}
      {list.data?.length === 0 && <p className="mt-2 text-sm text-text-3">{of.dataset === undefined ? texts.aloneSpace : texts.alone}</p>}
    </>
  );
}

function Person({ name, pending = false, via, children }: { name: string; pending?: boolean; via?: Thing | undefined; children: ReactNode }) {
  return (
    <li className="flex min-h-11 items-center gap-3 py-1 pr-2 pl-3">
      <span aria-hidden className="flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-xs font-semibold text-accent uppercase">
        {name.replace('@', '').slice(0, 1)}
      </span>
      <span className="flex min-w-0 grow flex-wrap items-center gap-x-2 pr-2">
        <span className="truncate font-medium">{name}</span>
        {pending && <Badge tone="warn" title={texts.pendingTitle}>{texts.pending}</Badge>}
        {via && (
          <Link to="/data" search={{ sharing: `${via.owner}/${via.namespace}` }} title={texts.viaTitle(via.namespace)} className="text-xs text-text-2 underline underline-offset-2 hover:text-text">
            {texts.via}
          </Link>
        )}
      </span>
      {children}
    </li>
  );
}
