import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { KeyRound, LogOut, Plus } from 'lucide-react';
import { type ReactNode, useId, useState } from 'react';
import { api, take } from '~/api/client';
import { me } from '~/api/queries';
import { auth } from '~/auth/auth';
import { useConfig } from '~/configContext';
import { formatNumber } from '~/format/number';
import { formatAgo, formatDay, formatExact } from '~/format/time';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Bar } from '~/ui/Bar';
import { Button } from '~/ui/Button';
import { Copy } from '~/ui/Copy';
import { Dialog } from '~/ui/Dialog';
import { Empty } from '~/ui/Empty';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Page } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';
import { NewToken } from './NewToken';
import { amountText, standing, targetText, type Token, tokens, usage } from './tokens';

const text = t.account;

export default function Account() {
  const first = useInfiniteQuery(tokens).isPending;
  const second = useQuery(usage).isPending;
  // A section waits for those above it, so that nothing jumps.
  return (
    <Page title={text.title}>
      <div className="flex flex-col gap-10">
        <Tokens />
        {!first && <Usage />}
        {!first && !second && <Person />}
      </div>
    </Page>
  );
}

function Section({ title, lead, action, children }: { title: string; lead?: ReactNode; action?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <div className="mb-4 flex flex-wrap items-end justify-between gap-x-4 gap-y-2 sm:flex-nowrap">
        <div className="min-w-0">
          <h2 id={id} className="text-lg">
            {title}
          </h2>
          {lead && <p className="max-w-180 text-text-2 text-pretty">{lead}</p>}
        </div>
        {action}
      </div>
      {children}
    </section>
  );
}

