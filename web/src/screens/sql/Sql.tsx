import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation, useNavigate, useSearch } from '@tanstack/react-router';
import { History as Clock, Info, Link2, PanelLeft, Play, Square, Table2, TextSearch, X } from 'lucide-react';
import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import { ApiError } from '~/api/errors';
import type { Schemas } from '~/api/client';
import { me, namespaces } from '~/api/queries';
import { t } from '~/texts';
import { Button, buttonClass, IconButton } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Editor, type EditorHandle } from '~/ui/Editor';
import { Failure } from '~/ui/Failure';
import { Select } from '~/ui/Field';
import { useTitle } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { AsOf } from './AsOf';
import { complete, nameFrom, type Names, tablesAt } from './complete';
import { Fault, placeOf } from './Fault';
import { History } from './History';
import { historyOf, remember, withEntry } from './past';
import { givenBy, linkTo } from './link';
import { Long } from './Long';
import { LongMenu } from './LongMenu';
import { keyOfFault, keysOf, toSend, type Values } from './values';
import { ParameterFields } from './Parameters';
import { Note, Result } from './Result';
import { cancel, type Format, type Request, run as start, runLong as startLong, useRun } from './runs';
import { columnsOf } from './schema';
import { parametersOf, statementAt, statements } from './tokens';
import { type Place, Tree, useTables } from './Tree';

const modifier = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl';
/** Mail and chat programs cut longer addresses. */
const longestLink = 8000;

export default function Sql() {
  useTitle(t.sql.title);
  const account = useQuery(me);
  if (account.isError) {
    return (
      <div className="px-4 py-3">
        <h1 className="mb-3 text-lg">{t.sql.title}</h1>
        <Failure error={account.error} onRetry={() => void account.refetch()} />
      </div>
    );
  }
  if (account.isPending) {
    return (
      <div className="p-8">
        <Skeleton />
      </div>
    );
  }
  return <Workbench account={account.data} />;
}

function stored(storage: Storage, key: string): string | undefined {
  return storage.getItem(key) ?? undefined;
}

function keep(storage: Storage, key: string, value: string): void {
  try {
    storage.setItem(key, value);
  } catch {
    // Nothing depends on it but comfort.
  }
}

/** `shop`, or `bob/sales` for a namespace of somebody else. */
function placeFrom(text: string | undefined, self: string): Place | undefined {
  if (!text) return undefined;
  const cut = text.indexOf('/');
  return cut < 0 ? { owner: self, namespace: text } : { owner: text.slice(0, cut), namespace: text.slice(cut + 1) };
}
const placeText = ({ owner, namespace }: Place, self: string) => (owner === self ? namespace : `${owner}/${namespace}`);

