import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Ban, Download, Layers, Square, SquarePen, Table2, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import { api, must, raw, type Schemas, take } from '~/api/client';
import { download, save } from '~/api/download';
import { ApiError, type ErrorCode } from '~/api/errors';
import { going, longStatement, longStatements, pieces as piecesOf, statementRows } from '~/api/queries';
import { count, formatBytes, formatPercent } from '~/format/number';
import { formatDay, formatDuration, formatExact } from '~/format/time';
import { t } from '~/texts';
import { Badge, type Tone } from '~/ui/Badge';
import { Bar } from '~/ui/Bar';
import { Button, IconButton } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Grid } from '~/ui/Grid';
import { Skeleton } from '~/ui/Skeleton';
import { bytesOf, join, mostJoined } from './pieces';
import { Note } from './Result';
import { stamp } from './runs';

type Statement = Schemas['Statement'];
const text = t.sql.long;

const tones: Record<Statement['status'], Tone> = { queued: 'plain', running: 'info', completed: 'ok', failed: 'danger', cancelled: 'plain' };
const endings: Record<Statement['format'], string> = { parquet: 'parquet', arrow: 'arrows', csv: 'csv', ndjson: 'ndjson' };

export function StatusBadge({ status }: { status: Statement['status'] }) {
  return <Badge tone={tones[status]}>{text.status[status]}</Badge>;
}

/** A statement that a worker runs: how far it is, and then its rows and files. It is read from the service, so a reload changes nothing. */
export function Long({ id, onClose, onEdit }: { id: string; onClose: () => void; onEdit: (statement: Statement) => void }) {
  const found = useQuery(longStatement(id));
  if (found.isPending) {
    return (
      <div className="p-4">
        <Skeleton />
      </div>
    );
  }
  if (found.isError && !found.data) {
    return (
      <div className="p-4">
        <Failure error={found.error} onRetry={() => void found.refetch()} />
        <Button look="quiet" className="mt-3" onClick={onClose}>
          {text.close}
        </Button>
      </div>
    );
  }
  const statement = found.data;
  return (
    <>
      <header className="flex min-h-11 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 px-4 py-1.5">
        <h2 className="flex items-center gap-2 text-base font-medium whitespace-nowrap">
          <Layers size={16} strokeWidth={1.75} aria-hidden className="text-text-3" />
          {text.title}
        </h2>
        <StatusBadge status={statement.status} />
        {statement.status === 'completed' && (
          <p className="figure flex gap-x-3 text-text-2" role="status">
            <span className="font-medium text-text">{count(statement.progress.rows, 'row')}</span>
            <span>
              {text.formats[statement.format]}, {formatBytes(statement.progress.bytes)}
            </span>
            <span className="hidden text-text-3 xl:inline" title={formatExact(statement.expiresAt)}>
              {text.until(formatDay(statement.expiresAt))}
            </span>
          </p>
        )}
        <div className="ml-auto flex flex-wrap items-center gap-2">
          {statement.status === 'completed' && <Files statement={statement} />}
          <IconButton icon={SquarePen} label={text.edit} onClick={() => onEdit(statement)} />
          <IconButton icon={X} label={text.close} onClick={onClose} />
        </div>
      </header>
      <Body statement={statement} onEdit={() => onEdit(statement)} />
    </>
  );
}

/** A statement is not simply run again: the service does not keep the values of its parameters. */
function Body({ statement, onEdit }: { statement: Statement; onEdit: () => void }) {
  const again = (
    <Button icon={SquarePen} onClick={onEdit}>
      {text.edit}
    </Button>
  );
  switch (statement.status) {
    case 'queued':
    case 'running':
      return <Progress statement={statement} />;
    case 'cancelled':
      return (
        <Note icon={Ban} title={t.sql.result.cancelled} text={t.sql.result.cancelledText}>
          {again}
        </Note>
      );
    case 'failed': {
      const { code, message, subErrors } = statement.error ?? { code: 'UNKNOWN', message: text.failed, subErrors: [] };
      const known = code in t.failure.next ? (code as ErrorCode) : 'UNKNOWN';
      return (
        <div className="p-4">
          <Failure error={new ApiError({ code: known, message, subErrors })} />
          <div className="mt-3">{again}</div>
        </div>
      );
    }
    case 'completed':
      return statement.format === 'parquet' || statement.format === 'ndjson' ? <Rows statement={statement} /> : <Note icon={Download} title={text.ready} text={text.noRows(text.formats[statement.format])} />;
  }
}

