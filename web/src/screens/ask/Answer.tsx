import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useMemo } from 'react';
import { CircleHelp, Quote } from 'lucide-react';
import { formatNumber } from '~/format/number';
import { formatDay, formatExact } from '~/format/time';
import { formatCell, kindOf, placesOf } from '~/format/value';
import { retried } from '~/lazy';
import type { RunResult, RunStep } from '~/stream/run';
import { t } from '~/texts';
import { Badge, type Tone } from '~/ui/Badge';
import { choose, figureOf } from '~/ui/chart/choose';
import { cx } from '~/ui/cx';
import { Hint } from '~/ui/Hint';
import { Ago } from '~/ui/Time';
import { type Claim, closing, mark, opening, readCalculation } from './claims';
import { leftOut, noteOf, proseOf } from './prose';
import { firstOf, type StepTable, tableOf } from './table';
import { emphasis } from './words';

const Markdown = lazy(() => retried(() => import('~/ui/Markdown')));

/** Longer tables are under Rows. */
const mostRows = 10;
/** How the service ends an answer that is too long for a table in it. */
const toRows = /: \d+ rows?, listed in the table of the answer\.$/;

/** The cells that a claim comes from. */
export type Cited = { claim: number; step: number; cells: { row?: number | undefined; column?: string | undefined }[] };

/** The answer itself: in words, with each figure that the rows confirm or do not confirm. */
export function Answer({ result, cited, onCite }: { result: RunResult; cited: Cited | null; onCite: (cited: Cited | null) => void }) {
  const only = result.steps.length === 1 ? result.steps[0] : undefined;
  const figure = useMemo(() => (only && !result.checks ? figureOf(only.columns, only.data) : undefined), [only, result]);
  // Beside a chart the rows are not in sight, so the answer has a short table of them.
  const charted = only !== undefined && !result.checks && only.columns.length <= 3 && choose(only.columns, only.data) !== null;
  const table = charted && only.rowCount <= mostRows;
  const { text, claims, drawn } = useMemo(() => {
    // Where no model wrote, the table of the answer is that of the rows; with a chart a short one is welcome.
    const words = result.checks || !only ? result.response : table ? result.response.replace(/:(?=\s*\n\s*\|)/, '') : proseOf(result.response).replace(figure ? /:[^:]*$/ : /:$/, '').replace(charted ? toRows : /, listed in the table of the answer(?=\.$)/, '');
    const marked = mark(words, result.checks?.places ?? [], result.citations ?? []);
    return { ...marked, drawn: only && !figure ? tableOf(marked.text, only, result.checks ? 'model' : 'service') : null };
  }, [result, only, table, charted, figure]);
  const cut = useMemo(() => (charted && !drawn && only.data.length > mostRows ? firstOf(only, mostRows) : undefined), [charted, drawn, only]);
  const claim = (index: number, words: ReactNode) => <ClaimMark claim={claims[index]} index={index} words={words} active={cited?.claim === index} onCite={onCite} />;
  const prose = (words: string, first: number) => (
    // Until Markdown is loaded, the words without a table of bars.
    <Suspense fallback={<p className="whitespace-pre-line">{proseOf(words.replaceAll(opening, '').replaceAll(closing, ''))}</p>}>
      <Markdown text={words} opening={opening} closing={closing} marked={(index, marked) => claim(first + index, marked)} />
    </Suspense>
  );
  const unverified = claims.filter((claim) => !claim.verified).length;
  const confirmed = result.checks ? result.checks.verified : 0;
  return (
    <div>
      {figure && (
        <p className="figure mb-1 text-2xl font-semibold tracking-tight [overflow-wrap:anywhere]">
          {figure.value === null ? t.grid.nothing : formatCell(figure.value, figure.column.type, figure.column.name)}
        </p>
      )}
      <div className={figure ? 'text-text-2' : 'text-lg'}>
        {prose(drawn ? drawn.before : text, 0)}
        {drawn && only && <Table table={drawn} columns={only.columns} claim={claim} />}
        {cut && only && (
          <>
            <Table table={{ heads: only.columns.map(({ name }) => name), lines: cut }} columns={only.columns} claim={claim} />
            <p className="text-sm text-text-2">{t.ask.answer.firstRows(formatNumber(cut.length), formatNumber(only.rowCount))}</p>
          </>
        )}
        {drawn?.after.trim() && prose(drawn.after, drawn.next)}
      </div>
      {unverified > 0 ? (
        <p className="mt-3 flex items-start gap-2 text-sm text-warn">
          <CircleHelp size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0" />
          {t.ask.answer.unverified(unverified)}
        </p>
      ) : (
        confirmed > 0 && (
          <p className="mt-3 flex items-start gap-2 text-sm text-text-2">
            <Quote size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0" />
            {t.ask.answer.confirmed(confirmed)}
          </p>
        )
      )}
    </div>
  );
}