function Workbench({ account }: { account: Schemas['Me'] }) {
  const self = account.username;
  const search = useSearch({ from: '/shell/sql' });
  const given = givenBy(search, useLocation({ select: ({ hash }) => hash }));
  const came = given?.statement;
  const navigate = useNavigate({ from: '/sql' });
  const client = useQueryClient();
  const editor = useRef<EditorHandle>(null);
  const draft = `quern.sql.draft.${account.id}`;
  const last = `quern.sql.namespace.${account.id}`;

  const [text, setText] = useState(() => came ?? stored(sessionStorage, draft) ?? '');
  const [chosen, setChosen] = useState(() => placeFrom(given?.namespace ?? stored(localStorage, last), self));
  const [asOf, setAsOf] = useState<string>();
  const [values, setValues] = useState<Values>({});
  const [fromLink, setFromLink] = useState(came !== undefined);
  const [dialog, setDialog] = useState<'history' | 'tree'>();
  const run = useRun();

  const { list, tables } = useTables();
  const spaces = useQuery(namespaces);
  const places = useMemo(() => {
    const found = new Map<string, Place>();
    const add = (place: Place) => found.set(placeText(place, self), place);
    for (const { username, name } of spaces.data?.data ?? []) add({ owner: username, namespace: name });
    for (const { owner, namespace } of tables) add({ owner, namespace });
    if (chosen) add(chosen);
    return [...found.keys()].toSorted((a, b) => Number(a.includes('/')) - Number(b.includes('/')) || a.localeCompare(b));
  }, [spaces.data, tables, chosen, self]);
  const place = chosen ?? placeFrom(tables[0] && placeText(tables[0], self), self);

  // An address with a statement or a namespace was opened while this screen was shown.
  const opened = useRef(given);
  useEffect(() => {
    if (came === opened.current?.statement && given?.namespace === opened.current?.namespace) return;
    opened.current = given;
    const at = placeFrom(given?.namespace, self);
    if (came === undefined) {
      if (at) setChosen(at);
      return;
    }
    adopt(came, at);
    setFromLink(true);
  });
  useEffect(() => {
    // What stood in the editor when a link was opened is not lost.
    const before = stored(sessionStorage, draft);
    if (came !== undefined && before !== undefined) putAside(before);
  }, []);
  useEffect(() => keep(sessionStorage, draft, text), [draft, text]);

  const putAside = (query: string) => {
    if (query.trim() === '' || query === came || historyOf(account.id).some((entry) => entry.query === query.trim())) return;
    remember(account.id, (entries) =>
      withEntry(entries, { id: crypto.randomUUID(), query: query.trim(), owner: place?.owner ?? '', namespace: place?.namespace, at: new Date().toISOString(), outcome: { state: 'kept' } }),
    );
  };
  const adopt = (query: string, at: Place | undefined) => {
    if (query !== text) putAside(text);
    setText(query);
    editor.current?.set(query);
    if (at) setChosen(at);
  };
  const edit = (query: string) => {
    setText(query);
    setFromLink(false);
    leaveLink();
  };
  /** The address would say something else than the screen. */
  const leaveLink = () => {
    if (given) void navigate({ search: {}, hash: '', replace: true });
  };

  const names: Names = {
    owner: place?.owner ?? self,
    namespace: place?.namespace,
    tables,
    columns: (table) => client.getQueryData(columnsOf(table.owner, table.namespace).queryKey)?.get(table.name) ?? [],
  };
  const suggest = async (sql: string, at: number) => {
    const read = tablesAt(sql, at, names);
    // Without its columns there are fewer suggestions, not none.
    await Promise.all(read.map((table) => client.ensureQueryData(columnsOf(table.owner, table.namespace)).catch(() => undefined)));
    return complete(sql, at, names);
  };

  const requestOf = (query: string, explain = false) => ({
    query,
    ...(place && { username: place.owner, namespace: place.namespace }),
    ...(asOf && { asOf }),
    parameters: toSend(query, values),
    ...(explain && { explain }),
  });
  const execute = (query: string, offset: number, explain = false) => {
    setFromLink(false);
    if (search.statement) showLong(undefined);
    void start(account.id, requestOf(query, explain), offset);
  };
  /** The id of a long statement stands in the address, so that a reload shows it again. */
  const showLong = (statement: string | undefined) => void navigate({ search: statement ? { statement } : {}, hash: '', replace: statement === undefined });
  const executeLong = async (request: Request, offset: number, format: Format) => {
    setFromLink(false);
    if (search.statement) showLong(undefined);
    const made = await startLong(account.id, request, offset, format);
    if (made) showLong(made);
  };
  const withPart = (work: (query: string, offset: number) => void) => {
    const { from, to } = editor.current?.selection() ?? { from: 0, to: 0 };
    const part = statementAt(editor.current?.text() ?? text, from, to);
    if (part) work(part.text, part.from);
    else editor.current?.focus();
  };
  const runIt = (explain = false) => withPart((query, offset) => execute(query, offset, explain));
  /** The same statement with the same values, whatever stands in the editor by now. */
  const toLong = (format: Format) => run && void executeLong(run.request, run.offset, format);
  const again = () => run && execute(run.request.query, run.offset, run.request.explain);

  const running = run?.state === 'running';
  const failed = run?.state === 'failed' ? run : undefined;
  const same = run !== undefined && text.slice(run.offset, run.offset + run.request.query.length) === run.request.query;
  const fault = useMemo(() => {
    const at = placeOf(run);
    return at && run ? { from: run.offset + at.from, to: run.offset + at.to, message: at.message } : undefined;
  }, [run]);
  const fix = (from: number, to: number, insert: string) => {
    if (!failed) return;
    editor.current?.replace(failed.offset + from, failed.offset + to, insert);
    const { query } = failed.request;
    execute(query.slice(0, from) + insert + query.slice(to), failed.offset, failed.request.explain);
  };
  const limit = () => {
    if (!run) return;
    const query = `${run.request.query}\nLIMIT 100000`;
    if (same) editor.current?.replace(run.offset, run.offset + run.request.query.length, query);
    execute(query, run.offset);
  };

  const keys = useMemo(() => keysOf(text), [text]);
  const faults = useMemo(() => {
    if (failed === undefined || !(failed.error instanceof ApiError)) return {};
    const sql = failed.request.query;
    return Object.fromEntries(failed.error.subErrors.flatMap(({ code, message }) => [[keyOfFault(code, sql) ?? '', message]]));
  }, [failed]);

  const share = () => {
    const link = linkTo(location.origin, text, place && `${place.owner}/${place.namespace}`);
    if (link.length > longestLink) say(t.sql.shareLong);
    else void navigator.clipboard.writeText(link).then(() => say(t.sql.shared));
  };
  const insert = (name: string) => {
    setDialog(undefined);
    const { from, to } = editor.current?.selection() ?? { from: 0, to: 0 };
    const space = from > 0 && /[\w"*,)]$/.test(text.slice(0, from)) ? ' ' : '';
    editor.current?.replace(from, to, space + name);
  };
  const example = (query: string) => {
    adopt(query, undefined);
    execute(query, 0);
    editor.current?.focus();
  };

  const tree = <Tree place={place} self={self} list={list} tables={tables} onInsert={insert} />;
  const many = statements(text).length > 1;

  return (
    <div
      className="flex min-h-full lg:h-full"
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey) || event.defaultPrevented || event.nativeEvent.isComposing) return;
        event.preventDefault();
        runIt();
      }}
    >
      <aside aria-label={t.sql.tree.label} className="hidden w-66 shrink-0 border-r border-line lg:block xl:w-72">
        {tree}
      </aside>
      <div className="flex min-w-0 grow flex-col">
        <header className="flex shrink-0 flex-wrap items-center gap-2 px-4 py-3">
          {/* On a phone the bar at the bottom says where one is. */}
          <h1 className="mr-2 text-lg max-sm:sr-only">{t.sql.title}</h1>
          <Select
            aria-label={t.sql.namespace}
            title={t.sql.namespaceTitle}
            className="w-auto! max-w-56 min-w-30"
            value={place ? placeText(place, self) : ''}
            onChange={(event) => {
              const next = placeFrom(event.target.value, self);
              setChosen(next);
              keep(localStorage, last, event.target.value);
              leaveLink();
            }}
          >
            {!place && <option value="">{list.isSuccess ? t.sql.noNamespace : t.sql.namespace}</option>}
            {places.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </Select>
          <AsOf value={asOf} onChange={setAsOf} />
          <div className="-mr-3 ml-auto flex items-center gap-1">
            <Button look="quiet" icon={PanelLeft} className="max-sm:gap-0 lg:hidden" onClick={() => setDialog('tree')}>
              <span className="max-sm:sr-only">{t.sql.tree.show}</span>
            </Button>
            {text.trim() !== '' && <IconButton icon={Link2} label={t.sql.share} onClick={share} />}
            <Button look="quiet" icon={Clock} className="max-sm:gap-0" onClick={() => setDialog('history')}>
              <span className="max-sm:sr-only">{t.sql.history.title}</span>
            </Button>
          </div>
        </header>
        {/* The tree is too narrow for it, and on a phone it is in a dialog. */}
        {list.isError && <Failure what={t.failure.what.datasets} error={list.error} onRetry={() => void list.refetch()} className="mx-4 mb-3" />}
        {fromLink && (
          <p role="status" className="flex shrink-0 items-start gap-2 border-t border-line bg-info-soft px-4 py-2 text-info">
            <Info size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0" />
            <span className="grow">{t.sql.fromLink}</span>
            <IconButton icon={X} label={t.sql.dismiss} className="-my-1 size-7 text-info" onClick={() => setFromLink(false)} />
          </p>
        )}
        <Split
          tall={run?.state === 'done' || search.statement !== undefined}
          top={
            <>
              <Editor
                ref={editor}
                value={text}
                onChange={edit}
                onRun={() => runIt()}
                label={t.sql.editor}
                placeholder={t.sql.placeholder}
                complete={suggest}
                fault={fault}
                autoFocus={!matchMedia('(pointer: coarse)').matches}
                className="min-h-0 grow"
              />
              {keys.length > 0 && (
                <ParameterFields keys={keys} listed={parametersOf(text).kind === 'listed'} values={values} faults={faults} onChange={(key, value) => setValues((all) => ({ ...all, [key]: value }))} />
              )}
              <div className="flex shrink-0 flex-wrap items-center gap-2 border-t border-line px-4 py-2">
                {running ? (
                  <Button icon={Square} onClick={cancel}>
                    {t.sql.cancel}
                  </Button>
                ) : (
                  <Button look="primary" icon={Play} disabled={text.trim() === ''} onClick={() => runIt()} aria-keyshortcuts="Control+Enter Meta+Enter">
                    {t.sql.run}
                    <kbd aria-hidden className="hidden font-sans text-xs opacity-80 sm:inline">
                      {modifier} ↵
                    </kbd>
                  </Button>
                )}
                <Button icon={TextSearch} disabled={text.trim() === '' || running} title={t.sql.explainTitle} onClick={() => runIt(true)}>
                  {t.sql.explain}
                </Button>
                <LongMenu
                  text={t.sql.long.runShort}
                  disabled={text.trim() === '' || running}
                  onPick={(format) => withPart((query, offset) => void executeLong(requestOf(query), offset, format))}
                />
                <p className="text-xs text-text-3 max-sm:w-full sm:ml-auto">{many ? t.sql.oneOfMany : t.sql.limit}</p>
              </div>
            </>
          }
          bottom={
            search.statement ? (
              <Long
                key={search.statement}
                id={search.statement}
                onClose={() => showLong(undefined)}
                onEdit={(statement) => adopt(statement.query, statement.namespace ? { owner: statement.username ?? self, namespace: statement.namespace } : undefined)}
              />
            ) : failed ? (
              <Fault
                run={failed}
                same={same}
                onShow={(from, to) => editor.current?.select(failed.offset + from, failed.offset + to)}
                onFix={fix}
                onAgain={() => void again()}
                onLong={toLong}
              />
            ) : run ? (
              <Result run={run} onAgain={() => void again()} onCancel={cancel} onLimit={limit} onLong={toLong} onStarted={showLong} />
            ) : list.isSuccess && tables.length === 0 ? (
              <Note icon={Table2} title={t.sql.tree.emptyTitle} text={t.sql.tree.empty}>
                <Link to="/upload" className={buttonClass('primary')}>
                  {t.sql.tree.upload}
                </Link>
              </Note>
            ) : (
              <Note icon={Table2} title={t.sql.result.idle} text={t.sql.result.idleText}>
                {!list.isPending && examples(names).map((query) => (
                  <Button key={query} className="max-w-full" onClick={() => example(query)}>
                    <span className="mono truncate">{query}</span>
                  </Button>
                ))}
              </Note>
            )
          }
        />
      </div>
      <History
        account={account.id}
        self={self}
        open={dialog === 'history'}
        onClose={() => setDialog(undefined)}
        onLong={(id) => {
          setDialog(undefined);
          showLong(id);
        }}
        onPick={(entry) => {
          setDialog(undefined);
          adopt(entry.query, entry.namespace ? { owner: entry.owner || self, namespace: entry.namespace } : undefined);
          setTimeout(() => editor.current?.focus());
        }}
      />
      <Dialog open={dialog === 'tree'} onClose={() => setDialog(undefined)} title={t.sql.tree.label}>
        <div className="-mx-3 h-[60dvh]">{tree}</div>
      </Dialog>
    </div>
  );
}

