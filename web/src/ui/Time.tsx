import { formatAgo, formatExact } from '~/format/time';
import { t } from '~/texts';

/** How long ago something was; the exact moment, in UTC, is its title. */
export function Ago({ time, className }: { time: string; className?: string }) {
  return (
    <time dateTime={time} title={formatExact(time)} className={className}>
      {formatAgo(time)}
    </time>
  );
}

/** When something was last changed, where no heading says so. */
export function Updated({ time }: { time: string }) {
  return (
    <>
      {t.common.updated} <Ago time={time} />
    </>
  );
}