/** The table of the answer, with its cells as in the grid of the rows. */
function Table({ table, columns, claim }: { table: Pick<StepTable, 'heads' | 'lines'>; columns: RunStep['columns']; claim: (index: number, words: ReactNode) => ReactNode }) {
  const aligned = columns.map((column) => (kindOf(column.type) === 'number' ? 'text-right' : 'text-left'));
  const places = columns.map((column) => placesOf(column.type, table.lines.map(({ row }) => row[column.name])));
  return (
    <div tabIndex={0} className="my-3 max-w-full overflow-x-auto rounded-md border border-line bg-surface text-sm">
      <table className="w-full border-collapse [&_td]:border-t [&_td]:border-line [&_td]:px-3 [&_td]:py-1.5 [&_th]:px-3 [&_th]:py-1.5 [&_th]:font-medium [&_tr>*]:align-top">
        <thead>
          <tr>
            {table.heads.map((head, at) => (
              <th key={at} scope="col" className={aligned[at]}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.lines.map(({ row, claims }, line) => (
            <tr key={line}>
              {columns.map((column, at) => {
                const value = row[column.name];
                const words = value === null || value === undefined ? <span className="text-text-3">–</span> : formatCell(value, column.type, column.name, places[at]);
                const index = claims[at];
                return (
                  <td key={at} dir={aligned[at] === 'text-right' ? undefined : 'auto'} className={cx(aligned[at], '[overflow-wrap:anywhere]')}>
                    {index === undefined ? words : claim(index, words)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ClaimMark({ claim, index, words, active, onCite }: { claim: Claim | undefined; index: number; words: ReactNode; active: boolean; onCite: (cited: Cited | null) => void }) {
  if (!claim) return <>{words}</>;
  if (!claim.verified) {
    return (
      <Hint text={t.ask.answer.unverifiedClaim} className="rounded-sm bg-warn-soft px-0.5 text-warn underline decoration-dotted underline-offset-4">
        {words}
        <span className="sr-only"> ({t.ask.answer.unverifiedClaim})</span>
      </Hint>
    );
  }
  const [first] = claim.sources;
  if (!first) return <>{words}</>;
  const cells = claim.sources.map((source) => ({ row: source.row, column: source.column }));
  const button = (
    <button
      type="button"
      aria-pressed={active}
      aria-label={t.ask.answer.citation(claim.text)}
      onClick={() => onCite(active ? null : { claim: index, step: first.step, cells })}
      className={`rounded-sm px-0.5 text-left underline decoration-accent/50 decoration-1 underline-offset-4 transition-colors duration-120 hover:bg-cited ${active ? 'bg-cited' : ''}`}
    >
      {words}
    </button>
  );
  if (!first.calculation) return button;
  return (
    <span className="inline-flex flex-wrap items-baseline">
      {button}
      <Hint text={`${t.ask.answer.calculation}: ${readCalculation(first.calculation)}`} className="ml-0.5 cursor-help text-xs text-text-3">
        ƒ
      </Hint>
    </span>
  );
}

/** How the question was understood, what made the query, and which version of the data was read. */
export function Reading({ result, chosen }: { result: RunResult; chosen?: string | undefined }) {
  const basis = result.basis;
  const tones: Record<NonNullable<RunResult['basis']>, Tone> = { rules: 'plain', form: 'info', sql: 'info', verified: 'ok' };
  const words = t.ask.answer.basis;
  const label = basis === 'verified' ? result.verified && words.verified(result.verified.author, formatDay(result.verified.verifiedAt)) : basis ? words[basis] : result.steps.length > 1 ? words.mixed : '';
  const moments = result.asOf ?? [];
  const newest = moments.map((one) => one.committedAt).sort().at(-1);
  const note = noteOf(result);
  const model = result.model && !['planner', 'verified'].includes(result.model) ? result.model : '';
  return (
    <div className="flex flex-col gap-2">
      {chosen && (
        <p className="text-sm text-text-2">
          <span className="text-text-3">{t.ask.answer.chosen} </span>
          <Emphasis text={chosen} />
        </p>
      )}
      {result.interpretation && result.interpretation !== chosen && !said(result) && (
        <p className="text-sm text-text-2 [overflow-wrap:anywhere]">
          <span className="text-text-3">{t.ask.answer.understood} </span>
          <Emphasis text={result.interpretation} />
        </p>
      )}
      {note && (
        <p className="text-sm text-text-2 [overflow-wrap:anywhere]">
          <Emphasis text={note} />
        </p>
      )}
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-text-3">
        {label && basis && (
          <Hint text={t.ask.answer.basisTitle[basis]}>
            <Badge tone={tones[basis]}>{label}</Badge>
          </Hint>
        )}
        {label && !basis && <Badge>{label}</Badge>}
        {model && <span>{t.ask.answer.model(model)}</span>}
        {newest && (
          <span className="min-w-0">
            {moments.length === 1 ? <DatasetLink path={moments[0]?.dataset ?? ''} /> : t.ask.answer.versions(moments.length)},{' '}
            <Hint text={moments.map((one) => t.ask.answer.versionTitle(one.dataset, formatExact(one.committedAt))).join('\n')} className="whitespace-nowrap">
              {t.ask.answer.asOf('')}
              <Ago time={newest} />
            </Hint>
          </span>
        )}
      </div>
    </div>
  );
}

/** To the dataset that was read, where it can be shared. */
function DatasetLink({ path }: { path: string }) {
  const [owner, namespace, dataset] = path.split('/');
  if (!owner || !namespace || !dataset) return <span>{path}</span>;
  return (
    <Link to="/data/$owner/$namespace/$dataset" params={{ owner, namespace, dataset }} className="underline underline-offset-2 hover:text-text">
      {dataset}
    </Link>
  );
}

/** Whether the answer says already how the question was understood: rules answer with their interpretation. */
function said(result: RunResult): boolean {
  const bare = (text: string) => text.replace(/\*/g, '').toLowerCase();
  return bare(result.response).startsWith(bare(result.interpretation ?? ''));
}

export function Emphasis({ text }: { text: string }) {
  return (
    <>
      {emphasis(text).map((part, index) =>
        part.strong ? (
          <strong key={index} className="font-medium text-text">
            {part.text}
          </strong>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

/** The rows that the answer does not count. */
export function Losses({ result }: { result: RunResult }) {
  const losses = (result.doubts ?? []).filter(({ kind }) => kind === leftOut);
  if (losses.length === 0) return null;
  return (
    <div className="rounded-md border border-warn/30 bg-warn-soft p-3 text-sm">
      <h3 className="font-medium text-warn">{t.ask.answer.losses}</h3>
      {losses.map(({ text }) => (
        <p key={text} className="mt-1 [overflow-wrap:anywhere]">
          <Emphasis text={text} />
        </p>
      ))}
    </div>
  );
}

/** Where the query may not fit the question, in words. */
export function Doubts({ result }: { result: RunResult }) {
  const doubts = (result.doubts ?? []).filter(({ kind }) => kind !== leftOut);
  if (doubts.length === 0) return null;
  return (
    <div className="rounded-md border border-warn/30 bg-warn-soft p-3 text-sm">
      <h3 className="font-medium text-warn">{t.ask.answer.doubts}</h3>
      <ul className="mt-1 list-disc pl-4">
        {doubts.map((doubt, index) => (
          <li key={index} className="[overflow-wrap:anywhere]">
            {doubt.text}
          </li>
        ))}
      </ul>
      <p className="mt-1 text-text-2">{t.ask.answer.doubtsText}</p>
    </div>
  );
}
