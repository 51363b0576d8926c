import { LoaderCircle, type LucideIcon } from 'lucide-react';
import type { ComponentProps } from 'react';
import { cx } from './cx';

type Look = 'primary' | 'plain' | 'quiet' | 'danger';

const looks: Record<Look, string> = {
  primary: 'bg-accent text-on-accent border-transparent hover:bg-accent-hover font-medium',
  plain: 'bg-surface text-text border-control hover:bg-hover font-medium',
  quiet: 'bg-transparent text-text-2 border-transparent hover:bg-hover hover:text-text',
  danger: 'bg-surface text-danger border-danger hover:bg-danger-soft font-medium',
};

/** The classes of a button, for links that look like one. */
export function buttonClass(look: Look = 'plain', extra?: string): string {
  return cx(
    'inline-flex h-8 shrink-0 items-center justify-center gap-2 rounded-md border px-3 whitespace-nowrap select-none',
    'transition-colors duration-120 disabled:opacity-50 disabled:pointer-events-none aria-disabled:opacity-50 pointer-coarse:h-11',
    looks[look],
    extra,
  );
}

export function Button({
  look = 'plain',
  icon: Icon,
  busy = false,
  className,
  children,
  onClick,
  ...rest
}: ComponentProps<'button'> & { look?: Look; icon?: LucideIcon; busy?: boolean }) {
  const Shown = busy ? LoaderCircle : Icon;
  // A busy button does nothing, but it stays where the keyboard is: one that is disabled loses the focus.
  return (
    <button type="button" className={buttonClass(look, className)} aria-disabled={busy || undefined} aria-busy={busy || undefined} onClick={busy ? (event) => event.preventDefault() : onClick} {...rest}>
      {Shown && <Shown size={16} strokeWidth={1.75} aria-hidden className={busy ? 'spin' : undefined} />}
      {children}
    </button>
  );
}

export function IconButton({ icon: Icon, label, className, ...rest }: Omit<ComponentProps<'button'>, 'children'> & { icon: LucideIcon; label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={cx(
        'inline-flex size-8 shrink-0 items-center justify-center rounded-md text-text-2 transition-colors duration-120 hover:bg-hover hover:text-text disabled:opacity-50 pointer-coarse:size-11',
        className,
      )}
      {...rest}
    >
      <Icon size={16} strokeWidth={1.75} aria-hidden />
    </button>
  );
}
