import { useRouter } from '@tanstack/react-router';
import { RotateCw, TriangleAlert } from 'lucide-react';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Button } from './Button';
import { Copy } from './Copy';
import { cx } from './cx';
import { frame } from './Page';
import { wordsOf } from './words';

/** What went wrong, what to do about it, and the id by which the operator finds it in the logs. */
export function Failure({ error, what, next, onRetry, className }: { error: unknown; /** What could not be done, in a sentence. */ what?: string; /** What to do, if it is not what the code of the error says. */ next?: string | undefined; onRetry?: (() => void) | undefined; className?: string }) {
  const known = error instanceof ApiError ? error : undefined;
  const faults = known?.subErrors ?? [];
  return (
    <div role="alert" className={cx('appear flex gap-3 rounded-md border border-danger/30 bg-danger-soft p-4', className)}>
      <TriangleAlert size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0 text-danger" />
      <div className="min-w-0 grow">
        {what && <p className="font-medium text-danger">{what}</p>}
        <p className={cx('[overflow-wrap:anywhere]', what ? 'mt-1' : 'font-medium text-danger')}>{known ? wordsOf(known.message) : t.failure.unexpected}</p>
        {known?.detail && <p className="mt-1 text-text-2 [overflow-wrap:anywhere]">{known.detail}</p>}
        {faults.length > 0 && (
          <ul className="mt-1 list-disc pl-4 text-text-2">
            {faults.map((fault, index) => (
              <li key={index} className="[overflow-wrap:anywhere]">
                <span className="font-medium text-text">{fault.code}</span> {fault.message}
              </li>
            ))}
          </ul>
        )}
        <p className="mt-1 text-text-2">{next ?? (known ? t.failure.next[known.code] : t.failure.unexpectedNext)}</p>
        {(onRetry || known?.requestId) && (
          <div className="mt-3 flex flex-wrap items-center gap-x-4 gap-y-2">
            {onRetry && (
              <Button icon={RotateCw} onClick={onRetry}>
                {t.failure.retry}
              </Button>
            )}
            {known?.requestId && (
              // The end of an id is what tells requests apart, so it is shown whole.
              <span className="flex min-w-0 items-center gap-1 text-xs text-text-2">
                <span className="min-w-0">
                  {t.failure.requestId} <code className="mono text-xs [overflow-wrap:anywhere]">{known.requestId}</code>
                </span>
                <Copy text={known.requestId} label={t.failure.copyRequestId} className="-my-1 size-6 pointer-coarse:-my-3" />
              </span>
            )}
          </div>
        )}
      </div>
    </div>
  );
}

/** The face of a screen whose code or data failed; the rest of the page stays usable. */
export function RouteFailure({ error, reset }: { error: unknown; reset?: () => void }) {
  const router = useRouter();
  return (
    <div className={cx(frame, 'py-4 sm:py-8')}>
      <Failure
        className="max-w-190"
        error={error}
        onRetry={() => {
          reset?.();
          void router.invalidate();
        }}
      />
    </div>
  );
}
