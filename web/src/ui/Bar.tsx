import { cx } from './cx';

/** How far something is, from 0 to 1. */
export function Bar({ share, label, tone = 'accent', className }: { share: number; label: string; tone?: 'accent' | 'warn' | 'danger' | 'quiet'; className?: string }) {
  const color = { accent: 'bg-accent', warn: 'bg-warn', danger: 'bg-danger', quiet: 'bg-control' }[tone];
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
      className={cx('h-1.5 overflow-hidden rounded-full bg-track', className)}
    >
      <div className={cx('h-full origin-left rounded-full transition-transform duration-180', color)} style={{ transform: `scaleX(${Math.min(1, Math.max(0, share))})` }} />
    </div>
  );
}
