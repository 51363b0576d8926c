import type { LucideIcon } from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react';
import { cx } from './cx';

export type MenuItem = { label: string; icon?: LucideIcon; onSelect: () => void; danger?: boolean; checked?: boolean; disabled?: boolean; hint?: string } | 'line';

/** A button that opens a list of commands in the top layer. */
export function Menu({
  items,
  label,
  className,
  title = label,
  disabled,
  side = 'bottom',
  align = 'end',
  children,
}: {
  items: MenuItem[];
  /** The name of the button if it shows no text. */
  label?: string;
  className?: string;
  title?: string | undefined;
  disabled?: boolean;
  side?: 'bottom' | 'top';
  align?: 'start' | 'end';
  children: ReactNode;
}) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);

  const place = () => {
    const at = button.current?.getBoundingClientRect();
    const box = list.current;
    if (!at || !box) return;
    const { offsetWidth: width, offsetHeight: height } = box;
    const left = align === 'end' ? at.right - width : at.left;
    const below = at.bottom + 4;
    const above = at.top - height - 4;
    const top = side === 'top' ? (above > 8 ? above : below) : below + height < innerHeight - 8 ? below : Math.max(8, above);
    box.style.left = `${Math.min(Math.max(8, left), innerWidth - width - 8)}px`;
    box.style.top = `${top}px`;
  };
  const entries = () => [...(list.current?.querySelectorAll<HTMLButtonElement>('[role^=menuitem]:not(:disabled)') ?? [])];
  const keys = (event: KeyboardEvent) => {
    const all = entries();
    const now = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Tab') list.current?.hidePopover();
    if (to === undefined) return;
    event.preventDefault();
    all[(to + all.length) % all.length]?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={label}
        title={title}
        disabled={disabled}
        popoverTarget={id}
        className={className}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          list.current?.showPopover();
        }}
      >
        {children}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        onKeyDown={keys}
        onToggle={(event) => {
          const shown = event.newState === 'open';
          setOpen(shown);
          if (!shown) return;
          place();
          entries()[0]?.focus({ preventScroll: true });
        }}
        className="appear fixed inset-auto m-0 min-w-50 rounded-md border border-line bg-raised p-1 text-text shadow-lift"
      >
        {items.map((item, index) =>
          item === 'line' ? (
            <div key={index} role="separator" className="my-1 border-t border-line" />
          ) : (
            <button
              key={index}
              type="button"
              role={item.checked === undefined ? 'menuitem' : 'menuitemradio'}
              aria-checked={item.checked}
              disabled={item.disabled}
              tabIndex={-1}
              onClick={() => {
                list.current?.hidePopover();
                item.onSelect();
              }}
              className={cx(
                'flex h-8 w-full items-center gap-2 rounded-sm px-2 text-left whitespace-nowrap -outline-offset-1 outline-line hover:bg-hover hover:outline-1 focus:bg-hover focus:outline-1 focus:outline-control disabled:opacity-50 pointer-coarse:h-11',
                item.danger && 'text-danger',
              )}
            >
              {item.checked === undefined ? (
                item.icon && <item.icon size={16} strokeWidth={1.75} aria-hidden className={item.danger ? undefined : 'text-text-3'} />
              ) : (
                <span aria-hidden className={cx('ml-1 size-1.5 rounded-full', item.checked ? 'bg-accent' : 'bg-transparent')} />
              )}
              <span className="grow">{item.label}</span>
              {item.hint && <span className="text-xs text-text-3">{item.hint}</span>}
            </button>
          ),
        )}
      </div>
    </>
  );
}
