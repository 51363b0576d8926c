import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { ChevronRight, CornerDownLeft, Search, Table2 } from 'lucide-react';
import { useDeferredValue, useEffect, useMemo, useState } from 'react';
import { datasets } from '~/api/queries';
import { formatShort } from '~/format/number';
import { typeName } from '~/format/value';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Input } from '~/ui/Field';
import { Skeleton } from '~/ui/Skeleton';
import { nameFrom, type Table } from './complete';
import { columnsOf } from './schema';
import { quoteName } from './tokens';

export type Place = { owner: string; namespace: string };

/** All datasets that the caller may read. Those of the first thousand come by themselves. */
export function useTables() {
  const list = useInfiniteQuery(datasets(''));
  const pages = list.data?.pages;
  const { hasNextPage, isFetching, fetchNextPage } = list;
  useEffect(() => {
    if (hasNextPage && !isFetching && (pages?.length ?? 0) < 10) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage, pages]);
  const tables = useMemo<Table[]>(
    () => (pages ?? []).flatMap((page) => page.data).map((item) => ({ owner: item.username, namespace: item.namespace, name: item.name, rows: item.rowCount })),
    [pages],
  );
  return { list, tables };
}

type Props = {
  place: Place | undefined;
  self: string;
  list: ReturnType<typeof useTables>['list'];
  tables: readonly Table[];
  onInsert: (text: string) => void;
};

/** The datasets by namespace, each with its columns. A click on a name puts it into the statement. */
export function Tree({ place, self, list, tables, onInsert }: Props) {
  const [words, setWords] = useState('');
  const filter = useDeferredValue(words.trim().toLowerCase());
  const groups = useMemo(() => {
    const found = new Map<string, Table[]>();
    for (const table of tables) {
      if (filter && !table.name.toLowerCase().includes(filter) && !table.namespace.toLowerCase().includes(filter)) continue;
      const key = `${table.owner}/${table.namespace}`;
      const group = found.get(key);
      if (group) group.push(table);
      else found.set(key, [table]);
    }
    // The namespace of the statement first, then one's own, then those of others.
    const rank = ([first]: Table[]) => (first?.owner === place?.owner && first?.namespace === place?.namespace ? 0 : first?.owner === self ? 1 : 2);
    for (const group of found.values()) group.sort((a, b) => a.name.localeCompare(b.name, 'en'));
    return [...found].toSorted(([nameA, a], [nameB, b]) => rank(a) - rank(b) || nameA.localeCompare(nameB));
  }, [tables, filter, place?.owner, place?.namespace, self]);

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="relative p-3">
        <Search size={16} strokeWidth={1.75} aria-hidden className="pointer-events-none absolute inset-y-0 left-6 my-auto text-text-3" />
        <Input type="search" data-slash value={words} maxLength={100} onChange={(event) => setWords(event.target.value)} aria-label={t.sql.tree.filter} placeholder={t.sql.tree.filter} className="pl-9" />
      </div>
      <div className="min-h-0 grow overflow-y-auto px-2 pb-3">
        {list.isError ? (
          <p className="px-2 py-4 text-text-2">{t.failure.what.datasets}</p>
        ) : list.isPending ? (
          <div className="px-2">
            <Skeleton lines={5} />
          </div>
        ) : tables.length === 0 ? (
          <p className="px-2 py-4 text-text-3">{t.sql.tree.emptyTitle}</p>
        ) : groups.length === 0 ? (
          <p className="px-2 py-4 text-text-2">{t.sql.tree.none}</p>
        ) : (
          groups.map(([key, group]) => <Namespace key={key} tables={group} place={place} self={self} filtered={filter !== ''} onInsert={onInsert} />)
        )}
        {list.hasNextPage && !list.isFetching && (
          <Button look="quiet" onClick={() => void list.fetchNextPage()}>
            {t.sql.tree.more}
          </Button>
        )}
      </div>
    </div>
  );
}