function Tokens() {
  const list = useInfiniteQuery(tokens);
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  const create = (
    <Button look="primary" icon={Plus} onClick={() => setCreating(true)}>
      {text.create}
    </Button>
  );
  return (
    <Section title={text.tokens} lead={text.tokensText} action={all.length > 0 && create}>
      {list.isError ? (
        <Failure what={t.failure.what.tokens} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={3} />
      ) : all.length === 0 ? (
        <div className="rounded-md border border-line bg-surface">
          <Empty icon={KeyRound} title={text.noTokens} action={create}>
            {text.noTokensText}
          </Empty>
        </div>
      ) : (
        <ul className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface">
          {all.map((token) => (
            <Line key={token.id} token={token} onRevoke={() => setRevoking(token)} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
      <NewToken open={creating} onClose={() => setCreating(false)} />
      {revoking && <Revoke token={revoking} onClose={() => setRevoking(undefined)} />}
    </Section>
  );
}

function Line({ token, onRevoke }: { token: Token; onRevoke: () => void }) {
  const self = useQuery(me).data?.username ?? '';
  const state = standing(token.expiresAt);
  const targets = token.accessRestrictedTo;
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
      <div className="min-w-0 grow basis-70">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 font-medium [overflow-wrap:anywhere]">{token.name}</span>
          <Badge tone={token.role === 'owner' ? 'warn' : 'plain'}>{t.common.roles[token.role]}</Badge>
          {state !== 'good' && (
            <Badge tone={state === 'expired' ? 'danger' : 'warn'} title={formatExact(token.expiresAt)}>
              {state === 'expired' ? text.expired : text.expires(formatAgo(token.expiresAt))}
            </Badge>
          )}
        </p>
        <Facts
          className="mt-1 text-sm text-text-2 [overflow-wrap:anywhere]"
          of={[
            <span title={targets.map((target) => targetText(target, self)).join('\n')}>
              {targets.length === 0
                ? text.seesAll
                : `${text.seesOnly} ${targets
                    .slice(0, 3)
                    .map((target) => targetText(target, self))
                    .join(', ')}${targets.length > 3 ? ` ${text.andMore(formatNumber(targets.length - 3))}` : ''}`}
            </span>,
            token.lastUsedAt ? (
              <>
                {text.used} <Ago time={token.lastUsedAt} />
              </>
            ) : (
              text.neverUsed
            ),
            state === 'good' && <span title={formatExact(token.expiresAt)}>{text.until(formatDay(token.expiresAt))}</span>,
            <>
              {text.createdAt} <Ago time={token.createdAt} />
            </>,
          ]}
        />
      </div>
      <Button look="danger" onClick={onRevoke} aria-label={text.revokeOf(token.name)}>
        {text.revoke}
      </Button>
    </li>
  );
}

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => take(api.DELETE('/user/tokens/{id}', { params: { path: { id: token.id } } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: tokens.queryKey });
      onClose();
      say(text.revoked(token.name));
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={text.revokeTitle(token.name)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="danger" busy={revoke.isPending} onClick={() => revoke.mutate()}>
            {text.revoke}
          </Button>
        </>
      }
    >
      <p className="text-text-2">{text.revokeText}</p>
      {revoke.isError && <Failure error={revoke.error} className="mt-4" />}
    </Dialog>
  );
}

function Usage() {
  const today = useQuery(usage);
  return (
    <Section title={text.usage} lead={today.data && text.usageText(formatAgo(today.data.resetsAt))}>
      {today.isError ? (
        <Failure what={t.failure.what.usage} error={today.error} onRetry={() => void today.refetch()} />
      ) : today.isPending ? (
        <Skeleton lines={3} />
      ) : today.data.items.length === 0 ? (
        <p className="rounded-md border border-line bg-surface p-4 text-text-2">{text.nothingUsed}</p>
      ) : (
        <dl className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
          {today.data.items.map((item) => {
            const name = (text.kinds as Partial<Record<string, string>>)[item.kind] ?? item.kind;
            const share = item.limit ? item.used / item.limit : item.limit === 0 ? 1 : undefined;
            return (
              <div key={item.kind} className="rounded-md border border-line bg-surface p-4">
                <dt className="text-text-2">{name}</dt>
                <dd className="mt-1">
                  <span className="figure text-xl font-semibold">{amountText(item.kind, item.used)}</span>
                  {item.limit !== undefined && <span className="figure text-text-2"> {text.of(amountText(item.kind, item.limit))}</span>}
                  {share !== undefined && <Bar share={share} label={name} tone={share >= 1 ? 'danger' : share > 0.8 ? 'warn' : 'accent'} className="mt-3" />}
                  <span className="mt-2 block text-sm text-text-3">
                    {item.left !== undefined ? text.left(amountText(item.kind, item.left)) : text.noLimit}
                    {' · '}
                    {item.resetsAt ? text.resets(formatAgo(item.resetsAt)) : text.doesNotReset}
                  </span>
                </dd>
              </div>
            );
          })}
        </dl>
      )}
    </Section>
  );
}

function Person() {
  const account = useQuery(me);
  const config = useConfig();
  const row = 'grid gap-x-4 px-4 py-3 sm:grid-cols-[180px_1fr]';
  return (
    <Section
      title={text.person}
      lead={text.personText}
      action={
        <Button icon={LogOut} onClick={() => void auth().signOut()}>
          {t.nav.signOut}
        </Button>
      }
    >
      {account.isError ? (
        <Failure error={account.error} onRetry={() => void account.refetch()} />
      ) : account.isPending ? (
        <Skeleton lines={4} />
      ) : (
        <dl className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface [&_dt]:text-text-2 [&_dd]:min-w-0 [&_dd]:[overflow-wrap:anywhere]">
          <div className={row}>
            <dt>{text.username}</dt>
            <dd className="flex items-center gap-1">
              <span className="font-medium">{account.data.username}</span>
              <Copy text={account.data.username} className="-my-1.5" />
            </dd>
          </div>
          <div className={row}>
            <dt>{text.name}</dt>
            <dd>{account.data.name || <span className="text-text-3">{text.notGiven}</span>}</dd>
          </div>
          <div className={row}>
            <dt>{text.email}</dt>
            <dd>{account.data.email || <span className="text-text-3">{text.notGiven}</span>}</dd>
          </div>
          <div className={row}>
            <dt>{text.groups}</dt>
            <dd className="flex flex-wrap gap-1">
              {account.data.groups.length === 0 ? <span className="text-text-3">{text.noGroups}</span> : account.data.groups.map((group) => <Badge key={group}>@{group}</Badge>)}
            </dd>
          </div>
          <div className={row}>
            <dt>{text.provider}</dt>
            <dd className="mono">{config.issuer}</dd>
          </div>
          <div className={row}>
            <dt>{text.version}</dt>
            <dd className="mono">{config.version}</dd>
          </div>
        </dl>
      )}
    </Section>
  );
}