function examples(names: Names): string[] {
  const near = names.tables.find((table) => table.owner === names.owner && table.namespace === names.namespace) ?? names.tables[0];
  if (!near) return ['SHOW TABLES'];
  const name = nameFrom(near, names);
  return [`SELECT * FROM ${name} LIMIT 100`, `SUMMARIZE ${name}`, 'SHOW TABLES'];
}

const lowest = 140;
const sizeKey = 'quern.sql.height';

/** The editor above the rows. On wide screens the line between them can be moved, also with the arrow keys. */
function Split({ top, bottom, tall }: { top: React.ReactNode; bottom: React.ReactNode; /** Rows need height where the page scrolls as a whole. */ tall: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(() => Number(stored(localStorage, sizeKey)) || 280);
  const set = (wanted: number) => {
    const most = Math.max(lowest, (box.current?.clientHeight ?? 600) - 160);
    const next = Math.round(Math.min(most, Math.max(lowest, wanted)));
    setHeight(next);
    keep(localStorage, sizeKey, String(next));
  };
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    const handle = event.currentTarget;
    const start = event.clientY;
    handle.setPointerCapture(event.pointerId);
    const move = (moved: globalThis.PointerEvent) => set(height + moved.clientY - start);
    handle.addEventListener('pointermove', move);
    handle.addEventListener('lostpointercapture', () => handle.removeEventListener('pointermove', move), { once: true });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowUp: -20, ArrowDown: 20 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    set(height + step);
  };
  return (
    <div ref={box} className="flex min-h-0 grow flex-col">
      <div className="flex min-h-70 shrink-0 flex-col border-y border-line bg-surface lg:h-(--height) lg:max-h-[calc(100%-160px)] lg:min-h-35" style={{ '--height': `${height}px` } as React.CSSProperties}>
        {top}
      </div>
      <div
        role="separator"
        aria-orientation="horizontal"
        aria-label={t.sql.resize}
        aria-valuenow={height}
        aria-valuemin={lowest}
        tabIndex={0}
        onPointerDown={drag}
        onKeyDown={press}
        className={cx('relative z-3 -mt-1 hidden h-2 shrink-0 cursor-row-resize touch-none lg:block', 'before:absolute before:inset-x-0 before:top-1 before:h-px hover:before:bg-accent focus-visible:outline-none focus-visible:before:h-0.5 focus-visible:before:bg-info')}
      />
      <section aria-label={t.sql.result.rows} className={cx('flex flex-col lg:h-auto lg:min-h-0 lg:grow', tall && 'h-[min(70dvh,560px)] min-h-90 max-lg:grow')}>
        {bottom}
      </section>
    </div>
  );
}
