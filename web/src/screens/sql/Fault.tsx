import { Crosshair, TriangleAlert, Wand2 } from 'lucide-react';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Copy } from '~/ui/Copy';
import { Failure } from '~/ui/Failure';
import { LongMenu } from './LongMenu';
import type { Format, Run } from './runs';
import { fixAt, offsetOf, spanAt } from './tokens';

/** Where a failed statement is wrong, as offsets in the statement. */
export function placeOf(run: Run | undefined): { at: number; from: number; to: number; message: string } | undefined {
  if (run?.state !== 'failed' || !(run.error instanceof ApiError)) return undefined;
  const position = run.error.field('position');
  const at = position === undefined ? undefined : offsetOf(run.request.query, position);
  return at === undefined ? undefined : { at, ...spanAt(run.request.query, at), message: run.error.message };
}

type Props = {
  run: Run & { state: 'failed' };
  /** Whether the statement still stands in the editor as it was sent. */
  same: boolean;
  onShow: (from: number, to: number) => void;
  onFix: (from: number, to: number, insert: string) => void;
  onAgain: () => void;
  onLong: (format: Format) => void;
};

/** Why a statement did not run. Faults of the statement lead to their place; all others say what to do. */
export function Fault({ run, same, onShow, onFix, onAgain, onLong }: Props) {
  const error = run.error;
  if (!(error instanceof ApiError) || error.code !== 'QUERY_INVALID') {
    const code = error instanceof ApiError ? error.code : undefined;
    return (
      <div className="p-4">
        <Failure error={error} onRetry={code === 'VALIDATION_FAILED' ? undefined : onAgain} />
        {(code === 'TIMEOUT' || code === 'LIMIT_EXCEEDED') && !run.request.explain && (
          <div className="mt-3 flex flex-wrap items-center gap-x-3 gap-y-2">
            <LongMenu text={t.sql.long.run} onPick={onLong} />
            <p className="text-text-2">{t.sql.long.runTitle}</p>
          </div>
        )}
      </div>
    );
  }
  const place = placeOf(run);
  const candidates = error.subErrors.filter(({ code }) => code === 'candidate').map(({ message }) => message);
  const fixes = candidates.map((name) => ({ name, change: place && same ? fixAt(run.request.query, place.at, name) : undefined }));
  const [, line = '', column = ''] = /^line (\d+), column (\d+)$/.exec(error.field('position') ?? '') ?? [];
  return (
    <div role="alert" className="appear m-4 flex gap-3 rounded-md border border-danger/30 bg-danger-soft p-4">
      <TriangleAlert size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0 text-danger" />
      <div className="min-w-0 grow">
        <p className="font-medium whitespace-pre-wrap text-danger [overflow-wrap:anywhere]">{error.message}</p>
        {error.detail && <p className="mt-1 text-text-2 [overflow-wrap:anywhere]">{error.detail}</p>}
        {fixes.length > 0 && (
          <div className="mt-3 flex flex-wrap items-center gap-2">
            <span className="text-text-2">{fixes.some(({ change }) => change) || !fixes.some(({ name }) => name.includes('(')) ? t.sql.fault.meant : t.sql.fault.forms}</span>
            {fixes.map(({ name, change }) =>
              change ? (
                <Button key={name} icon={Wand2} title={t.sql.fault.fix(name)} onClick={() => onFix(change.from, change.to, change.insert)}>
                  <span className="mono max-w-60 truncate">{name}</span>
                </Button>
              ) : (
                <code key={name} className="mono rounded-sm bg-surface px-1.5 py-0.5 [overflow-wrap:anywhere]">
                  {name}
                </code>
              ),
            )}
          </div>
        )}
        <div className="mt-3 flex flex-wrap items-center gap-x-4 gap-y-2 text-xs text-text-2">
          {place && line && (
            <button
              type="button"
              disabled={!same}
              onClick={() => onShow(place.from, place.to)}
              title={t.sql.fault.go}
              className="flex items-center gap-1 rounded-sm underline decoration-current/40 underline-offset-2 hover:text-text disabled:no-underline pointer-coarse:-my-2 pointer-coarse:h-11"
            >
              <Crosshair size={12} strokeWidth={1.75} aria-hidden />
              {t.sql.fault.place(line, column)}
            </button>
          )}
          {error.requestId && (
            <span className="flex min-w-0 items-center gap-1">
              <span className="min-w-0">
                {t.failure.requestId} <code className="mono text-xs [overflow-wrap:anywhere]">{error.requestId}</code>
              </span>
              <Copy text={error.requestId} label={t.failure.copyRequestId} className="-my-1 size-6 pointer-coarse:-my-3" />
            </span>
          )}
        </div>
      </div>
    </div>
  );
}
