import { X } from 'lucide-react';
import { type MouseEvent, type ReactNode, type SyntheticEvent, useId, useLayoutEffect, useRef } from 'react';
import { t } from '~/texts';
import { IconButton } from './Button';
import { cx } from './cx';
import { Toasts } from './toast';

/**
 * A dialog in the top layer of the browser, which keeps the focus inside and closes with Esc. It exists only while it is open, so its
 * content starts anew each time.
 */
export function Dialog({ open, ...rest }: { open: boolean } & Content) {
  return open ? <Opened {...rest} /> : null;
}

type Content = { onClose: () => void; title: string; children: ReactNode; footer?: ReactNode; size?: 'md' | 'lg' };

/** What makes a dialog element modal while it is there. Closing it before it goes gives the focus back to where it was. */
export function useModal(onClose: () => void) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    // The browser would choose the button that closes it. On a phone the keyboard would cover the dialog at once.
    if (!matchMedia('(pointer: coarse)').matches) dialog?.querySelector<HTMLElement>('input:not([type=checkbox], [type=radio], [readonly]), textarea:not([readonly])')?.focus();
    return () => dialog?.close();
  }, []);
  return {
    ref,
    onCancel: (event: SyntheticEvent) => {
      event.preventDefault();
      onClose();
    },
    onMouseDown: (event: MouseEvent) => {
      if (event.target === event.currentTarget) onClose();
    },
  };
}

function Opened({ onClose, title, children, footer, size = 'md' }: Content) {
  const heading = useId();
  return (
    <dialog
      {...useModal(onClose)}
      aria-labelledby={heading}
      className={cx(
        'appear m-auto max-h-[calc(100dvh-32px)] w-[calc(100vw-32px)] overflow-hidden rounded-lg border border-line bg-raised p-0 text-text shadow-lift',
        size === 'lg' ? 'max-w-180' : 'max-w-120',
      )}
    >
      <div className="flex max-h-[calc(100dvh-34px)] flex-col">
        <header className="flex items-center justify-between gap-4 py-3 pr-3 pl-6">
          <h2 id={heading} className="text-lg">
            {title}
          </h2>
          <IconButton icon={X} label={t.common.close} onClick={onClose} />
        </header>
        <div className="min-h-0 overflow-y-auto px-6 pb-6">{children}</div>
        {footer && <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-6 py-4">{footer}</footer>}
      </div>
      <Toasts />
    </dialog>
  );
}
