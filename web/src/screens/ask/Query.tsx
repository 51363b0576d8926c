import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Download, Pencil, Play, SquareTerminal, Undo2, X } from 'lucide-react';
import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { api, type Schemas, take } from '~/api/client';
import { count } from '~/format/number';
import { formatDuration } from '~/format/time';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Button, buttonClass, IconButton } from '~/ui/Button';
import { choose } from '~/ui/chart/choose';
import { type ChartHandle, imagesOf } from '~/ui/chart/images';
import { Copy } from '~/ui/Copy';
import { Failure } from '~/ui/Failure';
import { Textarea } from '~/ui/Field';
import { Grid } from '~/ui/Grid';
import { Menu } from '~/ui/Menu';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import { Sql } from '~/ui/Sql';
import { hasOrder, layOut } from '~/ui/sqlText';
import { linkToSql } from './link';
import type { Where } from './runs';

const Chart = lazy(() => retried(() => import('~/ui/chart/Chart')));

/** The statement of a step: to read, to copy, to change and run again. */
export function Query({ statement, where }: { statement: string; where: Where }) {
  const [draft, setDraft] = useState<string | null>(null);
  const shown = layOut(statement);
  const run = useRunQuery(where);
  if (draft === null) {
    return (
      <>
        <div className="relative">
          <Sql text={statement} className="max-h-100 pr-12" />
          <Copy text={shown} label={t.ask.query.copy} className="absolute top-1 right-1 bg-sunken" />
        </div>
        <div className="mt-3 flex flex-wrap gap-2">
          <Button icon={Pencil} onClick={() => setDraft(shown)}>
            {t.ask.query.edit}
          </Button>
          <Link {...linkToSql(where, shown)} className={buttonClass('quiet')}>
            <SquareTerminal size={16} strokeWidth={1.75} aria-hidden />
            {t.ask.query.openInSql}
          </Link>
        </div>
      </>
    );
  }
  return (
    <>
      <Textarea
        autoFocus
        spellCheck={false}
        autoCapitalize="off"
        value={draft}
        rows={Math.min(16, Math.max(5, draft.split('\n').length + 1))}
        aria-label={t.ask.query.label}
        maxLength={100_000}
        className="mono leading-5"
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey) && !event.nativeEvent.isComposing) {
            event.preventDefault();
            if (!run.isPending && draft.trim()) run.mutate(draft);
          }
        }}
      />
      <div className="mt-2 mb-4 flex flex-wrap items-center gap-2">
        <Button look="primary" icon={Play} busy={run.isPending} disabled={draft.trim() === ''} onClick={() => run.mutate(draft)}>
          {run.isPending ? t.ask.query.running : t.ask.query.run}
        </Button>
        {draft !== shown && (
          <Button look="quiet" icon={Undo2} onClick={() => setDraft(shown)}>
            {t.ask.query.reset}
          </Button>
        )}
        <Link {...linkToSql(where, draft)} className={buttonClass('quiet')}>
          <SquareTerminal size={16} strokeWidth={1.75} aria-hidden />
          {t.ask.query.openInSql}
        </Link>
        <IconButton
          icon={X}
          label={t.ask.query.close}
          className="ml-auto"
          onClick={() => {
            setDraft(null);
            run.reset();
          }}
        />
      </div>
      <Outcome run={run} />
    </>
  );
}

const elapsed = (ms: number) => (ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : formatDuration(ms / 1000));

export function useRunQuery(where: Where) {
  return useMutation({
    mutationFn: async (query: string) =>
      (await take(api.POST('/query', { body: { ...where, query, explain: false, escapeFormulas: false }, headers: { Accept: 'application/json' } }))) as Schemas['QueryResult'],
  });
}

/** The rows of a statement that the person ran. */
export function Outcome({ run }: { run: ReturnType<typeof useRunQuery> }) {
  const [tab, setTab] = useState<'chart' | 'rows'>('rows');
  const drawing = useRef<ChartHandle>(null);
  const result = run.data;
  const chart = useMemo(() => (result ? choose(result.columns, result.data) : null), [result]);
  if (run.isPending) return <Skeleton lines={4} />;
  if (run.isError) return <Failure error={run.error} />;
  if (!result) return null;
  const cut = result.metadata.truncated;
  return (
    <section aria-label={t.ask.query.yours}>
      <div className="mb-2 flex flex-wrap items-center gap-3">
        <p role="status" className="text-sm text-text-2">
          {t.ask.query.result(count(result.metadata.count, 'row'), elapsed(result.metadata.elapsedMs))}
          {cut && ` ${t.ask.query.cut}`}
        </p>
        {chart && (
          <Segments
            label={t.ask.query.yours}
            value={tab}
            options={[
              ['rows', t.ask.evidence.rows],
              ['chart', t.ask.evidence.chart],
            ]}
            onChange={setTab}
          />
        )}
        {chart && tab === 'chart' && (
          <Menu label={t.ask.evidence.download} className="ml-auto inline-flex size-8 items-center justify-center rounded-md text-text-2 transition-colors duration-120 hover:bg-hover hover:text-text pointer-coarse:size-11" items={imagesOf(drawing)}>
            <Download size={16} strokeWidth={1.75} aria-hidden />
          </Menu>
        )}
      </div>
      {chart && tab === 'chart' ? (
        <Suspense fallback={<Skeleton lines={6} />}>
          <Chart ref={drawing} choice={chart} rows={result.data} ordered={hasOrder(run.variables ?? '')} cut={cut} name="chart" />
        </Suspense>
      ) : result.data.length === 0 ? (
        <p className="rounded-md border border-line bg-surface p-4 text-text-2">{t.ask.evidence.noRows}</p>
      ) : (
        <div className="flex flex-col" style={{ height: Math.min(440, result.data.length * 28 + 38) }}>
          <Grid columns={result.columns} rows={result.data} total={result.metadata.count} label={t.ask.query.yours} className="min-h-0 w-fit max-w-full grow" />
        </div>
      )}
    </section>
  );
}
