import { type CSSProperties, type KeyboardEvent, memo, type MouseEvent, type PointerEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { cellFormatter, copyText, kindOf, placesOf, typeName, valueText } from '~/format/value';
import { t } from '~/texts';
import { Copy } from './Copy';
import { cx } from './cx';
import { Dialog } from './Dialog';
import { useSight } from './sight';

export type GridColumn = { name: string; type: string };
export type GridRow = Readonly<Record<string, unknown>>;

export type GridProps = {
  columns: readonly GridColumn[];
  /** The rows that are loaded. */
  rows: readonly GridRow[];
  /** How many there are in all, if that is known. */
  total?: number | undefined;
  /** What the rows are, for readers of the screen. */
  label: string;
  /** Called when the last loaded rows come into sight. */
  onEnd?: (() => void) | undefined;
  loading?: boolean;
  /** Cells that an answer cites. */
  marked?: ((row: number, column: string) => boolean) | undefined;
  /** The cell to bring into sight. */
  show?: { row: number; column?: string | undefined } | undefined;
  dense?: boolean;
  className?: string;
};

const gutterOf = (rows: number) => Math.max(44, 20 + String(rows).length * 8);
/** Browsers cannot lay out a box that is higher than about 33 million pixels. */
const most = 1_000_000;
const header = 36;

type Place = { row: number; column: number };

/**
 * Rows of any number in a scrolling box. Only what is in sight is in the document, in both directions. Cells are text, whatever they
 * contain; a cell is cut at 300 characters and shows the whole value on Enter or a double click.
 */
export function Grid({ columns, rows, total, label, onEnd, loading = false, marked, show, dense = true, className }: GridProps) {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [active, setActive] = useState<Place | null>(null);
  const [opened, setOpened] = useState<Place | null>(null);
  const [dragged, setDragged] = useState<Record<string, number>>({});
  const height = dense ? 28 : 32;
  const length = Math.min(rows.length, most);
  const gutter = gutterOf(total ?? rows.length);
  // What the first rows have decides, so that nothing moves when more are loaded.
  const places = useMemo(() => columns.map((column) => placesOf(column.type, rows.slice(0, 50).map((row) => row[column.name]))), [columns, rows.length > 0]);
  const measured = useMemo(() => columns.map((column, index) => widthOf(column, rows, places[index])), [columns, places, rows.length > 0]);
  const starts = useMemo(() => {
    const edges = [gutter];
    for (const [index, column] of columns.entries()) edges.push((edges[index] ?? 0) + (dragged[column.name] ?? measured[index] ?? 120));
    return edges;
  }, [columns, measured, dragged, gutter]);
  const shape = useMemo(() => ({ length, height, header, starts }), [length, height, starts]);
  const { sight, onScroll, bring } = useSight(box, shape);
  const { top, bottom, left, right } = sight;
  const width = starts.at(-1) ?? gutter;
  const across = useMemo(
    () =>
      columns.slice(left, right).map((column, at): Across => {
        const start = starts[left + at] ?? 0;
        return {
          ...column,
          index: left + at,
          format: cellFormatter(column.type, column.name, places[left + at]),
          dir: kindOf(column.type) === 'number' ? undefined : 'auto',
          look: kindOf(column.type) === 'number' ? 'absolute top-0 truncate px-3 text-right' : 'absolute top-0 truncate px-3',
          size: (starts[left + at + 1] ?? start) - start,
          style: { left: start, width: (starts[left + at + 1] ?? start) - start, height: height - 1, lineHeight: `${height - 1}px` },
        };
      }),
    [columns, starts, places, left, right, height],
  );

  useEffect(() => {
    if (bottom > length - 20 && length > 0) onEnd?.();
  }, [bottom, length, onEnd]);

  const shownColumn = columns.findIndex((column) => column.name === show?.column);
  useEffect(() => {
    if (show?.row !== undefined && show.row < length) bring(show.row, shownColumn, true);
  }, [show?.row, shownColumn, length, bring]);

  const move = (to: Place) => {
    const next = { row: Math.min(Math.max(to.row, 0), length - 1), column: Math.min(Math.max(to.column, 0), columns.length - 1) };
    setActive(next);
    bring(next.row, next.column);
  };
  const keys = (event: KeyboardEvent) => {
    if (length === 0 || event.target !== box.current) return;
    const at = active ?? { row: 0, column: 0 };
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / height) - 2);
    const edge = event.ctrlKey || event.metaKey;
    const to: Record<string, Place> = {
      ArrowDown: { row: edge ? length - 1 : at.row + (active ? 1 : 0), column: at.column },
      ArrowUp: { row: edge ? 0 : at.row - 1, column: at.column },
      ArrowRight: { row: at.row, column: edge ? columns.length - 1 : at.column + (active ? 1 : 0) },
      ArrowLeft: { row: at.row, column: edge ? 0 : at.column - 1 },
      PageDown: { row: at.row + page, column: at.column },
      PageUp: { row: at.row - page, column: at.column },
      Home: { row: edge ? 0 : at.row, column: 0 },
      End: { row: edge ? length - 1 : at.row, column: columns.length - 1 },
    };
    const next = to[event.key];
    if (next) {
      event.preventDefault();
      move(next);
    } else if (event.key === 'Enter' && active) {
      event.preventDefault();
      setOpened(active);
    } else if (edge && event.key === 'c' && active && !getSelection()?.toString()) {
      event.preventDefault();
      void navigator.clipboard.writeText(copyText(valueAt(active)));
    }
  };
  const valueAt = (place: Place) => rows[place.row]?.[columns[place.column]?.name ?? ''];
  const resize = (name: string, from: number) => (event: PointerEvent<HTMLSpanElement>) => {
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    const start = event.clientX;
    const handle = event.currentTarget;
    const drag = (moved: globalThis.PointerEvent) => setDragged((all) => ({ ...all, [name]: Math.min(800, Math.max(56, from + moved.clientX - start)) }));
    handle.addEventListener('pointermove', drag);
    handle.addEventListener('lostpointercapture', () => handle.removeEventListener('pointermove', drag), { once: true });
  };
  // One listener for all cells; a cell says by its place which it is.
  const placeOf = (event: MouseEvent): Place | null => {
    const cell = event.target instanceof Element ? event.target.closest('[role=gridcell]') : null;
    const row = cell?.parentElement?.getAttribute('aria-rowindex');
    return cell && row ? { row: Number(row) - 2, column: Number(cell.getAttribute('aria-colindex')) - 1 } : null;
  };
  const openedColumn = opened ? columns[opened.column] : undefined;

  return (
    <>
      <div
        ref={box}
        role="grid"
        aria-label={label}
        aria-rowcount={(total ?? rows.length) + 1}
        aria-colcount={columns.length}
        aria-busy={loading}
        aria-activedescendant={active ? `${id}-${active.row}-${active.column}` : undefined}
        tabIndex={0}
        onKeyDown={keys}
        onScroll={onScroll}
        onMouseDown={(event) => setActive((before) => placeOf(event) ?? before)}
        onDoubleClick={(event) => setOpened(placeOf(event))}
        className={cx('relative isolate overflow-auto overscroll-contain rounded-md border border-line bg-surface text-sm figure focus-visible:outline-offset-0', className)}
      >
        {/* The line below the last row is a shadow: it is seen only if the box is higher than its rows, and never beside the border of the box. */}
        <div role="presentation" className="relative min-w-full shadow-[0_1px_0_var(--line)]" style={{ width, height: header + length * height }}>
          <div role="row" aria-rowindex={1} className="sticky top-0 z-2 min-w-full border-b border-line bg-surface" style={{ width, height: header }}>
            <div role="presentation" className="sticky left-0 z-1 border-r border-line bg-surface" style={{ width: gutter, height: header - 1 }} />
            {across.map((column) => (
              <div
                key={column.index}
                role="columnheader"
                aria-colindex={column.index + 1}
                title={`${column.name}\n${column.type}`}
                className={cx('absolute top-0 flex flex-col justify-center px-3', kindOf(column.type) === 'number' && 'items-end')}
                style={{ left: column.style.left, width: column.size, height: header }}
              >
                <span className="max-w-full truncate leading-4 font-medium">{column.name}</span>
                <span className="max-w-full truncate text-xs leading-3.5 text-text-3">{typeName(column.type)}</span>
                <span
                  aria-hidden
                  onPointerDown={resize(column.name, column.size)}
                  className="absolute top-0 right-0 h-full w-2 cursor-col-resize touch-none border-r border-transparent hover:border-control"
                />
              </div>
            ))}
          </div>
          {Array.from({ length: bottom - top }, (_, at) => {
            const index = top + at;
            return (
              <Line
                // The elements of a row that has left show another row, which is cheaper than new ones.
                key={index % (bottom - top)}
                id={active?.row === index ? id : ''}
                index={index}
                height={height}
                width={width}
                gutter={gutter}
                row={rows[index]}
                columns={across}
                last={index === length - 1}
                active={active?.row === index ? active.column : -1}
                marked={marked}
              />
            );
          })}
        </div>
      </div>
      <Dialog open={opened !== null && openedColumn !== undefined} onClose={() => setOpened(null)} title={openedColumn?.name ?? ''} size="lg">
        {opened && <Whole value={valueAt(opened)} type={openedColumn?.type ?? ''} />}
      </Dialog>
    </>
  );
}

