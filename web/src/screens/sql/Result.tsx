import { Link } from '@tanstack/react-router';
import { Ban, Download, Play, Square, Table2, TextSearch } from 'lucide-react';
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react';
import { count } from '~/format/number';
import { formatDuration } from '~/format/time';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, buttonClass } from '~/ui/Button';
import { choose } from '~/ui/chart/choose';
import { type ChartHandle, imagesOf } from '~/ui/chart/images';
import { Copy } from '~/ui/Copy';
import { Failure } from '~/ui/Failure';
import { Grid } from '~/ui/Grid';
import { Menu } from '~/ui/Menu';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import { hasOrder } from '~/ui/sqlText';
import { say } from '~/ui/toast';
import { LongMenu } from './LongMenu';
import { direct, exportRows, type Format, type Result as Rows, type Run } from './runs';
import { hasLimit } from './tokens';

const Chart = lazy(() => retried(() => import('~/ui/chart/Chart')));
/** More marks than this tell the eye nothing. */
const mostCharted = 5000;

export function formatMs(ms: number): string {
  return ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : formatDuration(ms / 1000);
}

/** What a person can do about a result that is cut. */
type Onward = { onLimit: () => void; /** Runs it as a long statement. */ onLong: (format: Format) => void; /** Shows a long statement that was made of it. */ onStarted: (id: string) => void };

/** The rows of a run, or what stands in their place while there are none. */
export function Result({ run, onAgain, onCancel, ...rest }: { run: Run; onAgain: () => void; onCancel: () => void } & Onward) {
  switch (run.state) {
    case 'running':
      return <Running key={run.id} since={run.started} onCancel={onCancel} />;
    case 'cancelled':
      return (
        <Note icon={Ban} title={t.sql.result.cancelled} text={t.sql.result.cancelledText}>
          <Button icon={Play} onClick={onAgain}>
            {t.sql.result.again}
          </Button>
        </Note>
      );
    case 'failed':
      return null;
    case 'done':
      return run.request.explain || isPlan(run.result) ? <Plan result={run.result} /> : <Table key={run.id} run={run} result={run.result} {...rest} />;
  }
}

function Running({ since, onCancel }: { since: number; onCancel: () => void }) {
  const [now, setNow] = useState(since);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 200);
    return () => clearInterval(timer);
  }, []);
  return (
    <div className="late flex grow flex-col p-4" role="status">
      <p className="flex items-center gap-3 text-text-2">
        <span className="figure">
          {t.sql.result.running} {formatDuration(Math.max(0, now - since) / 1000)}
        </span>
        <Button icon={Square} onClick={onCancel}>
          {t.sql.cancel}
        </Button>
      </p>
      <div aria-hidden className="mt-4 flex flex-col gap-3">
        {Array.from({ length: 6 }, (_, index) => (
          <div key={index} className="skeleton h-4" style={{ width: `${92 - ((index * 37) % 40)}%` }} />
        ))}
      </div>
    </div>
  );
}

export function Note({ icon: Icon, title, text, children }: { icon: typeof Table2; title: string; text: string; children?: React.ReactNode }) {
  return (
    <div className="appear m-auto flex max-w-110 flex-col items-center px-6 py-8 text-center">
      <span className="mb-3 flex size-11 items-center justify-center rounded-lg border border-line bg-surface text-text-3">
        <Icon size={20} strokeWidth={1.75} aria-hidden />
      </span>
      <p className="font-medium">{title}</p>
      <p className="mt-1 text-text-2 text-pretty">{text}</p>
      {children && <div className="mt-4 flex flex-wrap justify-center gap-2">{children}</div>}
    </div>
  );
}

/** EXPLAIN in the statement gives the same rows as the button does. */
function isPlan(result: Rows): boolean {
  return result.columns.length === 1 && result.columns[0]?.name === 'plan' && String(result.data[0]?.['plan'] ?? '').startsWith('┌');
}

function Plan({ result }: { result: Rows }) {
  const text = useMemo(() => result.data.map((row) => String(row['plan'] ?? '')).join('\n'), [result]);
  return (
    <>
      <header className="flex h-11 shrink-0 items-center gap-2 px-4">
        <TextSearch size={16} strokeWidth={1.75} aria-hidden className="text-text-3" />
        <h2 className="text-base font-medium">{t.sql.result.plan}</h2>
        <span className="text-text-3">{formatMs(result.metadata.elapsedMs)}</span>
        <Copy text={text} className="ml-auto size-8" />
      </header>
      <pre tabIndex={0} aria-label={t.sql.result.planLabel} className="mono grow overflow-auto border-t border-line bg-surface p-4 leading-4.5">
        {text}
      </pre>
    </>
  );
}

