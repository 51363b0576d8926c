import { type ReactNode, useEffect } from 'react';
import { t } from '~/texts';
import { cx } from './cx';

/** All screens begin at the same place, whatever their width; only a page that is wider than all of them centres, and then all alike. */
export const frame = 'mx-auto w-full max-w-480 px-4 sm:px-8';

/** The frame of a screen: its title, its actions, its content. Data takes the full width, forms and prose 760 pixels. */
export function Page({
  title,
  above,
  lead,
  actions,
  wide = false,
  below,
  children,
}: {
  title: string;
  above?: ReactNode;
  lead?: ReactNode;
  actions?: ReactNode;
  wide?: boolean;
  /** Tabs, directly under the heading. */
  below?: ReactNode;
  children: ReactNode;
}) {
  useTitle(title);
  return (
    <div className={cx(frame, 'flex min-h-full flex-col pt-4 pb-8 sm:pt-8')}>
      <div className={cx('flex w-full grow flex-col', !wide && 'max-w-190')}>
        <header className={cx(below ? 'mb-0' : 'mb-6')}>
          {above && <div className="mb-1 text-sm text-text-3">{above}</div>}
          <div className={cx('flex flex-wrap justify-between gap-x-4 gap-y-3', lead ? 'items-start' : 'items-center')}>
            <div className="min-w-0">
              <h1 className="text-xl [overflow-wrap:anywhere]">{title}</h1>
              {lead && <div className="mt-1 text-text-2">{lead}</div>}
            </div>
            {/* Below 1,024 pixels the actions of a dataset have a row of their own: those that depend on the role come later and must not push the rest down, and a longer line of facts must not either. */}
            {actions && <div className={cx('flex flex-wrap items-center gap-2', below !== undefined && 'max-lg:w-full')}>{actions}</div>}
          </div>
          {below && <div className="mt-4">{below}</div>}
        </header>
        {children}
      </div>
    </div>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ${t.product}`;
  }, [title]);
}
