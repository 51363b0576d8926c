import { t } from '~/texts';

/** The place of lines that are on their way. */
export function Skeleton({ lines = 6 }: { lines?: number }) {
  return (
    <div role="status" aria-label={t.common.loading} className="flex flex-col gap-4 py-2">
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} className="skeleton h-4" style={{ width: `${88 - ((index * 37) % 50)}%` }} />
      ))}
    </div>
  );
}
