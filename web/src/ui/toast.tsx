import { CircleCheck } from 'lucide-react';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';

type Toast = { id: number; text: string };
type State = { toasts: readonly Toast[]; places: readonly symbol[] };
let state: State = { toasts: [], places: [] };
let last = 0;
const listeners = new Set<() => void>();

function set(change: Partial<State>): void {
  state = { ...state, ...change };
  for (const listener of listeners) listener();
}

/** Says that something was done. Failures stand where they happened, not here. */
export function say(text: string): void {
  last += 1;
  const id = last;
  set({ toasts: [...state.toasts.slice(-2), { id, text }] });
  setTimeout(() => set({ toasts: state.toasts.filter((toast) => toast.id !== id) }), 5000);
}

/**
 * The place where toasts appear. What lies outside of a modal dialog is grey and silent for a screen reader, so the page has a place and
 * every dialog has one, and the dialog that was opened last has the toasts. It is there, empty, before the first toast: a screen reader says what is
 * added to a place that it knows.
 */
export function Toasts() {
  const { toasts, places } = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
  const [place] = useState(() => Symbol());
  const box = useRef<HTMLDivElement>(null);
  // A dialog becomes modal in a layout effect. This effect comes later, so that the place lies above the dialog.
  useEffect(() => {
    const shown = box.current;
    shown?.showPopover();
    // A dialog that is open from the start comes before the page around it.
    set({ places: shown?.closest('dialog') ? [...state.places, place] : [place, ...state.places] });
    return () => {
      shown?.hidePopover();
      set({ places: state.places.filter((one) => one !== place) });
    };
  }, [place]);
  return (
    <div
      ref={box}
      role="status"
      popover="manual"
      className="pointer-events-none fixed inset-x-0 top-auto bottom-18 m-0 flex w-auto flex-col items-center gap-2 overflow-visible border-0 bg-transparent px-4 py-0 text-text sm:bottom-6"
    >
      {places.at(-1) === place &&
        toasts.map((toast) => (
          <p key={toast.id} className="appear flex items-center gap-2 rounded-md border border-line bg-raised px-4 py-2 shadow-lift">
            <CircleCheck size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-ok" />
            {toast.text}
          </p>
        ))}
    </div>
  );
}