/** A column in sight, with what all its cells have in common. */
type Across = GridColumn & { index: number; format: (value: unknown) => string; dir: 'auto' | undefined; look: string; size: number; style: CSSProperties };

type LineProps = {
  /** The id of the grid if a cell of this row is active, so that the grid can name that cell. */
  id: string;
  index: number;
  height: number;
  width: number;
  gutter: number;
  row: GridRow | undefined;
  columns: readonly Across[];
  last: boolean;
  active: number;
  marked: ((row: number, column: string) => boolean) | undefined;
};

const Line = memo(function Line({ id, index, height, width, gutter, row, columns, last, active, marked }: LineProps) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={cx('group absolute top-0 left-0 min-w-full border-b contain-strict hover:bg-hover', last ? 'border-transparent' : 'border-line')}
      style={{ transform: `translateY(${header + index * height}px)`, width, height }}
    >
      <div
        role="rowheader"
        className="sticky left-0 z-1 border-r border-line bg-surface pr-2 text-right text-xs text-text-3 group-hover:bg-hover"
        style={{ width: gutter, height: height - 1, lineHeight: `${height - 1}px` }}
      >
        {index + 1}
      </div>
      {columns.map((column) => {
        const value = row?.[column.name];
        const nothing = value === null || value === undefined;
        const chosen = active === column.index;
        const cited = marked?.(index, column.name) ?? false;
        return (
          <div
            key={column.index}
            id={chosen ? `${id}-${index}-${column.index}` : undefined}
            role="gridcell"
            aria-colindex={column.index + 1}
            aria-selected={chosen}
            dir={column.dir}
            className={chosen || cited ? cx(column.look, cited && 'bg-cited', chosen && 'outline-2 -outline-offset-2 outline-info') : column.look}
            style={column.style}
          >
            {nothing ? <span className="text-text-3">–</span> : column.format(value)}
          </div>
        );
      })}
    </div>
  );
});

