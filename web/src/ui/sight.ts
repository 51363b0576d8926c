import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';

/** The rows and columns of a grid that are drawn: from `top` up to, but not with, `bottom`, and likewise across. */
export type Sight = { top: number; bottom: number; left: number; right: number };

/** The fixed sizes of a grid in pixels. `starts` has the left edge of each column and the right edge of the last. */
export type Shape = { length: number; height: number; header: number; starts: readonly number[] };

/** What is drawn beyond the edges, so that a browser that scrolls ahead of the page shows no gap. */
const moreRows = 4;
const moreColumns = 2;

/**
 * The part of a grid that a box shows. The number of rows depends on the height of the box alone, so that a grid can draw row `n` into
 * the elements of the row that has left: `n % (bottom - top)` names them.
 */
export function sightOf(shape: Shape, x: number, y: number, width: number, height: number): Sight {
  const rows = Math.ceil(height / shape.height) + 1 + 2 * moreRows;
  const top = Math.max(0, Math.min(Math.floor(y / shape.height) - moreRows, shape.length - rows));
  const columns = shape.starts.length - 1;
  return {
    top,
    bottom: Math.min(shape.length, top + rows),
    left: Math.max(0, columnAt(shape.starts, x) - moreColumns),
    right: Math.min(columns, columnAt(shape.starts, x + width) + 1 + moreColumns),
  };
}

/** The last column that begins at or before x. */
function columnAt(starts: readonly number[], x: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Follows what a box shows. The size of the box is read when it changes, never while it scrolls. */
export function useSight(box: RefObject<HTMLElement | null>, shape: Shape): { sight: Sight; onScroll: () => void; bring: (row: number, column: number, center?: boolean) => void } {
  const now = useRef({ shape, width: 0, height: 0, sight: sightOf(shape, 0, 0, 0, 0) });
  const [, draw] = useState(0);
  now.current.shape = shape;

  const look = useCallback((): boolean => {
    const { width, height, sight } = now.current;
    const next = sightOf(now.current.shape, box.current?.scrollLeft ?? 0, box.current?.scrollTop ?? 0, width, height);
    if (next.top === sight.top && next.bottom === sight.bottom && next.left === sight.left && next.right === sight.right) return false;
    now.current.sight = next;
    return true;
  }, [box]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => {
      now.current.width = element.clientWidth;
      now.current.height = element.clientHeight;
      if (look()) draw((count) => count + 1);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [box, look]);
  // Rows that were added, or columns of another width.
  useLayoutEffect(() => {
    if (look()) draw((count) => count + 1);
  }, [look, shape]);

  // At once, so that the frame that shows the new place has its rows.
  const onScroll = useCallback(() => {
    if (look()) flushSync(() => draw((count) => count + 1));
  }, [look]);

  const bring = useCallback(
    (row: number, column: number, center = false) => {
      const element = box.current;
      if (!element) return;
      const { width, height } = now.current;
      const { header, starts, height: line } = now.current.shape;
      const y = row * line;
      if (center) element.scrollTop = y - (height - header - line) / 2;
      else element.scrollTop = Math.min(y, Math.max(element.scrollTop, y + line + header - height));
      const from = (starts[column] ?? 0) - (starts[0] ?? 0);
      const to = starts[column + 1] ?? 0;
      if (column >= 0) element.scrollLeft = Math.min(from, Math.max(element.scrollLeft, to - width));
    },
    [box],
  );
  return { sight: now.current.sight, onScroll, bring };
}
