import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CloudDownload, MoreHorizontal, Plug, Plus } from 'lucide-react';
import { type ReactNode, useId, useState } from 'react';
import { api, take } from '~/api/client';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Menu } from '~/ui/Menu';
import { Page } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';
import { ConnectionFailure } from './ConnectionFailure';
import { NewConnection } from './NewConnection';
import { NewSource } from './NewSource';
import { addressOf, type Connection, connections, contentOf, type Source, sources } from './queries';
import { Rekey } from './Rekey';
import { Remove } from './Remove';
import { ShareConnection } from './ShareConnection';
import { RunBadge, StatusBadge } from './state';

const texts = t.sources;

export default function Sources() {
  const waiting = useInfiniteQuery(connections).isPending;
  const [adding, setAdding] = useState<'source' | 'connection'>();
  const [made, setMade] = useState<string>();
  return (
    <Page title={texts.title} lead={texts.lead}>
      <div className="flex flex-col gap-10">
        <List onAdd={setAdding} />
        {/* A section waits for the one above it, so that nothing jumps. */}
        {!waiting && <Connections onAdd={() => setAdding('connection')} />}
      </div>
      {adding === 'source' && <NewSource from={made} onClose={() => setAdding(undefined)} onConnect={() => setAdding('connection')} />}
      {adding === 'connection' && (
        <NewConnection
          onClose={() => setAdding(undefined)}
          onMade={(id) => {
            // The next thing that a person does with a connection.
            setMade(id);
            setAdding('source');
          }}
        />
      )}
    </Page>
  );
}

function Section({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <div className="mb-4 flex flex-wrap items-end justify-between gap-x-4 gap-y-2">
        <h2 id={id} className="text-lg">
          {title}
        </h2>
        {action}
      </div>
      {children}
    </section>
  );
}

function List({ onAdd }: { onAdd: (what: 'source' | 'connection') => void }) {
  const list = useInfiniteQuery(sources);
  const known = useInfiniteQuery(connections);
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  const some = (known.data?.pages[0]?.data.length ?? 0) > 0;
  const add = (
    <Button look="primary" icon={some ? Plus : Plug} onClick={() => onAdd(some ? 'source' : 'connection')}>
      {some ? texts.add : texts.connect}
    </Button>
  );
  return (
    <Section title={texts.list} action={all.length > 0 && add}>
      {list.isError ? (
        <Failure what={texts.failed.sources} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending || known.isPending ? (
        <Skeleton lines={4} />
      ) : all.length === 0 ? (
        <div className="rounded-md border border-line bg-surface">
          <Empty icon={CloudDownload} title={texts.none} action={add}>
            {some ? texts.noneText : texts.noConnectionText}
          </Empty>
        </div>
      ) : (
        <ul className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface">
          {all.map((one) => (
            <Line key={one.id} source={one} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
    </Section>
  );
}

function Line({ source }: { source: Source }) {
  const last = source.lastRun;
  return (
    <li className="px-4 py-3">
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <Link to="/sources/$source" params={{ source: source.id }} className="min-w-0 font-medium [overflow-wrap:anywhere] hover:underline">
          {source.name}
        </Link>
        <StatusBadge source={source} />
        {last && source.status !== 'stopped' && <RunBadge run={last} />}
      </p>
      <Facts
        className="mt-1 text-sm text-text-2 [overflow-wrap:anywhere]"
        of={[
          contentOf(source, texts),
          `${texts.into} ${source.namespace}/${source.datasetName}`,
          last ? (
            <>
              {texts.ran} <Ago time={last.finishedAt ?? last.createdAt} />
            </>
          ) : (
            texts.neverRan
          ),
          source.nextRunAt && (
            <>
              {texts.next} <Ago time={source.nextRunAt} />
            </>
          ),
        ]}
      />
      {source.status === 'stopped' && <p className="mt-1 text-sm text-danger [overflow-wrap:anywhere]">{source.reason}</p>}
    </li>
  );
}

function Connections({ onAdd }: { onAdd: () => void }) {
  const list = useInfiniteQuery(connections);
  const queries = useQueryClient();
  const known = useInfiniteQuery(sources);
  const [rekeying, setRekeying] = useState<Connection>();
  const [deleting, setDeleting] = useState<Connection>();
  const [sharing, setSharing] = useState<Connection>();
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  const test = useMutation({
    mutationFn: (one: Connection) => take(api.POST('/connections/{connectionId}/test', { params: { path: { connectionId: one.id } } })),
    onSuccess: async (one) => {
      await queries.invalidateQueries({ queryKey: connections.queryKey, exact: true });
      if (!one.problem) say(texts.works(one.name));
    },
  });
  const users = (known.data?.pages ?? []).flatMap((page) => page.data).filter((one) => one.connectionId === deleting?.id);
  if (list.isError) return <Failure what={texts.failed.connections} error={list.error} onRetry={() => void list.refetch()} />;
  if (all.length === 0) return null;
  return (
    <Section
      title={texts.connections}
      action={
        <Button icon={Plus} onClick={onAdd}>
          {texts.connect}
        </Button>
      }
    >
      {test.isError && <ConnectionFailure error={test.error} className="mb-4" />}
      <ul className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface">
        {all.map((one) => (
          <li key={one.id} className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3">
            <div className="min-w-0 grow basis-60">
              <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
                <span className="min-w-0 font-medium [overflow-wrap:anywhere]">{one.name}</span>
                <Badge>{texts.kinds[one.kind]}</Badge>
                {one.problem && <Badge tone="danger">{texts.problem}</Badge>}
              </p>
              <Facts
                className="mt-1 text-sm text-text-2 [overflow-wrap:anywhere]"
                of={[
                  addressOf(one),
                  one.owner && texts.share.by(one.owner),
                  <>
                    {texts.tested} <Ago time={one.testedAt} />
                  </>,
                ]}
              />
              {one.problem && <p className="mt-1 text-sm text-danger [overflow-wrap:anywhere]">{one.problem.message}</p>}
            </div>
            {one.owner === undefined && (
              <>
                <Button busy={test.isPending && test.variables.id === one.id} onClick={() => test.mutate(one)} aria-label={texts.testOf(one.name)}>
                  {texts.test}
                </Button>
                <Menu
                  label={texts.moreOf(one.name)}
                  className="inline-flex size-8 shrink-0 items-center justify-center rounded-md text-text-2 hover:bg-hover hover:text-text pointer-coarse:size-11"
                  items={[{ label: texts.share.button, onSelect: () => setSharing(one) }, ...(one.https?.auth === 'none' ? [] : [{ label: texts.rekey.button, onSelect: () => setRekeying(one) }, 'line' as const]), { label: texts.delete, danger: true, onSelect: () => setDeleting(one) }]}
                >
                  <MoreHorizontal size={16} strokeWidth={1.75} aria-hidden />
                </Menu>
              </>
            )}
          </li>
        ))}
      </ul>
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
      {rekeying && <Rekey connection={rekeying} onClose={() => setRekeying(undefined)} />}
      {sharing && <ShareConnection connection={sharing} onClose={() => setSharing(undefined)} />}
      {deleting && (
        <Remove
          name={deleting.name}
          text={texts.deleteConnection(
            users.map((one) => one.name),
            users.filter((one) => one.iceberg).map((one) => `${one.namespace}/${one.datasetName}`),
          )}
          remove={() => take(api.DELETE('/connections/{connectionId}', { params: { path: { connectionId: deleting.id } } }))}
          onClose={() => setDeleting(undefined)}
          onRemoved={() => setDeleting(undefined)}
        />
      )}
    </Section>
  );
}