function Table({ run, result, onLimit, onLong, onStarted }: { run: Run; result: Rows } & Onward) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>();
  const [view, setView] = useState<'rows' | 'chart'>('rows');
  const drawing = useRef<ChartHandle>(null);
  const { metadata } = result;
  const chart = useMemo(() => (result.data.length > mostCharted ? null : choose(result.columns, result.data)), [result]);
  const rows = count(metadata.count, 'row');

  const save = async (format: (typeof direct)[number]) => {
    setBusy(true);
    setFault(undefined);
    try {
      const file = await exportRows(run.request, format);
      if ('statement' in file) {
        say(t.sql.long.started);
        onStarted(file.statement);
      } else say(t.sql.result.exported(count(file.count, 'row')));
    } catch (cause) {
      setFault(cause);
    } finally {
      setBusy(false);
    }
  };

  return (
    <>
      <header className="flex min-h-11 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 px-4 py-1.5">
        <p className="figure flex items-center gap-2 whitespace-nowrap" role="status">
          <span className="font-medium">{rows}</span>
          <span className="text-text-3">{formatMs(metadata.elapsedMs)}</span>
        </p>
        {metadata.truncated && (
          <span className="order-last flex w-full flex-wrap items-center gap-x-2 sm:order-none sm:w-auto">
            <Badge tone="warn">{metadata.truncatedBy === 'bytes' ? t.sql.result.cutBytes(rows) : t.sql.result.cutRows(rows)}</Badge>
            {metadata.truncatedBy === 'bytes' ? (
              <span className="text-xs text-text-3">{t.sql.result.fewer}</span>
            ) : (
              !hasLimit(run.request.query) && (
                <Button look="quiet" className="text-accent!" onClick={onLimit}>
                  {t.sql.result.allRows}
                </Button>
              )
            )}
            <LongMenu text={t.sql.long.all} look="quiet" className="text-accent!" onPick={onLong} />
          </span>
        )}
        <ReadFrom snapshots={metadata.snapshots} />
        {/* On a phone all of it fits in one line: the button keeps its sign. */}
        <div className="ml-auto flex items-center gap-2 max-sm:[&_button]:px-3">
          {chart && (
            <Segments
              label={t.sql.result.view}
              value={view}
              options={[
                ['rows', t.sql.result.rows],
                ['chart', t.sql.result.chart],
              ]}
              onChange={setView}
            />
          )}
          <Menu
            className={buttonClass('plain')}
            items={[
              ...(chart && view === 'chart' ? imagesOf(drawing) : []),
              ...direct.map((format) => ({ label: t.sql.long.formats[format], disabled: busy, onSelect: () => void save(format) })),
            ]}
          >
            <Download size={16} strokeWidth={1.75} aria-hidden />
            <span className="max-sm:sr-only">{t.sql.result.export}</span>
          </Menu>
        </div>
      </header>
      {fault !== undefined && <Failure error={fault} className="mx-4 mb-3" />}
      {result.data.length === 0 ? (
        <Note icon={Table2} title={t.grid.empty} text={t.sql.result.none} />
      ) : chart && view === 'chart' ? (
        <div className="min-h-0 grow overflow-y-auto border-t border-line p-4">
          <Suspense fallback={<Skeleton />}>
            <Chart ref={drawing} choice={chart} rows={result.data} ordered={hasOrder(run.request.query)} cut={metadata.truncated} name="chart" />
          </Suspense>
        </div>
      ) : (
        <Grid columns={result.columns} rows={result.data} total={metadata.count} label={t.sql.result.label} className="min-h-0 grow rounded-none border-x-0 border-b-0" />
      )}
    </>
  );
}

/** Which datasets the rows are from, and which version. */
function ReadFrom({ snapshots }: { snapshots: Rows['metadata']['snapshots'] }) {
  if (snapshots.length === 0) return null;
  return (
    <p className="flex min-w-0 items-center gap-x-2 text-xs text-text-3 max-sm:hidden">
      <span>{t.sql.result.read}</span>
      {snapshots.slice(0, 3).map(({ dataset, snapshotId }) => {
        const [owner = '', namespace = '', name = ''] = dataset.split('/');
        return (
          <Link
            key={dataset}
            to="/data/$owner/$namespace/$dataset/$tab"
            params={{ owner, namespace, dataset: name, tab: 'history' }}
            title={`${dataset}\n${t.sql.result.readTitle(snapshotId)}`}
            className="max-w-40 truncate text-text-2 underline decoration-line underline-offset-2 hover:decoration-current"
          >
            {name}
          </Link>
        );
      })}
      {snapshots.length > 3 && <span>+{snapshots.length - 3}</span>}
    </p>
  );
}
