import { useLayoutEffect, useRef } from 'react';
import { count, formatNumber } from '~/format/number';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { onArrows } from './arrows';
import { type DocumentRecord, doubtsOf, nameOf } from './place';

const texts = t.records;

type Props = {
  groups: readonly { title: string; records: readonly DocumentRecord[] }[];
  columns: readonly string[];
  chosen: string;
  onChoose: (id: string) => void;
  /** Loads more, if there is more. */
  more: { load: () => void; busy: boolean } | undefined;
};

/** The records of a load. Tab gets to the one that is chosen, the arrow keys to the others. */
export function RecordList({ groups, columns, chosen, onChoose, more }: Props) {
  const files = new Set(groups.flatMap(({ records }) => records.map(({ file }) => file)));
  const box = useRef<HTMLDivElement>(null);
  // The one of the address can be far down.
  useLayoutEffect(() => {
    const item = box.current?.querySelector<HTMLElement>('[aria-current]');
    if (box.current && item && item.offsetTop + item.offsetHeight > box.current.clientHeight) box.current.scrollTop = item.offsetTop - box.current.clientHeight / 2;
  }, []);
  return (
    <div ref={box} onKeyDown={onArrows} className="relative min-h-0 grow overflow-y-auto rounded-md border border-line bg-surface max-lg:max-h-56">
      {groups
        .filter(({ records }) => records.length > 0)
        .map(({ title, records }) => (
          <section key={title} aria-label={title}>
            <h2 className="sticky top-0 border-b border-line bg-surface px-3 py-1.5 text-xs font-medium text-text-3">{title}</h2>
            <ul className="divide-y divide-line border-b border-line">
              {records.map((record) => {
                const doubts = doubtsOf(record);
                const current = record.id === chosen;
                return (
                  <li key={record.id}>
                    <button
                      type="button"
                      data-choice
                      aria-current={current || undefined}
                      tabIndex={current ? 0 : -1}
                      onClick={() => onChoose(record.id)}
                      className={cx('block w-full px-3 py-2 text-left focus-visible:-outline-offset-2', current ? 'bg-accent-soft' : 'transition-colors duration-120 hover:bg-hover')}
                    >
                      <span dir="auto" className="line-clamp-2 [overflow-wrap:anywhere] [unicode-bidi:isolate]">
                        {nameOf(record, columns) || texts.nothingRead}
                      </span>
                      <span className="mt-0.5 flex flex-wrap items-center gap-x-2 gap-y-0.5 text-xs text-text-3">
                        {files.size > 1 && <span className="min-w-0 [overflow-wrap:anywhere]">{record.file}</span>}
                        <span>{texts.page(record.page)}</span>
                        {record.row !== undefined && <span className="figure">{texts.row(formatNumber(record.row))}</span>}
                        {doubts > 0 && <Badge tone="warn">{texts.doubts(count(doubts, 'field'))}</Badge>}
                        {doubts === 0 && Object.values(record.fields).some(({ corrected }) => corrected) && <Badge tone="info">{texts.corrected}</Badge>}
                      </span>
                    </button>
                  </li>
                );
              })}
            </ul>
          </section>
        ))}
      {more && (
        <Button look="quiet" className="m-2" busy={more.busy} onClick={more.load}>
          {t.common.more}
        </Button>
      )}
    </div>
  );
}
