import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { History, MoreHorizontal, Play, TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import { api, newKey, take } from '~/api/client';
import { me } from '~/api/queries';
import { count, formatBytes } from '~/format/number';
import { formatDuration, formatExact } from '~/format/time';
import { t } from '~/texts';
import { Button, buttonClass } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Empty } from '~/ui/Empty';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Menu } from '~/ui/Menu';
import { Page } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';
import { addressOf, connections, contentOf, going, nameOf, runs, type Source, source, type SourceRun } from './queries';
import { Move } from './Move';
import { Remove } from './Remove';
import { choiceOf, scheduleOf, scheduleText } from './schedule';
import { ScheduleFields } from './ScheduleFields';
import { RunBadge, StatusBadge } from './state';

const texts = t.sources;

export default function SourcePage() {
  const { source: id } = useParams({ strict: false }) as { source: string };
  // A source that is deleted is not read again on the way to the list.
  const [gone, setGone] = useState(false);
  const found = useQuery({ ...source(id), enabled: !gone });
  const crumbs = (
    <Link to="/sources" className="hover:text-text hover:underline">
      {texts.title}
    </Link>
  );
  if (gone || found.isError || found.isPending) {
    return (
      <Page title={texts.one} above={crumbs}>
        {found.isError ? <Failure error={found.error} onRetry={() => void found.refetch()} /> : <Skeleton />}
      </Page>
    );
  }
  const { data } = found;
  return (
    <Page title={data.name} above={crumbs} lead={<StatusBadge source={data} />} actions={<Actions source={data} onGone={() => setGone(true)} />}>
      <div className="flex flex-col gap-8">
        {data.status === 'stopped' && <Stopped source={data} />}
        <Open source={data} />
        <About source={data} />
        <Runs source={data} />
      </div>
    </Page>
  );
}

/** What changes the source. All of it is told where it happens, and the page is read again. */
function useChange(of: Source) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Parameters<typeof change>[1]) => change(of.id, body),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['sources'] }),
  });
}

const change = (id: string, body: { active?: boolean; schedule?: NonNullable<ReturnType<typeof scheduleOf>> }) => take(api.PATCH('/sources/{sourceId}', { params: { path: { sourceId: id } }, body }));

function Actions({ source: of, onGone }: { source: Source; onGone: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [open, setOpen] = useState<'schedule' | 'move' | 'delete'>();
  const set = useChange(of);
  const run = useMutation({
    mutationFn: () => take(api.POST('/sources/{sourceId}/run', { params: { path: { sourceId: of.id }, header: { 'Idempotency-Key': newKey() } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ['sources'] }),
  });
  const busy = run.isPending || going(of.lastRun);
  const failed = run.error ?? set.error;
  return (
    <>
      {of.status === 'active' ? (
        <Button look="primary" icon={Play} busy={busy} onClick={() => run.mutate()}>
          {busy ? texts.running : texts.run}
        </Button>
      ) : (
        <Button look="primary" busy={set.isPending} onClick={() => set.mutate({ active: true }, { onSuccess: (now) => say(now.openFiles?.some((file) => file.status === 'waiting') ? texts.resumedOpen(of.name) : texts.resumed(of.name)) })}>
          {texts.resume}
        </Button>
      )}
      <Menu
        label={texts.moreOf(of.name)}
        className={buttonClass('plain', 'px-2')}
        items={[
          { label: texts.schedule.change, onSelect: () => setOpen('schedule') },
          ...(of.postgresql || of.iceberg ? [] : [{ label: texts.move.button, onSelect: () => setOpen('move') }]),
          { label: texts.pause, disabled: of.status !== 'active', onSelect: () => set.mutate({ active: false }, { onSuccess: () => say(texts.paused(of.name)) }) },
          'line',
          { label: texts.delete, danger: true, onSelect: () => setOpen('delete') },
        ]}
      >
        <MoreHorizontal size={16} strokeWidth={1.75} aria-hidden />
      </Menu>
      {failed && <Failure error={failed} className="w-full" />}
      {open === 'schedule' && <Schedule source={of} onClose={() => setOpen(undefined)} />}
      {open === 'move' && <Move source={of} onClose={() => setOpen(undefined)} />}
      {open === 'delete' && (
        <Remove
          name={of.name}
          text={texts.deleteSource}
          remove={() => take(api.DELETE('/sources/{sourceId}', { params: { path: { sourceId: of.id } } }))}
          onClose={() => setOpen(undefined)}
          onRemoved={() => {
            onGone();
            void navigate({ to: '/sources' });
          }}
        />
      )}
    </>
  );
}

function Schedule({ source: of, onClose }: { source: Source; onClose: () => void }) {
  const [value, setValue] = useState(() => choiceOf(of.schedule));
  const set = useChange(of);
  const jitter = of.schedule?.jitterMinutes;
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.schedule.title(of.name)}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button
            look="primary"
            busy={set.isPending}
            onClick={() => {
              const wish = scheduleOf(value);
              set.mutate({ schedule: wish ? { ...wish, ...(jitter && { jitterMinutes: jitter }) } : {} }, { onSuccess: onClose });
            }}
          >
            {t.common.save}
          </Button>
        </>
      }
    >
      <ScheduleFields value={value} onChange={setValue} />
      {set.isError && <Failure error={set.error} className="mt-4" />}
    </Dialog>
  );
}

