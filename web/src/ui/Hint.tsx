import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { createPortal } from 'react-dom';
import { cx } from './cx';

/** Words with an explanation, which appears when they are pointed at or reached by keyboard. Esc hides it. */
export function Hint({ text, className, children }: { text: string; className?: string; children: ReactNode }) {
  const id = useId();
  const anchor = useRef<HTMLSpanElement>(null);
  const [open, setOpen] = useState(false);
  return (
    <>
      <span
        ref={anchor}
        tabIndex={0}
        aria-describedby={open ? id : undefined}
        onMouseEnter={() => setOpen(true)}
        onMouseLeave={() => setOpen(false)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onClick={() => setOpen(true)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') setOpen(false);
        }}
        className={cx('rounded-xs', className)}
      >
        {children}
      </span>
      {open && <Tip id={id} anchor={anchor.current} text={text} />}
    </>
  );
}

function Tip({ id, anchor, text }: { id: string; anchor: HTMLElement | null; text: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = () => {
      const at = anchor?.getClientRects()[0];
      if (!at || !box.current) return;
      const { offsetWidth: width, offsetHeight: height } = box.current;
      const above = at.top - height - 6;
      box.current.style.left = `${Math.max(8, Math.min(at.left + at.width / 2 - width / 2, innerWidth - width - 8))}px`;
      box.current.style.top = `${above > 8 ? above : at.bottom + 6}px`;
      box.current.style.visibility = 'visible';
    };
    place();
    window.addEventListener('scroll', place, true);
    return () => window.removeEventListener('scroll', place, true);
  }, [anchor]);
  return createPortal(
    <div ref={box} id={id} role="tooltip" className="pointer-events-none invisible fixed z-30 max-w-72 rounded-sm bg-text px-2 py-1 text-xs font-normal tracking-normal text-canvas shadow-lift">
      {text}
    </div>,
    document.body,
  );
}
