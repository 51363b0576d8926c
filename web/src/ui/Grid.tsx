import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, memo, type PointerEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { copyText, formatCell, kindOf, typeName, valueText } from '~/format/value';
import { t } from '~/texts';
import { Copy } from './Copy';
import { cx } from './cx';
import { Dialog } from './Dialog';

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
  const header = 36;
  const length = Math.min(rows.length, most);
  const gutter = gutterOf(total ?? rows.length);
  const measured = useMemo(() => columns.map((column) => widthOf(column, rows)), [columns, rows.length > 0]);
  const widths = columns.map((column, index) => dragged[column.name] ?? measured[index] ?? 120);

  const vertical = useVirtualizer({ count: length, getScrollElement: () => box.current, estimateSize: () => height, overscan: 8, paddingStart: header });
  const horizontal = useVirtualizer({
    horizontal: true,
    count: columns.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => widths[index] ?? 120,
    overscan: 2,
    paddingStart: gutter,
  });
  const key = widths.join();
  useEffect(() => horizontal.measure(), [key, horizontal]);

  const lines = vertical.getVirtualItems();
  const across = horizontal.getVirtualItems();
  const width = horizontal.getTotalSize();
  const last = lines.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= length - 20 && length > 0) onEnd?.();
  }, [last, length, onEnd]);

  const shownColumn = columns.findIndex((column) => column.name === show?.column);
  useEffect(() => {
    if (show?.row === undefined || show.row >= length) return;
    vertical.scrollToIndex(show.row, { align: 'center' });
    if (shownColumn >= 0) horizontal.scrollToIndex(shownColumn, { align: 'center' });
  }, [show?.row, shownColumn, length, vertical, horizontal]);

  const move = (to: Place) => {
    const next = { row: Math.min(Math.max(to.row, 0), length - 1), column: Math.min(Math.max(to.column, 0), columns.length - 1) };
    setActive(next);
    vertical.scrollToIndex(next.row);
    horizontal.scrollToIndex(next.column);
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
        className={cx('relative overflow-auto overscroll-contain rounded-md border border-line bg-surface text-sm figure focus-visible:outline-offset-0', className)}
      >
        <div role="presentation" className="relative min-w-full" style={{ width, height: vertical.getTotalSize() }}>
          <div role="row" aria-rowindex={1} className="sticky top-0 z-2 min-w-full border-b border-line bg-surface" style={{ width, height: header }}>
            <div role="presentation" className="sticky left-0 z-1 border-r border-line bg-surface" style={{ width: gutter, height: header - 1 }} />
            {across.map((item) => {
              const column = columns[item.index];
              if (!column) return null;
              return (
                <div
                  key={item.key}
                  role="columnheader"
                  aria-colindex={item.index + 1}
                  title={`${column.name}\n${column.type}`}
                  className={cx('absolute top-0 flex flex-col justify-center px-3', kindOf(column.type) === 'number' && 'items-end')}
                  style={{ left: item.start, width: item.size, height: header }}
                >
                  <span className="max-w-full truncate leading-4 font-medium">{column.name}</span>
                  <span className="max-w-full truncate text-xs leading-3.5 text-text-3">{typeName(column.type)}</span>
                  <span
                    aria-hidden
                    onPointerDown={resize(column.name, item.size)}
                    className="absolute top-0 right-0 h-full w-2 cursor-col-resize touch-none border-r border-transparent hover:border-control"
                  />
                </div>
              );
            })}
          </div>
          {lines.map((line) => (
            <Line
              key={line.key}
              id={id}
              index={line.index}
              top={line.start}
              height={height}
              width={width}
              gutter={gutter}
              row={rows[line.index]}
              columns={columns}
              cells={across.map((item) => `${item.index}:${item.start}:${item.size}`).join()}
              active={active?.row === line.index ? active.column : -1}
              marked={marked}
              onPick={setActive}
              onOpen={setOpened}
            />
          ))}
        </div>
      </div>
      <Dialog open={opened !== null && openedColumn !== undefined} onClose={() => setOpened(null)} title={openedColumn?.name ?? ''} size="lg">
        {opened && <Whole value={valueAt(opened)} type={openedColumn?.type ?? ''} />}
      </Dialog>
    </>
  );
}

type LineProps = {
  id: string;
  index: number;
  top: number;
  height: number;
  width: number;
  gutter: number;
  row: GridRow | undefined;
  columns: readonly GridColumn[];
  /** Index, start and size of the columns in sight; one string, so that a line is drawn again only if it changes. */
  cells: string;
  active: number;
  marked: ((row: number, column: string) => boolean) | undefined;
  onPick: (place: Place) => void;
  onOpen: (place: Place) => void;
};

const Line = memo(function Line({ id, index, top, height, width, gutter, row, columns, cells, active, marked, onPick, onOpen }: LineProps) {
  return (
    <div role="row" aria-rowindex={index + 2} className="group absolute top-0 left-0 min-w-full border-b border-line" style={{ transform: `translateY(${top}px)`, width, height }}>
      <div
        role="rowheader"
        className="sticky left-0 z-1 border-r border-line bg-surface pr-2 text-right text-xs text-text-3 group-hover:bg-sunken"
        style={{ width: gutter, height: height - 1, lineHeight: `${height - 1}px` }}
      >
        {index + 1}
      </div>
      {cells.split(',').map((cell) => {
        const [at = 0, start = 0, size = 0] = cell.split(':').map(Number);
        const column = columns[at];
        if (!column) return null;
        const value = row?.[column.name];
        const nothing = value === null || value === undefined;
        return (
          <div
            key={at}
            id={`${id}-${index}-${at}`}
            role="gridcell"
            aria-colindex={at + 1}
            aria-selected={active === at}
            dir="auto"
            onMouseDown={() => onPick({ row: index, column: at })}
            onDoubleClick={() => onOpen({ row: index, column: at })}
            className={cx(
              'absolute top-0 truncate px-3',
              kindOf(column.type) === 'number' && 'text-right',
              marked?.(index, column.name) ? 'bg-cited' : 'group-hover:bg-sunken',
              active === at && 'outline-2 -outline-offset-2 outline-info',
            )}
            style={{ left: start, width: size, height: height - 1, lineHeight: `${height - 1}px` }}
          >
            {nothing ? <span className="text-text-3">–</span> : formatCell(value, column.type, column.name)}
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

function widthOf(column: GridColumn, rows: readonly GridRow[]): number {
  let longest = Math.max(spread(column.name), spread(typeName(column.type)) * 0.9);
  for (const row of rows.slice(0, 50)) longest = Math.max(longest, spread(formatCell(row[column.name], column.type, column.name)));
  return Math.round(Math.min(360, Math.max(80, longest + 28)));
}

/** About how wide a text is in pixels. Figures are tabular, so they are wider than most letters. */
function spread(text: string): number {
  let width = 0;
  for (const letter of text.slice(0, 60)) width += /[0-9A-Z%@#&=<>—…-]/.test(letter) ? 9.2 : /[iljtf.,:;'|! ()[\]]/.test(letter) ? 4.6 : letter > '\u2e80' ? 13 : 7.4;
  return width;
}
