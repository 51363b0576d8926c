import type { Schemas } from '~/api/client';
import { count, formatPercent, formatShort } from '~/format/number';
import { formatCell, kindOf } from '~/format/value';
import { cx } from '~/ui/cx';

type Column = Schemas['ColumnProfile'];
type Bins = NonNullable<Column['bins']>;

/** The values of a column in one small picture: a distribution, a strip with the quartiles, or the shares of the most frequent values. */
export function Picture({ column, rows, large = false }: { column: Column; rows: number; large?: boolean }) {
  const kind = kindOf(column.type);
  const bins = column.bins ?? [];
  if (bins.length > 1) return <Histogram bins={bins} column={column} large={large} />;
  if (large) return null;
  if (kind === 'number' && column.quartiles?.length === 3) return <Strip column={column} />;
  if (kind === 'time' && column.min && column.max) return <Ends column={column} />;
  const top = column.topValues.filter((one) => one.value !== null);
  const most = top[0];
  if (!most || column.distinct === 0) return null;
  // Where every value is different, the first ones say more than their shares.
  if (most.count <= 1 || most.count / rows < 0.01) {
    return <span className="block truncate text-sm text-text-3">{column.examples.map((value) => formatCell(value, column.type, column.name)).join(', ')}</span>;
  }
  return <Shares values={top} rows={rows} column={column} />;
}

function Histogram({ bins, column, large }: { bins: Bins; column: Column; large: boolean }) {
  const most = Math.max(...bins.map((bin) => bin.count), 1);
  return (
    <span className="block">
      <span aria-hidden className="flex items-end gap-px" style={{ height: large ? 72 : 24 }}>
        {bins.map((bin, index) => (
          <span
            key={index}
            className={cx('flex-1 rounded-t-[1px]', bin.count > 0 ? 'min-h-0.5 bg-chart-1' : 'min-h-px bg-line')}
            style={{ height: `${(bin.count / most) * 100}%` }}
            title={`${brief(bin.from, column)} – ${brief(bin.to, column)}: ${count(bin.count, 'row')}`}
          />
        ))}
      </span>
      <Scale column={column} />
    </span>
  );
}

function Scale({ column }: { column: Column }) {
  return (
    <span className="mt-0.5 flex justify-between gap-2 text-xs text-text-3 figure">
      <span className="truncate">{brief(column.min, column)}</span>
      <span className="truncate text-right">{brief(column.max, column)}</span>
    </span>
  );
}

function brief(value: unknown, column: Column): string {
  const number = Number(value);
  if (kindOf(column.type) === 'number' && Number.isFinite(number) && Math.abs(number) >= 100_000) return formatShort(number);
  const text = formatCell(value, column.type, column.name);
  return kindOf(column.type) === 'time' && /^\d{4}-\d\d-\d\d /.test(text) ? text.slice(0, 10) : text;
}

function Strip({ column }: { column: Column }) {
  const [low, high] = [Number(column.min), Number(column.max)];
  const [q1 = low, q2 = low, q3 = high] = (column.quartiles ?? []).map(Number);
  const at = (value: number) => (high > low ? Math.min(100, Math.max(0, ((value - low) / (high - low)) * 100)) : 50);
  return (
    <span className="block" title={column.quartiles?.map((value) => formatCell(value, column.type, column.name)).join(' · ')}>
      <span aria-hidden className="relative block h-3">
        <span className="absolute inset-x-0 top-1/2 h-px bg-control" />
        <span className="absolute inset-y-0 min-w-0.5 rounded-[2px] border border-chart-1 bg-accent-soft" style={{ left: `${at(q1)}%`, width: `${at(q3) - at(q1)}%` }} />
        <span className="absolute inset-y-0 w-0.5 bg-chart-1" style={{ left: `calc(${at(q2)}% - 1px)` }} />
      </span>
      <Scale column={column} />
    </span>
  );
}

function Ends({ column }: { column: Column }) {
  return (
    <span className="block truncate text-sm text-text-2 figure">
      {brief(column.min, column)} – {brief(column.max, column)}
    </span>
  );
}

function Shares({ values, rows, column }: { values: { value?: unknown; count: number }[]; rows: number; column: Column }) {
  const first = values[0];
  const shades = [1, 0.72, 0.5, 0.34, 0.22];
  return (
    <span className="block">
      <span aria-hidden className="flex h-2 gap-px overflow-hidden rounded-full bg-track">
        {values.slice(0, shades.length).map((one, index) => (
          <span key={index} className="bg-chart-1" style={{ width: `${(one.count / rows) * 100}%`, opacity: shades[index] }} />
        ))}
      </span>
      <span className="mt-1 flex justify-between gap-2 text-xs text-text-3">
        <span dir="auto" className="truncate">
          {formatCell(first?.value, column.type, column.name) || '""'}
        </span>
        <span className="shrink-0 figure">{formatPercent((first?.count ?? 0) / rows)}</span>
      </span>
    </span>
  );
}