const shownLength = 100_000;

function Whole({ value, type }: { value: unknown; type: string }) {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value, null, 2) : valueText(value);
  return (
    <>
      <p className="mb-2 flex items-center justify-between text-xs text-text-3">
        <span>{type}</span>
        <Copy text={text} label={t.grid.copyCell} />
      </p>
      <pre dir="auto" tabIndex={0} className="mono max-h-[60vh] overflow-auto rounded-md bg-sunken p-3 whitespace-pre-wrap [overflow-wrap:anywhere]">
        {value === null || value === undefined ? t.grid.nothing : text.slice(0, shownLength)}
        {text.length > shownLength && '…'}
      </pre>
    </>
  );
}

function widthOf(column: GridColumn, rows: readonly GridRow[], places: number | undefined): number {
  let longest = Math.max(spread(column.name), spread(typeName(column.type)));
  const format = cellFormatter(column.type, column.name, places);
  for (const row of rows.slice(0, 50)) longest = Math.max(longest, spread(format(row[column.name])));
  return Math.round(Math.min(360, Math.max(80, longest + 28)));
}

/** About how wide a text is in pixels. Figures are tabular, so they are wider than most letters. */
function spread(text: string): number {
  let width = 0;
  for (const letter of text.slice(0, 60)) width += /[mwMW]/.test(letter) ? 12 : /[0-9A-Z%@#&=<>—…-]/.test(letter) ? 9.2 : /[iljtf.,:;'|! ()[\]]/.test(letter) ? 4.6 : letter > '\u2e80' ? 13 : 7.4;
  return width;
}
