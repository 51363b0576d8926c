import { CircleCheck } from 'lucide-react';
import { useSyncExternalStore } from 'react';

type Toast = { id: number; text: string };
let shown: Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(next: Toast[]): void {
  shown = next;
  for (const listener of listeners) listener();
}

/** Says that something was done. Failures stand where they happened, not here. */
export function say(text: string): void {
  last += 1;
  const id = last;
  set([...shown.slice(-2), { id, text }]);
  setTimeout(() => set(shown.filter((toast) => toast.id !== id)), 5000);
}

export function Toasts() {
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  return (
    <div role="status" className="pointer-events-none fixed inset-x-0 bottom-18 z-20 flex flex-col items-center gap-2 px-4 sm:bottom-6">
      {all.map((toast) => (
        <p key={toast.id} className="appear flex items-center gap-2 rounded-md border border-line bg-raised px-4 py-2 shadow-lift">
          <CircleCheck size={16} strokeWidth={1.75} aria-hidden className="text-ok" />
          {toast.text}
        </p>
      ))}
    </div>
  );
}