/** Why the service stopped the source, and what a person has to decide. */
function Stopped({ source: of }: { source: Source }) {
  const code = of.reasonCode ?? 'file';
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-danger/30 bg-danger-soft p-4">
      <TriangleAlert size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0 text-danger" />
      <div className="min-w-0">
        <p className="font-medium text-danger [overflow-wrap:anywhere]">{of.reason}</p>
        <p className="mt-1 text-text-2">{(texts.stopped as Partial<Record<string, string>>)[code] ?? texts.stopped.file}</p>
        {(code === 'doubt' || code === 'file') && (
          <Link to="/data/$owner/$namespace/$dataset/$tab" params={{ owner: of.username, namespace: of.namespace, dataset: of.datasetName, tab: 'loads' }} className={buttonClass('plain', 'mt-3')}>
            {texts.seeLoads}
          </Link>
        )}
      </div>
    </div>
  );
}

/** The files that wait for somebody, and those that are left out. */
function Open({ source: of }: { source: Source }) {
  if (!of.openFiles) return null;
  return (
    <section aria-label={texts.open.title}>
      <h2 className="mb-4 text-lg">{texts.open.title}</h2>
      <ul className="divide-y divide-line rounded-md border border-line bg-surface">
        {of.openFiles.map((file) => (
          <li key={file.path ?? ''} className="px-4 py-3 [overflow-wrap:anywhere]">
            {file.path ? <span className="mono">{file.path}</span> : texts.open.rows} <span className="text-text-2">{texts.open[file.status]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function About({ source: of }: { source: Source }) {
  const self = useQuery(me).data?.username ?? '';
  const known = useInfiniteQuery(connections);
  const connection = (known.data?.pages ?? []).flatMap((page) => page.data).find((one) => one.id === of.connectionId);
  const { postgresql, iceberg, paths } = of;
  // A run that failed or goes on has no snapshot. The dataset still shows that of the run before it.
  const history = useInfiniteQuery({ ...runs(of.id, of.lastRun), enabled: iceberg !== undefined });
  const attached = of.lastRun?.snapshotId ?? history.data?.pages.flatMap((page) => page.data).find(({ snapshotId }) => snapshotId)?.snapshotId;
  const row = 'grid gap-x-4 px-4 py-3 sm:grid-cols-[180px_1fr]';
  return (
    <dl className="divide-y divide-line overflow-hidden rounded-md border border-line bg-surface [&_dt]:text-text-2 [&_dd]:min-w-0 [&_dd]:[overflow-wrap:anywhere]">
      <div className={row}>
        <dt>{texts.about.from}</dt>
        <dd>{connection ? `${nameOf(connection)} (${addressOf(connection)})` : known.isPending ? '' : texts.about.gone}</dd>
      </div>
      <div className={row}>
        <dt>{texts.about.what}</dt>
        <dd className={postgresql?.query ? 'mono' : undefined}>{postgresql?.query ?? paths?.join(', ') ?? contentOf(of, texts)}</dd>
      </div>
      <div className={row}>
        <dt>{texts.about.into}</dt>
        <dd>
          <Link to="/data/$owner/$namespace/$dataset" params={{ owner: of.username, namespace: of.namespace, dataset: of.datasetName }} className="text-accent hover:underline">
            {[...(of.username === self ? [] : [of.username]), of.namespace, of.datasetName].join('/')}
          </Link>
        </dd>
      </div>
      <div className={row}>
        <dt>{texts.about.how}</dt>
        <dd>
          {iceberg
            ? texts.about.attached(attached)
            : postgresql
              ? texts.about.modes[postgresql.mode](postgresql.cursorColumn ?? '', postgresql.cursor)
              : [paths ? texts.about.addresses : texts.about.files, texts.about.changed[of.changed ?? 'keep'], texts.about.deleted[of.deleted ?? 'keep']].join(' ')}
        </dd>
      </div>
      <div className={row}>
        <dt>{texts.about.when}</dt>
        <dd>
          {of.schedule ? scheduleText(of.schedule) : texts.about.asked}
          {of.nextRunAt && (
            <span className="text-text-2">
              {' · '}
              {texts.next} <Ago time={of.nextRunAt} />
            </span>
          )}
        </dd>
      </div>
    </dl>
  );
}

function Runs({ source: of }: { source: Source }) {
  const list = useInfiniteQuery(runs(of.id, of.lastRun));
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  return (
    <section aria-label={texts.runs.title}>
      <h2 className="mb-4 text-lg">{texts.runs.title}</h2>
      {list.isError ? (
        <Failure what={texts.failed.runs} error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Skeleton lines={3} />
      ) : all.length === 0 ? (
        <div className="rounded-md border border-line bg-surface">
          <Empty icon={History} title={texts.runs.none}>
            {of.schedule ? texts.runs.noneScheduled : texts.runs.noneText}
          </Empty>
        </div>
      ) : (
        <ol className="divide-y divide-line rounded-md border border-line bg-surface">
          {all.map((run) => (
            <Run key={run.id} run={run} rows={of.postgresql !== undefined} told={of.status === 'stopped' ? of.reason : undefined} />
          ))}
        </ol>
      )}
      {list.hasNextPage && (
        <Button className="mt-4" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {t.common.more}
        </Button>
      )}
    </section>
  );
}

function Run({ run, rows, told }: { run: SourceRun; rows: boolean; /** A reason that stands above already. */ told: string | undefined }) {
  const nothing = run.status === 'completed' && run.rows === 0 && run.files === 0 && run.filesRemoved === 0;
  return (
    <li className="px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <time dateTime={run.createdAt} className="figure">
          {formatExact(run.createdAt)}
        </time>
        <RunBadge run={run} />
      </div>
      <Facts
        className="figure mt-0.5 text-sm text-text-3"
        of={[
          run.slotAt ? texts.runs.bySchedule : texts.runs.byPerson,
          nothing ? texts.runs.nothing : !rows && count(run.files, 'file'),
          !nothing && count(run.rows, 'row'),
          run.bytes > 0 && formatBytes(run.bytes),
          run.startedAt && run.finishedAt && formatDuration((Date.parse(run.finishedAt) - Date.parse(run.startedAt)) / 1000),
          run.filesReplaced > 0 && texts.runs.replaced(count(run.rowsReplaced, 'row'), count(run.filesReplaced, 'file')),
          run.filesRemoved > 0 && texts.runs.removed(count(run.rowsRemoved, 'row'), count(run.filesRemoved, 'file')),
          run.rowsSetAside > 0 && <span className="text-warn">{texts.runs.aside(count(run.rowsSetAside, 'row'))}</span>,
          run.filesLeftOut > 0 && <span className="text-warn">{texts.runs.leftOut(count(run.filesLeftOut, 'file'))}</span>,
          run.filesEmpty > 0 && texts.runs.empty(count(run.filesEmpty, 'file')),
          run.changed > 0 && <span className="text-warn">{texts.runs.changed(count(run.changed, 'file'))}</span>,
          run.deleted > 0 && <span className="text-warn">{texts.runs.deleted(count(run.deleted, 'file'))}</span>,
        ]}
      />
      {run.reason && run.reason !== told && <p className="mt-2 text-sm text-danger [overflow-wrap:anywhere]">{run.reason}</p>}
      {run.notes && run.notes.length > 0 && (
        <ul className="mt-2 text-sm text-text-2">
          {run.notes.map((note) => (
            <li key={`${note.event} ${note.path}`} className="[overflow-wrap:anywhere]">
              <span className="mono">{note.path}</span> {(texts.runs.notes as Partial<Record<string, string>>)[note.event] ?? note.event}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
