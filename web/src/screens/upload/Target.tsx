import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ChevronRight, CircleCheck, File as FileIcon, LoaderCircle, MessageSquareText, Table2 } from 'lucide-react';
import { useState } from 'react';
import { api, newKey, type Schemas, take } from '~/api/client';
import { dataset, datasets, keyOf, pathOf, type Ref } from '~/api/queries';
import { count, formatBytes } from '~/format/number';
import { typeName } from '~/format/value';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Bar } from '~/ui/Bar';
import { Button, buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { Grid } from '~/ui/Grid';
import { Dialog } from '~/ui/Dialog';
import { useKept } from '~/upload/kept';
import { SetAside } from '../dataset/SetAside';
import { dryRun, ingestion, type Options } from './dryRun';
import { type OptionName, OptionControl, optionNames, optionsFor } from './OptionControl';
import { idOf, otherwise, said, split, stillSettled } from './settled';

const texts = t.upload.review;
const loads = t.upload.load;
const name = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const types = ['varchar', 'bigint', 'double', 'decimal(18,2)', 'boolean', 'date', 'timestamp', 'time'];

type File = Schemas['UploadFile'];
type Doubt = Schemas['Doubt'];
/** What the person decided. It survives a reload of the page. */
type Choices = { at: Ref; mode: 'append' | 'replace'; options: Options; accepted: string[]; settled: Doubt[]; loading: string | null };

/** One dataset to be: where it goes, how its files are read, what is in doubt, and then its load. */
export function Target({
  sessionId,
  files,
  start,
  fixed,
  namespaces,
  onNamespace,
  onAgain,
}: {
  sessionId: string;
  files: File[];
  start: Ref;
  fixed: boolean;
  namespaces: string[];
  onNamespace: (namespace: string) => void;
  onAgain: () => void;
}) {
  const queries = useQueryClient();
  const [choices, setChoices] = useKept<Choices>(`${sessionId}.${files.map((file) => file.fileId).join()}`, { at: start, mode: 'append', options: {}, accepted: [], settled: [], loading: null });
  const { at, mode, options, accepted, settled, loading } = choices;
  const choose = (change: Partial<Choices>) => setChoices((old) => ({ ...old, ...change }));
  const [typed, setTyped] = useState(at);
  const all = useInfiniteQuery(datasets(''));
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  const exists = (all.data?.pages ?? []).some((page) => page.data.some((one) => one.username === at.owner && same(one.namespace, at.namespace) && same(one.name, at.dataset)));
  const request = { sessionId, fileIds: files.map((file) => file.fileId), mode: exists ? mode : ('append' as const), options };
  const trial = useQuery({ ...dryRun(at, request), enabled: loading === null, placeholderData: keepPreviousData });

  const there = useQuery({ ...dataset(at), enabled: exists && loading === null }).data?.metadata;
  const before = new Set(there?.columns.map((column) => column.name.toLowerCase()));

  const load = useMutation({
    mutationFn: () =>
      take(
        api.POST('/data/{username}/{namespace}/{datasetName}/ingestions', {
          params: { path: pathOf(at), header: { 'Idempotency-Key': newKey() } },
          body: { ...request, accept: accepted as Schemas['DoubtCode'][] },
        }),
      ),
    onSuccess: (one) => {
      onNamespace(at.namespace);
      choose({ loading: one.id });
    },
  });
  const commit = () => {
    if (name.test(typed.dataset) && name.test(typed.namespace)) choose({ at: typed });
  };
  const fault = (value: string) => (value !== '' && name.test(value) ? undefined : texts.nameFault);
  const preview = trial.data?.preview;
  const doubts = preview?.doubts ?? [];
  const { blocking, open: others } = split(doubts);
  const open = blocking.filter((doubt) => doubt.code && !accepted.includes(doubt.code));
  const set = (key: keyof Options, value: unknown) =>
    setChoices((old) => {
      const next: Record<string, unknown> = { ...old.options, [key]: value };
      if (value === undefined) delete next[key];
      return { ...old, options: next as Options };
    });
  // A doubt that an option settled is no longer in the answer. It stays in sight, so that the person can decide otherwise.
  const decided = stillSettled(settled, doubts, options);
  const settle = (doubt: Doubt) => setChoices((old) => ({ ...old, settled: [...old.settled.filter((one) => idOf(one) !== idOf(doubt)), doubt] }));
  const setType = (column: string, type: string) => set('types', { ...options.types, [column]: type });

  if (loading) {
    return (
      <Loading
        at={at}
        id={loading}
        options={options}
        onOption={(option, value) => {
          set(option, value);
          choose({ loading: null });
        }}
        onBack={() => choose({ loading: null })}
        onAgain={onAgain}
      />
    );
  }
  return (
    <section className="appear rounded-md border border-line bg-surface">
      <header className="flex flex-wrap items-start gap-3 border-b border-line p-4 sm:p-6">
        <div className={cx('min-w-0 grow', fixed ? 'basis-60 sm:pt-7' : 'basis-full lg:basis-60 lg:pt-7')}>
          {files.slice(0, 3).map((file) => (
            <p key={file.fileId} className="flex items-center gap-2">
              <FileIcon size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
              <span className="truncate font-medium">{file.filename}</span>
              <span className="shrink-0 text-sm text-text-3">{formatBytes(file.size)}</span>
            </p>
          ))}
          {files.length > 3 && <p className="pl-6 text-sm text-text-3">+ {count(files.length - 3, 'file')}</p>}
        </div>
        {!fixed && (
          <>
            <Field label={texts.namespace} help={texts.namespaceHelp} fault={fault(typed.namespace)} className="w-full sm:w-56">
              {(props) => (
                <>
                  <Input {...props} list="namespaces" value={typed.namespace} maxLength={128} onChange={(event) => setTyped({ ...typed, namespace: event.target.value })} onBlur={commit} />
                  <datalist id="namespaces">
                    {namespaces.map((one) => (
                      <option key={one} value={one} />
                    ))}
                  </datalist>
                </>
              )}
            </Field>
            <Field label={texts.name} help={texts.nameHelp} fault={fault(typed.dataset)} className="w-full sm:w-64">
              {(props) => <Input {...props} value={typed.dataset} maxLength={128} onChange={(event) => setTyped({ ...typed, dataset: event.target.value })} onBlur={commit} />}
            </Field>
          </>
        )}
        {exists && (
          <Field label={texts.mode} className="w-full sm:w-auto">
            {(props) => (
              <Select {...props} value={mode} onChange={(event) => choose({ mode: event.target.value as Choices['mode'] })}>
                <option value="append">{texts.modes.append}</option>
                <option value="replace">{texts.modes.replace}</option>
              </Select>
            )}
          </Field>
        )}
      </header>
      <div className="p-4 sm:p-6">
        {trial.isError ? (
          <Failure error={trial.error} onRetry={() => void trial.refetch()} />
        ) : trial.isPending ? (
          <div role="status" className="flex items-center gap-3 py-6">
            <LoaderCircle size={20} strokeWidth={1.75} aria-hidden className="spin shrink-0 text-accent" />
            <div>
              <p className="font-medium">{texts.reading}</p>
              <p className="text-text-2">{texts.readingText}</p>
            </div>
          </div>
        ) : trial.data.error ? (
          <div role="alert" className="rounded-md border border-danger/30 bg-danger-soft p-4">
            <p className="font-medium text-danger [overflow-wrap:anywhere]">{said(trial.data.error.message).text}</p>
            <Mend doubts={trial.data.doubts} options={options} onOption={set} />
          </div>
        ) : null}
        {preview && (
          <div className={trial.isFetching ? 'opacity-60 transition-opacity duration-180' : undefined} aria-busy={trial.isFetching}>
            {exists && there && <There name={at.dataset} metadata={there} mode={mode} columns={preview.columns.map((column) => column.name)} renamable={!fixed} />}
            {[
              { title: texts.doubts, list: blocking, look: 'border-warn/40 bg-warn-soft' },
              { title: texts.check, list: others, look: 'border-info/30 bg-info-soft' },
              { title: texts.settled, list: decided, look: 'border-line' },
            ].map(({ title, list, look }) =>
              list.length === 0 ? null : (
                <div key={title}>
                  <h3 className="mb-2">{title}</h3>
                  <ul className={cx('mb-6 divide-y divide-line rounded-md border', look)}>
                    {list.map((doubt, index) => (
                      <Settle
                        key={`${idOf(doubt)} ${index}`}
                        doubt={doubt}
                        otherwise={list === others ? otherwise(doubt, preview.columns) : ''}
                        settled={list === decided}
                        options={options}
                        type={preview.columns.find((column) => column.name === doubt.column)?.type}
                        accepted={doubt.code !== undefined && accepted.includes(doubt.code)}
                        onAccept={(yes) => choose({ accepted: [...accepted.filter((one) => one !== doubt.code), ...(yes && doubt.code ? [doubt.code] : [])] })}
                        onOption={(key, value) => {
                          settle(doubt);
                          set(key, value);
                        }}
                        onType={(column, type) => {
                          settle(doubt);
                          setType(column, type);
                        }}
                      />
                    ))}
                  </ul>
                </div>
              ),
            )}
            <h3 className="mb-2">
              {texts.columns} <span className="font-normal text-text-3 figure">{preview.columns.length}</span>
            </h3>
            <ul className="mb-6 grid max-h-72 gap-x-6 overflow-y-auto rounded-md border border-line px-4 py-1 sm:grid-cols-2 xl:grid-cols-3" tabIndex={0}>
              {preview.columns.map((column) => (
                <li key={column.name} className="flex h-11 items-center gap-2 pointer-coarse:h-13">
                  <span className="flex min-w-0 grow items-center gap-2">
                    <span className="truncate" title={column.name}>
                      {column.name}
                    </span>
                    {exists && there && there.columns.length > 0 && !before.has(column.name.toLowerCase()) && <Badge tone="warn">{texts.newColumn}</Badge>}
                  </span>
                  <Select aria-label={`${texts.type} ${column.name}`} fit value={column.type} onChange={(event) => setType(column.name, event.target.value)} className="max-w-40 text-sm">
                    <TypeOptions now={column.type} />
                  </Select>
                </li>
              ))}
            </ul>
            <h3 className="mb-2">{texts.rows}</h3>
            <Grid label={texts.rows} columns={preview.columns} rows={preview.rows} className="max-h-80" />
          </div>
        )}
        {(preview || trial.data?.error) && (
          <details className="group mt-6">
            <summary className="flex w-fit list-none items-center gap-2 text-text-2 hover:text-text [&::-webkit-details-marker]:hidden">
              <ChevronRight size={16} strokeWidth={1.75} aria-hidden className="transition-transform duration-120 group-open:rotate-90" />
              {texts.options}
            </summary>
            <div className="mt-3 grid gap-3 sm:grid-cols-3">
              {optionsFor(files.map((file) => file.filename)).map((option) => (
                <OptionControl key={option} name={option} value={options[option]} onChange={(value) => set(option, value)} />
              ))}
            </div>
          </details>
        )}
      </div>
      <footer className="sticky bottom-0 flex flex-wrap items-center justify-end gap-x-3 gap-y-2 rounded-b-md border-t border-line bg-surface px-4 py-3 sm:px-6">
        {load.isError && <Failure error={load.error} className="w-full" />}
        {open.length > 0 && <span className="text-sm text-warn">{texts.settle}</span>}
        <Button look="quiet" onClick={onAgain}>
          {texts.remove}
        </Button>
        <Button
          look="primary"
          className="max-w-full max-sm:grow"
          busy={load.isPending}
          disabled={!preview || trial.isFetching || open.length > 0 || fault(typed.dataset) !== undefined || fault(typed.namespace) !== undefined}
          onClick={() => {
            load.mutate(undefined, { onSuccess: () => void queries.invalidateQueries({ queryKey: ['datasets'] }) });
          }}
        >
          <span className="truncate">{texts.loadRows(`${at.namespace} / ${at.dataset}`)}</span>
        </Button>
      </footer>
    </section>
  );
}

/** What the load does to a dataset that is there: its rows, and the columns that only one side has. */
function There({ name, metadata, mode, columns, renamable }: { name: string; metadata: Schemas['DatasetMetadata']; mode: Choices['mode']; columns: string[]; renamable: boolean }) {
  if (metadata.rowCount === 0) return null;
  const lower = (names: string[]) => new Set(names.map((one) => one.toLowerCase()));
  const [had, has] = [lower(metadata.columnNames), lower(columns)];
  const fresh = columns.filter((one) => !had.has(one.toLowerCase()));
  const lacking = metadata.columnNames.filter((one) => !has.has(one.toLowerCase()));
  const differs = mode === 'append' && fresh.length + lacking.length > 0;
  const rows = count(metadata.rowCount, 'row');
  return (
    <div className={cx('mb-6 rounded-md border px-4 py-3 [overflow-wrap:anywhere]', differs || mode === 'replace' ? 'border-warn/40 bg-warn-soft' : 'border-info/30 bg-info-soft')}>
      <p className="font-medium">{texts.exists(name, rows, count(metadata.columns.length, 'column'))}</p>
      <p className="text-sm text-text-2">
        {mode === 'replace' ? texts.replaced(rows) : texts.added(rows)} {renamable && differs && texts.otherName}
      </p>
      {differs && (
        <ul className="mt-1 list-disc pl-4 text-sm">
          {fresh.length > 0 && <li>{texts.newColumns(fresh)}</li>}
          {lacking.length > 0 && <li>{texts.lacking(lacking)}</li>}
        </ul>
      )}
    </div>
  );
}

function TypeOptions({ now }: { now: string }) {
  return [...new Set([now, ...types])].map((one) => (
    <option key={one} value={one}>
      {typeName(one)}
    </option>
  ));
}

/** The option that may let a failed reading succeed, with the values that the service suggests. */
function Mend({ doubts = [], options, onOption }: { doubts: Doubt[] | undefined; options: Options; onOption: (option: OptionName, value: unknown) => void }) {
  const doubt = doubts.find((one) => optionNames.some((name) => name === one.option));
  if (!doubt) return <p className="mt-1 text-text-2">{t.failure.next.VALIDATION_FAILED}</p>;
  const option = doubt.option as OptionName;
  const { suggestions = [] } = doubt;
  return (
    <div className="mt-1">
      <p className="mb-3 text-text-2">{suggestions.includes('windows-1252') ? texts.encodingHelp : texts.mend}</p>
      <OptionControl name={option} value={options[option]} offered={suggestions} onChange={(value) => onOption(option, value)} />
    </div>
  );
}

/** A doubt with what settles it: values that the service suggests, a control, a type, or an acceptance. */
function Settle({
  doubt,
  otherwise: fallback,
  settled,
  options,
  type,
  accepted,
  onAccept,
  onOption,
  onType,
}: {
  doubt: Doubt;
  /** What the load does until the person chooses. */
  otherwise: string;
  settled: boolean;
  options: Options;
  type: string | undefined;
  accepted: boolean;
  onAccept: (yes: boolean) => void;
  onOption: (key: keyof Options, value: unknown) => void;
  onType: (column: string, type: string) => void;
}) {
  const option = optionNames.find((one) => one === doubt.option);
  const { suggestions = [] } = doubt;
  const { text, rows } = said(doubt.message);
  // The type that all other values have.
  const likely = doubt.option === 'types' ? suggestions[0] : undefined;
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 px-4 py-3">
      <p className="min-w-0 grow basis-80 [overflow-wrap:anywhere]">
        {doubt.column && <span className="font-medium">{doubt.column}: </span>}
        {settled && option && suggestions.length > 1 ? texts.readAs(texts.names[option], String(options[option] ?? '')) : settled && doubt.option === 'types' && type ? texts.loadedAs(typeName(type)) : text}
        {fallback && <span className="block text-sm text-text-2">{fallback}</span>}
      </p>
      {rows.length > 0 && (
        <ul className="w-full list-disc pl-4 text-sm [overflow-wrap:anywhere]">
          {rows.map((row) => (
            <li key={row}>{row}</li>
          ))}
        </ul>
      )}
      {option && (
        <div className="max-w-full">
          <OptionControl name={option as OptionName} value={options[option]} offered={suggestions} onChange={(value) => onOption(option, value)} />
        </div>
      )}
      {doubt.option === 'types' &&
        doubt.column &&
        type &&
        (likely && type !== likely ? (
          <Button onClick={() => onType(doubt.column!, likely)}>{texts.loadAs(typeName(likely))}</Button>
        ) : (
          <Select aria-label={`${texts.type} ${doubt.column}`} fit value={type} onChange={(event) => onType(doubt.column!, event.target.value)}>
            <TypeOptions now={type} />
          </Select>
        ))}
      {doubt.code && (
        <label className="flex items-center gap-2 font-medium">
          <input type="checkbox" checked={accepted} onChange={(event) => onAccept(event.target.checked)} className="accent-accent" />
          {texts.accept}
        </label>
      )}
    </li>
  );
}

