import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Gauge, MoreHorizontal, UserCheck, UserX } from 'lucide-react';
import { useState } from 'react';
import { api, take } from '~/api/client';
import { me } from '~/api/queries';
import { amountText } from '~/screens/account/tokens';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Menu } from '~/ui/Menu';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';
import { Section } from './Operation';
import { type User, usageOf, users } from './queries';

const texts = t.operation;

export function Users() {
  const list = useInfiniteQuery(users);
  const [shown, setShown] = useState<User>();
  const [changed, setChanged] = useState<User>();
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  return (
    <Section title={texts.users} lead={texts.usersText}>
      {list.isError ? (
        <Failure what={texts.failed.users} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={4} />
      ) : (
        <ul className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface">
          {all.map((user) => (
            <Line key={user.id} user={user} onUsage={() => setShown(user)} onChange={() => setChanged(user)} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
      {shown && <UsageOf user={shown} onClose={() => setShown(undefined)} />}
      {changed && <Change user={changed} onClose={() => setChanged(undefined)} />}
    </Section>
  );
}

function Line({ user, onUsage, onChange }: { user: User; onUsage: () => void; onChange: () => void }) {
  const self = useQuery(me).data?.username === user.username;
  return (
    <li className="flex items-center justify-between gap-4 px-4 py-3">
      <div className="min-w-0">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 font-medium [overflow-wrap:anywhere]">{user.username}</span>
          {user.disabled && <Badge tone="danger">{texts.disabled}</Badge>}
        </p>
        <Facts
          className="mt-1 text-sm text-text-2 [overflow-wrap:anywhere]"
          of={[
            user.name,
            user.email,
            <>
              {texts.seen} <Ago time={user.seenAt} />
            </>,
            <>
              {texts.created} <Ago time={user.createdAt} />
            </>,
          ]}
        />
      </div>
      <Menu
        label={texts.actions(user.username)}
        items={[
          { label: texts.usage, icon: Gauge, onSelect: onUsage },
          ...(self ? [] : [{ label: user.disabled ? texts.enable : texts.disable, icon: user.disabled ? UserCheck : UserX, onSelect: onChange }]),
        ]}
      >
        <MoreHorizontal size={16} strokeWidth={1.75} aria-hidden />
      </Menu>
    </li>
  );
}

function UsageOf({ user, onClose }: { user: User; onClose: () => void }) {
  const today = useQuery(usageOf(user.username));
  return (
    <Dialog open onClose={onClose} title={texts.usageOf(user.username)} footer={<Button onClick={onClose}>{t.common.close}</Button>}>
      {today.isError ? (
        <Failure what={t.failure.what.usage} error={today.error} onRetry={() => void today.refetch()} />
      ) : today.isPending ? (
        <Skeleton lines={3} />
      ) : today.data.items.length === 0 ? (
        <p className="text-text-2">{t.account.nothingUsed}</p>
      ) : (
        <dl className="divide-y divide-line">
          {today.data.items.map((item) => (
            <div key={item.kind} className="flex justify-between gap-4 py-2">
              <dt className="text-text-2">{(t.account.kinds as Partial<Record<string, string>>)[item.kind] ?? item.kind}</dt>
              <dd className="figure">
                {amountText(item.kind, item.used)} {item.limit !== undefined && t.account.of(amountText(item.kind, item.limit))}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Dialog>
  );
}

/** Disables a user, after a question, or enables one. */
function Change({ user, onClose }: { user: User; onClose: () => void }) {
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: () => take(api.PATCH('/operator/users/{username}', { params: { path: { username: user.username } }, body: { disabled: !user.disabled } })),
    onSuccess: async () => {
      onClose();
      say(user.disabled ? texts.wasEnabled(user.username) : texts.wasDisabled(user.username));
      await queries.invalidateQueries({ queryKey: users.queryKey });
    },
  });
  const label = user.disabled ? texts.enable : texts.disable;
  return (
    <Dialog
      open
      onClose={onClose}
      title={user.disabled ? texts.enableTitle(user.username) : texts.disableTitle(user.username)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look={user.disabled ? 'primary' : 'danger'} busy={change.isPending} onClick={() => change.mutate()}>
            {label}
          </Button>
        </>
      }
    >
      <p className="text-text-2">{user.disabled ? texts.enableText : texts.disableText}</p>
      {change.isError && <Failure error={change.error} className="mt-4" />}
    </Dialog>
  );
}