function Namespace({ tables, place, self, filtered, onInsert }: { tables: Table[]; place: Place | undefined; self: string; filtered: boolean; onInsert: (text: string) => void }) {
  const [first] = tables;
  const near = first?.owner === place?.owner && first?.namespace === place?.namespace;
  const [touched, setTouched] = useState<boolean>();
  const [most, setMost] = useState(100);
  const open = touched ?? (near || filtered);
  if (!first) return null;
  return (
    <section className="mb-1">
      <h2 className="text-sm font-normal">
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setTouched(!open)}
          className="flex h-7 w-full items-center gap-1 rounded-sm px-1 text-left text-text-2 transition-colors duration-120 hover:bg-hover pointer-coarse:h-11"
        >
          <Chevron open={open} />
          <span className="truncate">
            {first.owner !== self && <span className="text-text-3">{first.owner} / </span>}
            <span className="font-medium">{first.namespace}</span>
          </span>
          <span className="ml-auto pr-1 text-xs text-text-3">{tables.length}</span>
        </button>
      </h2>
      {open && (
        <ul className="pl-2">
          {tables.slice(0, most).map((table) => (
            <Dataset key={table.name} table={table} place={place} onInsert={onInsert} />
          ))}
          {tables.length > most && (
            <li>
              <Button look="quiet" onClick={() => setMost(most + 200)}>
                {t.sql.tree.more}
              </Button>
            </li>
          )}
        </ul>
      )}
    </section>
  );
}

function Dataset({ table, place, onInsert }: { table: Table; place: Place | undefined; onInsert: (text: string) => void }) {
  const [open, setOpen] = useState(false);
  const name = nameFrom(table, { owner: place?.owner ?? '', namespace: place?.namespace });
  return (
    <li>
      <div className="group relative flex items-center rounded-sm transition-colors duration-120 hover:bg-hover">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} title={table.name} className="flex h-7 min-w-0 grow items-center gap-1 rounded-sm px-1 text-left text-sm pointer-coarse:h-11">
          <Chevron open={open} />
          <Table2 size={14} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
          <span className="truncate">{table.name}</span>
          <span className="ml-auto pr-1 pl-2 text-xs text-text-3 group-focus-within:pr-7 group-hover:pr-7 pointer-coarse:pr-11">{formatShort(table.rows)}</span>
        </button>
        <Insert name={name} onInsert={onInsert} />
      </div>
      {open && <Columns table={table} onInsert={onInsert} />}
    </li>
  );
}

function Insert({ name, onInsert }: { name: string; onInsert: (text: string) => void }) {
  return (
    <button
      type="button"
      aria-label={t.sql.tree.insert(name)}
      title={t.sql.tree.insert(name)}
      onClick={() => onInsert(name)}
      className="absolute right-0.5 flex size-6 items-center justify-center rounded-sm text-text-2 opacity-0 group-hover:opacity-100 hover:text-accent focus-visible:opacity-100 pointer-coarse:size-11 pointer-coarse:opacity-100"
    >
      <CornerDownLeft size={14} strokeWidth={1.75} aria-hidden />
    </button>
  );
}

function Columns({ table, onInsert }: { table: Table; onInsert: (text: string) => void }) {
  const columns = useQuery(columnsOf(table.owner, table.namespace));
  const [most, setMost] = useState(200);
  const found = columns.data?.get(table.name) ?? [];
  if (columns.isError) return <Failure error={columns.error} onRetry={() => void columns.refetch()} />;
  if (columns.isPending) {
    return (
      <div className="pl-6">
        <Skeleton lines={3} />
      </div>
    );
  }
  if (found.length === 0) return <p className="py-1 pl-6 text-sm text-text-3">{t.sql.tree.noColumns}</p>;
  return (
    <ul className="mb-1 ml-3 border-l border-line pl-2">
      {found.slice(0, most).map((column) => (
        <li key={column.name}>
          <button
            type="button"
            onClick={() => onInsert(quoteName(column.name))}
            title={`${column.name}\n${column.type.toLowerCase()}`}
            className="flex h-6 w-full items-center gap-2 rounded-sm px-2 text-left text-sm text-text-2 transition-colors duration-120 hover:bg-hover hover:text-text pointer-coarse:h-11"
          >
            <span dir="auto" className="truncate">
              {column.name}
            </span>
            <span className="ml-auto shrink-0 pl-2 text-xs text-text-3">{typeName(column.type)}</span>
          </button>
        </li>
      ))}
      {found.length > most && (
        <li>
          <Button look="quiet" onClick={() => setMost(most + 1000)}>
            {t.common.more}
          </Button>
        </li>
      )}
    </ul>
  );
}

function Chevron({ open }: { open: boolean }) {
  return <ChevronRight size={14} strokeWidth={1.75} aria-hidden className={cx('shrink-0 text-text-3 transition-transform duration-120', open && 'rotate-90')} />;
}