function Progress({ statement }: { statement: Statement }) {
  const client = useQueryClient();
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const stop = useMutation({
    mutationFn: () => take(api.POST('/query/statements/{statementId}/cancel', { params: { path: { statementId: statement.id } } })),
    onSuccess: (after) => client.setQueryData(longStatement(statement.id).queryKey, after),
    // It may have ended in the meantime.
    onError: () => client.invalidateQueries({ queryKey: longStatement(statement.id).queryKey }),
    onSettled: () => client.invalidateQueries({ queryKey: longStatements.queryKey }),
  });
  const { part, rows, bytes } = statement.progress;
  return (
    <div className="p-4" role="status">
      <div className="max-w-190 rounded-md border border-line bg-surface p-4">
        <p className="mono line-clamp-3 [overflow-wrap:anywhere] whitespace-pre-wrap text-text-2">{statement.query.slice(0, 500)}</p>
        <Bar share={part} label={text.progress} className="mt-4 h-2" />
        <p className="figure mt-2 flex flex-wrap gap-x-4 text-sm text-text-2">
          <span>{statement.status === 'queued' ? text.waiting : rows > 0 ? text.writing : text.computed(formatPercent(Math.floor(part * 100) / 100))}</span>
          {rows > 0 && <span>{text.written(count(rows, 'row'), formatBytes(bytes))}</span>}
          <span>{formatDuration(Math.max(0, now - Date.parse(statement.startedAt ?? statement.createdAt)) / 1000)}</span>
        </p>
        <div className="mt-4 flex flex-wrap items-center gap-x-4 gap-y-2">
          <Button icon={Square} busy={stop.isPending} onClick={() => stop.mutate()}>
            {t.sql.cancel}
          </Button>
          <p className="text-sm text-text-3">{text.leave}</p>
        </div>
        {stop.isError && going(statement) && <Failure error={stop.error} className="mt-4" />}
      </div>
    </div>
  );
}

function Rows({ statement }: { statement: Statement }) {
  const rows = useInfiniteQuery(statementRows(statement.id));
  if (rows.isError && !rows.data) return <Failure error={rows.error} onRetry={() => void rows.refetch()} className="m-4" />;
  if (rows.isPending) {
    return (
      <div className="p-4">
        <Skeleton />
      </div>
    );
  }
  if (statement.progress.rows === 0) return <Note icon={Table2} title={t.grid.empty} text={t.sql.result.none} />;
  return (
    <>
      {rows.isError && <Failure error={rows.error} onRetry={() => void rows.fetchNextPage()} className="mx-4 mb-3" />}
      <Grid
        columns={statement.columns ?? []}
        rows={rows.data.pages.flatMap((page) => page.data)}
        total={statement.progress.rows}
        label={t.sql.result.label}
        loading={rows.isFetchingNextPage}
        onEnd={() => {
          if (rows.hasNextPage && !rows.isFetchingNextPage && !rows.isError) void rows.fetchNextPage();
        }}
        className="min-h-0 grow rounded-none border-x-0 border-b-0"
      />
    </>
  );
}

const addressOf = (id: string, number: number) => `/query/statements/${id}/pieces/${number}`;

/** The whole result as one file, and its pieces. One piece is a file already, so the browser takes it straight from the object store. */
function Files({ statement }: { statement: Statement }) {
  const list = useQuery(piecesOf(statement.id));
  const [opened, setOpened] = useState(false);
  const [done, setDone] = useState<number>();
  const [fault, setFault] = useState<unknown>();
  const all = list.data;
  const name = `result-${stamp()}.${endings[statement.format]}`;
  const [only, ...others] = all?.data ?? [];
  const single = only !== undefined && others.length === 0;
  const large = all !== undefined && bytesOf(all) > mostJoined;

  const guarded = async (work: () => Promise<void>) => {
    setFault(undefined);
    try {
      await work();
    } catch (cause) {
      setFault(cause);
    } finally {
      setDone(undefined);
    }
  };
  const one = (number: number) => guarded(() => download(addressOf(statement.id, number), name));
  const joined = () =>
    guarded(async () => {
      if (!all) return;
      setDone(0);
      save(await join(all, async (number) => (await must(await raw(addressOf(statement.id, number)))).blob(), setDone), name);
    });
  const take = () => {
    if (list.isError) void list.refetch();
    if (single) void one(only.number);
    else if (large) setOpened(true);
    else void joined();
  };
  const problem = fault ?? (list.isError ? list.error : undefined);
  return (
    <>
      {!single && all && all.data.length > 0 && (
        <Button look="quiet" onClick={() => setOpened(true)}>
          {count(all.data.length, 'piece')}
        </Button>
      )}
      {all?.data.length !== 0 && (
        <Button look="primary" icon={Download} busy={done !== undefined || list.isPending} onClick={take}>
          {done === undefined ? text.download : text.fetched(done, all?.data.length ?? 0)}
        </Button>
      )}
      <Dialog open={opened || problem !== undefined} onClose={() => [setOpened(false), setFault(undefined)]} title={text.pieces} size="lg">
        {problem !== undefined && <Failure error={problem} className="mb-4" {...(list.isError && { onRetry: () => void list.refetch() })} />}
        <p className="mb-3 text-text-2">{large ? text.piecesLarge : text.piecesText}</p>
        <ul className="divide-y divide-line rounded-md border border-line">
          {all?.data.map((piece) => (
            <li key={piece.number} className="flex items-center gap-4 py-2 pr-2 pl-4">
              <span className="figure w-8 text-text-3">{piece.number}</span>
              <span className="figure grow">{count(piece.rows, 'row')}</span>
              <span className="figure text-text-2">{formatBytes(piece.bytes)}</span>
              <IconButton icon={Download} label={text.piece(piece.number)} onClick={() => void one(piece.number)} />
            </li>
          ))}
        </ul>
      </Dialog>
    </>
  );
}
