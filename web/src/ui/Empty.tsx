import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

/** Nothing here yet: one sentence, one button. */
export function Empty({ icon: Icon, title, children, action }: { icon: LucideIcon; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="appear flex flex-col items-center px-6 py-16 text-center">
      <span className="mb-4 flex size-11 items-center justify-center rounded-lg border border-line bg-surface text-text-3">
        <Icon size={20} strokeWidth={1.75} aria-hidden />
      </span>
      <h2 className="text-lg">{title}</h2>
      {children && <p className="mt-1 max-w-100 text-text-2 text-pretty">{children}</p>}
      {action && <div className="mt-6 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}
