import { formatAgo, formatExact } from '~/format/time';

/** How long ago something was; the exact moment, in UTC, is its title. */
export function Ago({ time, className }: { time: string; className?: string }) {
  return (
    <time dateTime={time} title={formatExact(time)} className={className}>
      {formatAgo(time)}
    </time>
  );
}
