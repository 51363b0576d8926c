import { useQuery } from '@tanstack/react-query';
import { useLayoutEffect, useRef, useState } from 'react';
import type { Ref } from '~/api/queries';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import { cutAt, type DocumentField, type DocumentRecord } from './place';
import { textOf } from './queries';

const texts = t.records;

/** How many characters are shown around a quote at first, and how many more with each click. */
const step = 10_000;

/** The page of the document that a field was read from, with its quote marked. A document is text here, whatever it contains. */
export function PageText({ at, load, record, field, className }: { at: Ref; load: string; record: DocumentRecord; field: DocumentField | undefined; className?: string }) {
  const found = useQuery(textOf(at, load, record.id));
  const [turned, setTurned] = useState<number>();
  const [room, setRoom] = useState({ before: step, after: step });
  const box = useRef<HTMLDivElement>(null);
  const mark = useRef<HTMLElement>(null);
  const pages = found.data?.pages ?? [];
  const wanted = turned ?? field?.page ?? record.page;
  const shown = pages.find((one) => one.page === wanted) ?? pages[0];
  const place = field?.from !== undefined && field.to !== undefined && field.page === shown?.page ? { from: field.from, to: field.to } : undefined;

  // Scrolls the box and not the page, so that the chosen field stays where the reader clicked it.
  useLayoutEffect(() => {
    if (!box.current) return;
    box.current.scrollTop = mark.current ? mark.current.offsetTop - box.current.clientHeight / 3 : 0;
  }, [shown, place?.from, place?.to]);

  if (found.isError) return <Failure what={texts.failed.text} error={found.error} onRetry={() => void found.refetch()} />;
  if (found.isPending) return <Skeleton lines={8} />;
  if (!shown) return <p className="text-text-2">{texts.noText}</p>;

  const { before, quote, after, isCut } = cutAt(shown.text, place, room);
  return (
    <section aria-label={texts.textOf(record.file)} className={cx('flex min-h-0 flex-col', className)}>
      <div className="mb-2 flex min-h-8 flex-wrap items-center justify-between gap-x-3 gap-y-1">
        <h2 className="min-w-0 text-sm font-medium [overflow-wrap:anywhere]">
          {record.file}
          <span className="font-normal text-text-3"> · {texts.page(shown.page)}</span>
        </h2>
        {pages.length > 1 && (
          <Segments label={texts.pages} value={String(shown.page)} options={pages.map(({ page }) => [String(page), String(page)] as const)} onChange={(page) => setTurned(Number(page))} />
        )}
      </div>
      <div
        ref={box}
        tabIndex={0}
        role="region"
        aria-label={texts.textOfPage(shown.page)}
        className="relative min-h-0 grow overflow-auto rounded-md border border-line bg-surface px-4 py-3 focus-visible:-outline-offset-2 max-md:max-h-[50dvh]"
      >
        {isCut.before && (
          <Button look="quiet" className="-ml-3 mb-2" onClick={() => setRoom({ ...room, before: room.before + step })}>
            {texts.before}
          </Button>
        )}
        <div dir="auto" className="mono text-sm leading-5 whitespace-pre-wrap [overflow-wrap:anywhere] [unicode-bidi:isolate]">
          {before}
          {quote !== '' && (
            <mark ref={mark} className="rounded-sm bg-cited py-0.5 text-text outline-2 outline-cited">
              {quote}
            </mark>
          )}
          {after}
        </div>
        {isCut.after && (
          <Button look="quiet" className="-ml-3 mt-2" onClick={() => setRoom({ ...room, after: room.after + step })}>
            {texts.after}
          </Button>
        )}
      </div>
    </section>
  );
}