function Loading({
  at,
  id,
  options,
  onOption,
  onBack,
  onAgain,
}: {
  at: Ref;
  id: string;
  options: Options;
  /** Reads the files again with this option. */
  onOption: (option: OptionName, value: unknown) => void;
  onBack: () => void;
  onAgain: () => void;
}) {
  const queries = useQueryClient();
  const [aside, setAside] = useState(false);
  const now = useQuery(ingestion(at, id));
  const path = { ...pathOf(at), ingestionId: id };
  const refresh = () => queries.invalidateQueries({ queryKey: keyOf(at) });
  const cancel = useMutation({ mutationFn: () => take(api.POST('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/cancel', { params: { path } })), onSuccess: refresh });
  const accept = useMutation({
    mutationFn: () => take(api.POST('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/retry', { params: { path }, body: { accept: ['all'] } })),
    onSuccess: refresh,
  });
  if (now.isError) return <Failure error={now.error} onRetry={() => void now.refetch()} />;
  const one = now.data;
  const progress = one?.progress;
  const busy = !one || one.status === 'queued' || one.status === 'running';
  const title = `${at.namespace} / ${at.dataset}`;
  return (
    <section className="appear rounded-md border border-line bg-surface p-6" aria-live="polite">
      {busy && (
        <>
          <div className="flex items-center justify-between gap-4">
            <h2 className="flex items-center gap-2 text-lg">
              <LoaderCircle size={16} strokeWidth={1.75} aria-hidden className="spin text-accent" />
              {one?.status === 'queued' ? loads.queued : loads.running} {title}
            </h2>
            <Button look="quiet" busy={cancel.isPending} onClick={() => cancel.mutate()}>
              {loads.cancel}
            </Button>
          </div>
          <Bar className="mt-4 h-2" label={loads.running} share={progress?.bytesTotal ? progress.bytesDone / progress.bytesTotal : 0} />
          <p className="mt-2 flex min-h-5 gap-4 text-sm text-text-2 figure">
            {progress && <span>{loads.phases[progress.phase] ?? progress.phase}</span>}
            {progress && progress.rowsDone > 0 && <span>{loads.progress(count(progress.rowsDone, 'row'))}</span>}
          </p>
        </>
      )}
      {one?.status === 'completed' && (
        <>
          <h2 className="flex items-start gap-2 text-lg">
            <CircleCheck size={20} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0 text-ok" />
            {loads.done(count(one.progress.rowsDone, 'row'), title)}
          </h2>
          {one.progress.rowsSetAside > 0 && (
            <button type="button" onClick={() => setAside(true)} className="mt-2 text-warn underline underline-offset-2">
              {t.dataset.loads.setAside(count(one.progress.rowsSetAside, 'row'))}
            </button>
          )}
          {one.warnings?.map((warning, index) => (
            <p key={index} className="mt-2 text-text-2">
              {warning}
            </p>
          ))}
          <div className="mt-4 flex flex-wrap gap-2 max-sm:flex-col max-sm:items-stretch">
            <Link to="/" search={{ about: `${at.owner}/${at.namespace}/${at.dataset}` }} className={buttonClass('primary')}>
              <MessageSquareText size={16} strokeWidth={1.75} aria-hidden />
              {loads.ask(at.dataset)}
            </Link>
            <Link to="/data/$owner/$namespace/$dataset" params={at} className={buttonClass('plain')}>
              <Table2 size={16} strokeWidth={1.75} aria-hidden />
              {loads.open}
            </Link>
            <Button look="quiet" onClick={onAgain}>
              {loads.more}
            </Button>
          </div>
          <Dialog open={aside} onClose={() => setAside(false)} title={t.dataset.loads.setAsideTitle} size="lg">
            <SetAside at={at} ingestion={id} />
          </Dialog>
        </>
      )}
      {one?.status === 'waiting' && (
        <>
          <h2 className="flex items-center gap-2 text-lg">
            {loads.waiting} <Badge tone="warn">{title}</Badge>
          </h2>
          {one.doubts?.map((doubt, index) => (
            <p key={index} className="mt-2 text-warn [overflow-wrap:anywhere]">
              {doubt.message}
            </p>
          ))}
          {accept.isError && <Failure error={accept.error} className="mt-3" />}
          <div className="mt-4 flex gap-2">
            <Button look="primary" busy={accept.isPending} onClick={() => accept.mutate()}>
              {t.dataset.loads.accept}
            </Button>
            <Button busy={cancel.isPending} onClick={() => cancel.mutate()}>
              {loads.cancel}
            </Button>
          </div>
        </>
      )}
      {(one?.status === 'failed' || one?.status === 'cancelled') && (
        <>
          <h2 className="text-lg text-danger">{one.status === 'cancelled' ? loads.cancelled : loads.failed}</h2>
          {one.error && <p className="mt-2 [overflow-wrap:anywhere]">{one.error.message}</p>}
          {one.doubts?.some((doubt) => doubt.option) && <Mend doubts={one.doubts} options={options} onOption={onOption} />}
          <Button className="mt-4" onClick={onBack}>
            {loads.back}
          </Button>
        </>
      )}
    </section>
  );
}
