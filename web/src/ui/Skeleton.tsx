import { t } from '~/texts';
import { cx } from './cx';

/** The place of lines that are on their way; with `table`, in the frame of the table that they become. */
export function Skeleton({ lines = 6, table = false, className }: { lines?: number; table?: boolean; className?: string }) {
  if (table) {
    return (
      <div role="status" aria-label={t.common.loading} className={cx('late divide-y divide-line overflow-hidden rounded-md border border-line bg-surface', className)}>
        {Array.from({ length: lines }, (_, index) => (
          <div key={index} className="flex h-12 items-center gap-6 px-4">
            <div className="skeleton h-4" style={{ width: `${36 - ((index * 17) % 20)}%` }} />
            <div className="skeleton ml-auto h-4 w-16" />
            <div className="skeleton h-4 w-24 max-sm:hidden" />
          </div>
        ))}
      </div>
    );
  }
  return (
    <div role="status" aria-label={t.common.loading} className={cx('flex flex-col gap-4 py-2', className)}>
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className="skeleton h-4" style={{ width: `${88 - ((index * 37) % 50)}%` }} />
      ))}
    </div>
  );
}
