import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { LogOut, Users } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { api, take } from '~/api/client';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, buttonClass } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import type { SpaceOf } from './groups';

const texts = t.data;
const ShareList = lazy(() => retried(async () => ({ default: (await import('../sharing/ShareList')).ShareList })));

/** The heading of a namespace in the list, with what can be done to the whole of it. */
export function Space({ of, mine, empty }: { of: SpaceOf; mine: string | undefined; empty: boolean }) {
  const [leaving, setLeaving] = useState(false);
  const own = of.username === mine;
  return (
    <tr>
      <th scope="rowgroup" colSpan={5} className="border-b border-line bg-sunken px-4 py-1 text-left font-normal">
        <div className="flex min-h-8 items-center gap-2">
          <h2 className="min-w-0 truncate text-sm" title={texts.space(of.name)}>
            {!own && <span className="font-normal text-text-2">{of.username} / </span>}
            {of.name}
          </h2>
          {!own && of.role && <Badge tone="info">{t.common.roles[of.role]}</Badge>}
          {empty && <span className="text-sm text-text-3">{texts.spaceEmpty}</span>}
          <span className="grow" />
          {own && (
            <Link to="/data" search={(old) => ({ ...old, sharing: `${of.username}/${of.name}` })} aria-label={texts.shareSpaceOf(of.name)} className={buttonClass('quiet', '-mr-3 h-7 text-sm')}>
              <Users size={16} strokeWidth={1.75} aria-hidden />
              {texts.shareSpace}
            </Link>
          )}
          {!own && of.role && (
            <Button look="quiet" icon={LogOut} aria-label={texts.leaveSpaceOf(of.name)} className="-mr-3 h-7 text-sm" onClick={() => setLeaving(true)}>
              {texts.leaveSpace}
            </Button>
          )}
        </div>
        {leaving && <Leave of={of} onClose={() => setLeaving(false)} />}
      </th>
    </tr>
  );
}

/** Who has access to a namespace as a whole. Only its owner sees and changes that. */
export function SpaceSharing({ of, mine, onClose }: { of: string | undefined; mine: string | undefined; onClose: () => void }) {
  const [owner, namespace] = of?.split('/') ?? [];
  if (!owner || !namespace || owner !== mine) return null;
  return (
    <Dialog open onClose={onClose} title={texts.shareSpaceOf(namespace)}>
      <p className="mb-4 text-text-2">{texts.shareSpaceText}</p>
      <Suspense fallback={<Skeleton lines={3} />}>
        <ShareList of={{ owner, namespace }} />
      </Suspense>
    </Dialog>
  );
}

function Leave({ of, onClose }: { of: SpaceOf; onClose: () => void }) {
  const queries = useQueryClient();
  const leave = useMutation({
    mutationFn: () => take(api.DELETE('/permissions/namespaces/{username}/{namespace}/shares/self', { params: { path: { username: of.username, namespace: of.name } } })),
    onSuccess: async () => {
      say(texts.leftSpace(of.name));
      onClose();
      await Promise.all([queries.invalidateQueries({ queryKey: ['datasets'] }), queries.invalidateQueries({ queryKey: ['namespaces'] })]);
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.leaveSpaceOf(of.name)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="danger" busy={leave.isPending} onClick={() => leave.mutate()}>
            {texts.leaveSpace}
          </Button>
        </>
      }
    >
      <p className="text-text-2">{texts.leaveSpaceText}</p>
      {leave.isError && <Failure error={leave.error} className="mt-4" />}
    </Dialog>
  );
}
