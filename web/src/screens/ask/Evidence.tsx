import { useInfiniteQuery } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { api, take } from '~/api/client';
import { download } from '~/api/download';
import { formatNumber } from '~/format/number';
import { retried } from '~/lazy';
import type { RunResult, RunStep } from '~/stream/run';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { choose, figureOf, keepsOrder } from '~/ui/chart/choose';
import { type ChartHandle, imagesOf } from '~/ui/chart/images';
import { Failure } from '~/ui/Failure';
import { Grid } from '~/ui/Grid';
import { Menu, type MenuItem } from '~/ui/Menu';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import type { Cited } from './Answer';
import { Query } from './Query';
import type { Where } from './runs';

const Chart = lazy(() => retried(() => import('~/ui/chart/Chart')));

type Tab = 'chart' | 'rows' | 'query';

/** What the answer is based on: chart, rows and query of each step. A cited claim opens the rows. */
export function Evidence({ result, runId, question, where, cited }: { result: RunResult; runId: string; question: string; where: Where; cited: Cited | null }) {
  const [picked, setPicked] = useState<{ step?: number; tab?: Tab; cited: Cited | null }>({ cited: null });
  // The newest wish counts: a claim that was clicked after the tab was chosen opens its cells.
  const wish = cited && cited !== picked.cited ? { step: cited.step, tab: 'rows' as Tab } : picked;
  const drawing = useRef<ChartHandle>(null);
  const step = result.steps.find((one) => one.index === wish.step) ?? result.steps[0];
  const chart = useMemo(() => (step ? choose(step.columns, step.data) : null), [step]);
  if (!step) return null;
  const tabs: Tab[] = chart ? ['chart', 'rows', 'query'] : ['rows', 'query'];
  const first: Tab = chart ? 'chart' : figureOf(step.columns, step.data) || step.rowCount === 0 ? 'query' : 'rows';
  const tab = wish.tab && tabs.includes(wish.tab) ? wish.tab : first;
  const files: MenuItem[] = (
    [
      ['csv', t.ask.evidence.csv, 'csv', '&escapeFormulas=true'],
      ['csv', t.ask.evidence.csvPlain, 'csv', ''],
      ['parquet', t.ask.evidence.parquet, 'parquet', ''],
    ] as const
  ).map(([format, label, ending, more]) => ({ label, onSelect: () => void download(`/query/runs/${runId}/steps/${step.index}/export?format=${format}${more}`, `answer.${ending}`) }));
  const go = (change: { step?: number; tab?: Tab }) => setPicked({ step: step.index, tab, ...change, cited });

  return (
    <section aria-label={t.ask.evidence.label} className="min-w-0">
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <Segments label={t.ask.evidence.label} value={tab} options={tabs.map((one) => [one, t.ask.evidence[one]] as const)} onChange={(next) => go({ tab: next })} />
        {result.steps.length > 1 && (
          <Segments label={t.ask.evidence.steps} value={String(step.index)} options={result.steps.map((one) => [String(one.index), t.ask.evidence.step(one.index + 1)] as const)} onChange={(next) => go({ step: Number(next) })} />
        )}
        {step.rowCount > 0 && (
          <Menu label={t.ask.evidence.download} className="ml-auto inline-flex size-8 items-center justify-center rounded-md text-text-2 transition-colors duration-120 hover:bg-hover hover:text-text pointer-coarse:size-11" items={tab === 'chart' ? [...imagesOf(drawing), ...files] : files}>
            <Download size={16} strokeWidth={1.75} aria-hidden />
          </Menu>
        )}
      </div>
      {tab === 'chart' && chart && (
        <Suspense fallback={<Skeleton lines={6} />}>
          <Chart key={step.index} ref={drawing} choice={chart} rows={step.data} ordered={keepsOrder(chart, step.data, step.query)} cut={step.truncated} name="chart" />
        </Suspense>
      )}
      {tab === 'rows' && <Rows key={`${step.index}`} step={step} runId={runId} question={question} cited={cited?.step === step.index ? cited : null} />}
      {tab === 'query' && <Query key={step.index} statement={step.query} where={where} />}
    </section>
  );
}

function Rows({ step, runId, question, cited }: { step: RunStep; runId: string; question: string; cited: Cited | null }) {
  const [all, setAll] = useState(false);
  const pages = useInfiniteQuery({
    queryKey: ['run', runId, 'step', step.index, 'rows'],
    queryFn: ({ signal, pageParam }) =>
      take(api.GET('/query/runs/{runId}/steps/{n}/rows', { params: { path: { runId, n: step.index }, query: { limit: 100, ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    enabled: all,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const loaded = useMemo(() => pages.data?.pages.flatMap((page) => page.data), [pages.data]);
  const rows = all && loaded ? loaded : step.data;
  const marked = useMemo(() => {
    if (!cited) return undefined;
    const rowsOf = new Set(cited.cells.map((cell) => `${cell.row ?? '*'}:${cell.column ?? '*'}`));
    return (row: number, column: string) => rowsOf.has(`${row}:${column}`) || rowsOf.has(`*:${column}`);
  }, [cited]);
  const first = cited?.cells.find((cell) => cell.row !== undefined);
  if (step.rowCount === 0) return <p className="rounded-md border border-line bg-surface p-4 text-text-2">{t.ask.evidence.noRows}</p>;
  return (
    <>
      <div className="flex flex-col" style={{ height: Math.min(440, rows.length * 28 + 38) }}>
        <Grid
          columns={step.columns}
          rows={rows}
          total={step.rowCount}
          label={t.ask.evidence.rowsOf(question)}
          marked={marked}
          show={first?.row === undefined ? undefined : { row: first.row, column: first.column }}
          onEnd={all && pages.hasNextPage && !pages.isFetching ? () => void pages.fetchNextPage() : undefined}
          loading={pages.isFetching}
          className="min-h-0 w-fit max-w-full grow"
        />
      </div>
      {pages.isError && <Failure error={pages.error} onRetry={() => void pages.refetch()} className="mt-2" />}
      {step.truncated && (
        <p className="mt-2 flex flex-wrap items-center gap-3 text-xs text-text-3">
          {t.ask.evidence.cut(formatNumber(rows.length), formatNumber(step.rowCount))}
          {!all && <Button onClick={() => setAll(true)}>{t.ask.evidence.showAll}</Button>}
        </p>
      )}
    </>
  );
}
