import { keepPreviousData, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useId, useRef, useState } from 'react';
import { api, newKey, type Schemas, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { datasets, me } from '~/api/queries';
import { count, formatBytes } from '~/format/number';
import { type OptionName, OptionControl, optionsFor } from '~/screens/upload/OptionControl';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select, Textarea } from '~/ui/Field';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import { type Connection, connections, files, nameOf } from './queries';
import { matcher } from './pattern';
import { noSchedule, scheduleOf } from './schedule';
import { ScheduleFields } from './ScheduleFields';

const texts = t.sources.new;
const unset = 'new';

type Target = { username: string; namespace: string; datasetName: string };
type Files = { prefix: string; pattern: string; paths: string; options: Schemas['IngestionOptions']; changed: Schemas['SourceChangedFiles']; deleted: Schemas['SourceDeletedFiles'] };
/** Which files of an address are loaded: one in each line. */
const pathsOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

type Rows = { of: 'table' | 'query'; schema: string; table: string; query: string; mode: 'full' | 'growing'; cursorColumn: string; overlap: string; key: string };

const noRows: Rows = { of: 'table', schema: 'public', table: '', query: '', mode: 'full', cursorColumn: '', overlap: '', key: '' };

function rowsOf({ of, schema, table, query, mode, cursorColumn, overlap, key }: Rows): Schemas['NewPostgresRows'] {
  const names = key
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  return {
    ...(of === 'table' ? { schema: schema.trim() || 'public', table: table.trim() } : { query }),
    mode,
    ...(mode === 'growing' && { cursorColumn: cursorColumn.trim(), ...(overlap.trim() && { overlap: overlap.trim() }), ...(names.length > 0 && { key: names }) }),
  };
}

/** The table of a catalog: its namespace is all before the last dot. */
function tableOf(text: string): Schemas['IcebergTable'] {
  const at = text.trim().lastIndexOf('.');
  return { namespace: text.trim().slice(0, at), table: text.trim().slice(at + 1) };
}

/** Asks what is loaded, into which dataset and when. */
export function NewSource({ from, onClose, onConnect }: { /** The connection that is chosen at first. */ from: string | undefined; onClose: () => void; onConnect: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = useId();
  const key = useRef(newKey());
  const known = useInfiniteQuery(connections);
  const all = (known.data?.pages ?? []).flatMap((page) => page.data);
  const [connectionId, setConnectionId] = useState(from ?? '');
  const connection = all.find((one) => one.id === connectionId) ?? all[0];
  const [of, setOf] = useState<Files>({ prefix: '', pattern: '', paths: '', options: {}, changed: 'keep', deleted: 'keep' });
  const [rows, setRows] = useState(noRows);
  const [target, setTarget] = useState<Target>();
  const [at, setAt] = useState({ namespace: '', datasetName: '' });
  const [name, setName] = useState('');
  const [schedule, setSchedule] = useState(() => noSchedule());
  const [now, setNow] = useState(true);
  const [asked, setAsked] = useState(false);
  const into = target ?? { namespace: at.namespace.trim(), datasetName: at.datasetName.trim() };
  const called = name.trim() || into.datasetName;
  const create = useMutation({
    mutationFn: async ({ id, kind }: Connection) => {
      const made = await take(
        api.POST('/sources', {
          params: { header: { 'Idempotency-Key': key.current } },
          body: {
            name: called,
            connectionId: id,
            ...into,
            ...(kind === 's3' && { ...(of.prefix && { prefix: of.prefix }), ...(of.pattern && { pattern: of.pattern }) }),
            ...(kind === 'https' && { paths: pathsOf(of.paths) }),
            ...(kind === 'iceberg' && { iceberg: tableOf(rows.table) }),
            ...(kind === 'postgresql' && { postgresql: rowsOf(rows) }),
            ...((kind === 's3' || kind === 'https') && { ...(Object.keys(of.options).length > 0 && { options: of.options }), changed: of.changed, deleted: of.deleted }),
            ...(schedule.rhythm !== 'none' && { schedule: scheduleOf(schedule) ?? null }),
          },
        }),
      );
      // The source is there whatever becomes of its first run; its page says why there is none.
      if (now) await take(api.POST('/sources/{sourceId}/run', { params: { path: { sourceId: made.id } } })).catch(() => undefined);
      return made;
    },
    onSuccess: async (made) => {
      void queries.invalidateQueries({ queryKey: ['sources'] });
      await navigate({ to: '/sources/$source', params: { source: made.id } });
    },
    onError: () => {
      // Another try with other values is another intention.
      key.current = newKey();
    },
  });
  const error = create.error instanceof ApiError ? create.error : undefined;
  const lacks = {
    namespace: !into.namespace,
    datasetName: !into.datasetName,
    paths: connection?.kind === 'https' && pathsOf(of.paths).length === 0,
    table: (connection?.kind === 'postgresql' && rows.of === 'table' && !rows.table.trim()) || (connection?.kind === 'iceberg' && !/.\../.test(rows.table.trim())),
    query: connection?.kind === 'postgresql' && rows.of === 'query' && !rows.query.trim(),
    cursorColumn: connection?.kind === 'postgresql' && rows.mode === 'growing' && !rows.cursorColumn.trim(),
  };
  // A fault of one path stands at the field of all of them, which has them in lines.
  const wrongPath = pathsOf(of.paths).flatMap((path, i) => (error?.field(`paths.${i}`) ? [`${path}: ${error.field(`paths.${i}`)}`] : []))[0];
  const faultOf = (field: string) => (asked && lacks[field as keyof typeof lacks] ? texts.missing : field === 'paths' ? (error?.field(field) ?? wrongPath) : error?.field(field));
  const shown = ['name', 'namespace', 'datasetName', 'pattern', 'prefix', 'paths', 'schedule.cron', 'iceberg'].some((field) => faultOf(field));
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.title}
      size="lg"
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={create.isPending} disabled={!connection}>
            {texts.create}
          </Button>
        </>
      }
    >
      {known.isError && <Failure what={t.sources.failed.connections} error={known.error} onRetry={() => void known.refetch()} />}
      {known.isPending && <Skeleton lines={4} />}
      <form
        id={form}
        noValidate
        className="flex flex-col gap-6"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(true);
          if (!connection || Object.values(lacks).some(Boolean) || create.isPending) return;
          create.mutate(connection);
        }}
      >
        {connection && (
          <>
            <div className="flex items-end gap-2">
              <Field label={texts.connection} className="min-w-0 grow">
                {(field) => (
                  <Select {...field} value={connection.id} onChange={(event) => setConnectionId(event.target.value)}>
                    {all.map((one) => (
                      <option key={one.id} value={one.id}>
                        {nameOf(one)} ({t.sources.kinds[one.kind]})
                      </option>
                    ))}
                  </Select>
                )}
              </Field>
              <Button onClick={onConnect}>{t.sources.connect}</Button>
            </div>
            {connection.kind === 's3' && <FilesPart connection={connection} value={of} faultOf={faultOf} onChange={setOf} />}
            {connection.kind === 'https' && <PathsPart connection={connection} value={of} faultOf={faultOf} onChange={setOf} />}
            {connection.kind === 'iceberg' && (
              <Field label={texts.table} help={texts.attachedHelp} fault={faultOf('table') ?? error?.field('iceberg')}>
                {(field) => <Input {...field} value={rows.table} placeholder="sales.orders" spellCheck={false} autoComplete="off" onChange={(event) => setRows({ ...rows, table: event.target.value })} />}
              </Field>
            )}
            {connection.kind === 'postgresql' && <RowsPart value={rows} faultOf={faultOf} onChange={setRows} />}
            <TargetPart target={target} at={at} faultOf={faultOf} onTarget={setTarget} onAt={setAt} />
            <Field label={texts.name} help={texts.nameHelp} fault={faultOf('name')}>
              {(field) => <Input {...field} value={name} maxLength={128} placeholder={into.datasetName} autoComplete="off" onChange={(event) => setName(event.target.value)} />}
            </Field>
            <ScheduleFields value={schedule} fault={error?.field('schedule.cron')} onChange={setSchedule} />
            <label className="flex items-center gap-3">
              <input type="checkbox" checked={now} onChange={(event) => setNow(event.target.checked)} className="accent-accent" />
              {texts.now}
            </label>
            {create.isError && !shown && <Failure error={create.error} />}
          </>
        )}
      </form>
    </Dialog>
  );
}

type Fault = (field: string) => string | undefined;

/** Which files of a bucket are loaded and how they are read, with those that are there now. */
function FilesPart({ connection, value, faultOf, onChange }: { connection: Connection; value: Files; faultOf: Fault; onChange: (value: Files) => void }) {
  const prefix = useDeferredValue(value.prefix.trim());
  const found = useQuery({ ...files(connection.id, prefix), placeholderData: keepPreviousData });
  const fits = matcher(prefix, value.pattern);
  const listed = found.data?.data ?? [];
  const matching = fits ? listed.filter((file) => file.size > 0 && fits(file.path)) : [];
  return (
    <div className="flex flex-col gap-4">
      <div className="grid items-start gap-4 sm:grid-cols-2">
        <Field label={texts.prefix} help={texts.prefixHelp} fault={faultOf('prefix')}>
          {(field) => <Input {...field} value={value.prefix} placeholder="orders/" spellCheck={false} autoComplete="off" onChange={(event) => onChange({ ...value, prefix: event.target.value })} />}
        </Field>
        <Field label={texts.pattern} help={texts.patternHelp} fault={fits ? faultOf('pattern') : texts.noPattern}>
          {(field) => <Input {...field} value={value.pattern} placeholder="*.csv" spellCheck={false} autoComplete="off" onChange={(event) => onChange({ ...value, pattern: event.target.value })} />}
        </Field>
      </div>
      {found.isError ? (
        <Failure what={texts.filesFailed} error={found.error} onRetry={() => void found.refetch()} />
      ) : found.isPending ? (
        <Skeleton lines={3} />
      ) : (
        <div className="rounded-md border border-line bg-sunken p-3" aria-live="polite">
          <p className="text-sm text-text-2">{matching.length === 0 ? texts.noFiles : texts.files(count(matching.length, 'file'), found.data.nextCursor ? listed.length : undefined)}</p>
          {matching.length > 0 && (
            <ul className="mt-2 text-sm">
              {matching.slice(0, 5).map((file) => (
                <li key={file.path} className="flex justify-between gap-4">
                  <span className="mono min-w-0 [overflow-wrap:anywhere]">{file.path}</span>
                  <span className="figure shrink-0 text-text-3">{formatBytes(file.size)}</span>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
      <ReadingPart paths={matching.map((file) => file.path)} value={value} onChange={onChange} />
    </div>
  );
}

/** Which files below an address are loaded and how they are read. */
function PathsPart({ connection, value, faultOf, onChange }: { connection: Connection; value: Files; faultOf: Fault; onChange: (value: Files) => void }) {
  return (
    <div className="flex flex-col gap-4">
      <Field label={texts.paths} help={texts.pathsHelp(connection.https?.baseUrl ?? '')} fault={faultOf('paths')}>
        {(field) => <Textarea {...field} rows={4} className="mono" spellCheck={false} value={value.paths} placeholder="2026/orders.csv" onChange={(event) => onChange({ ...value, paths: event.target.value })} />}
      </Field>
      <ReadingPart paths={pathsOf(value.paths)} value={value} onChange={onChange} />
    </div>
  );
}

/** What happens to files that change or go, and how files are read. */
function ReadingPart({ paths, value, onChange }: { /** Of the files, by whose names the options are chosen. */ paths: string[]; value: Files; onChange: (value: Files) => void }) {
  const options = optionsFor(paths.length > 0 ? paths : ['']);
  const chosen = Object.keys(value.options).length;
  return (
    <>
      <div className="grid items-start gap-4 sm:grid-cols-2">
        <Field label={texts.changed}>
          {(field) => (
            <Select {...field} value={value.changed} onChange={(event) => onChange({ ...value, changed: event.target.value as Files['changed'] })}>
              {(['keep', 'replace'] as const).map((one) => (
                <option key={one} value={one}>
                  {texts.changedTo[one]}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={texts.deleted}>
          {(field) => (
            <Select {...field} value={value.deleted} onChange={(event) => onChange({ ...value, deleted: event.target.value as Files['deleted'] })}>
              {(['keep', 'remove'] as const).map((one) => (
                <option key={one} value={one}>
                  {texts.deletedTo[one]}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      <details>
        <summary className="cursor-default text-text-2 hover:text-text">{chosen > 0 ? texts.readingSet(chosen) : texts.reading}</summary>
        <div className="mt-4 grid items-start gap-4 sm:grid-cols-2">
          {options.map((name: OptionName) => (
            <OptionControl
              key={name}
              name={name}
              value={value.options[name]}
              onChange={(next) => {
                const { [name]: _, ...rest } = value.options;
                onChange({ ...value, options: next === undefined ? rest : { ...rest, [name]: next } });
              }}
            />
          ))}
        </div>
      </details>
    </>
  );
}

/** Which rows of a database are loaded. */
function RowsPart({ value, faultOf, onChange }: { value: Rows; faultOf: Fault; onChange: (value: Rows) => void }) {
  const set = (change: Partial<Rows>) => onChange({ ...value, ...change });
  const text = (name: 'schema' | 'table' | 'cursorColumn' | 'overlap' | 'key', label: string, help?: string) => (
    <Field label={label} help={help} fault={faultOf(name)}>
      {(field) => <Input {...field} value={value[name]} spellCheck={false} autoComplete="off" onChange={(event) => set({ [name]: event.target.value })} />}
    </Field>
  );
  return (
    <div className="flex flex-col gap-4">
      <div className="flex">
        <Segments
          label={texts.rows}
          value={value.of}
          options={[
            ['table', texts.ofTable],
            ['query', texts.ofQuery],
          ]}
          onChange={(of) => set({ of })}
        />
      </div>
      {value.of === 'table' ? (
        <div className="grid items-start gap-4 sm:grid-cols-2">
          {text('schema', texts.schema)}
          {text('table', texts.table, texts.tableHelp)}
        </div>
      ) : (
        <Field label={texts.query} help={texts.queryHelp} fault={faultOf('query')}>
          {(field) => <Textarea {...field} rows={5} className="mono" spellCheck={false} value={value.query} onChange={(event) => set({ query: event.target.value })} />}
        </Field>
      )}
      <Field label={texts.mode} help={texts.modeHelp[value.mode]}>
        {(field) => (
          <Select {...field} value={value.mode} onChange={(event) => set({ mode: event.target.value as Rows['mode'] })}>
            {(['full', 'growing'] as const).map((one) => (
              <option key={one} value={one}>
                {texts.modes[one]}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {value.mode === 'growing' && (
        <div className="grid items-start gap-4 sm:grid-cols-3">
          {text('cursorColumn', texts.cursorColumn, texts.cursorColumnHelp)}
          {text('key', texts.key, texts.keyHelp)}
          {text('overlap', texts.overlap, texts.overlapHelp)}
        </div>
      )}
    </div>
  );
}

/** The dataset: a new one of the caller, or one that the caller may change. */
function TargetPart({ target, at, faultOf, onTarget, onAt }: { target: Target | undefined; at: { namespace: string; datasetName: string }; faultOf: Fault; onTarget: (target: Target | undefined) => void; onAt: (at: { namespace: string; datasetName: string }) => void }) {
  const self = useQuery(me).data?.username ?? '';
  const list = useInfiniteQuery(datasets(''));
  const spaces = useId();
  const own = (list.data?.pages ?? []).flatMap((page) => page.data).filter((one) => one.role !== 'viewer');
  const idOf = (one: { username: string; namespace: string; name: string }) => `${one.username}/${one.namespace}/${one.name}`;
  return (
    <div className="flex flex-col gap-4">
      <Field label={texts.target}>
        {(field) => (
          <Select
            {...field}
            value={target ? idOf({ ...target, name: target.datasetName }) : unset}
            onChange={(event) => {
              const found = own.find((one) => idOf(one) === event.target.value);
              onTarget(found && { username: found.username, namespace: found.namespace, datasetName: found.name });
            }}
          >
            <option value={unset}>{texts.newDataset}</option>
            {own.map((one) => (
              <option key={idOf(one)} value={idOf(one)}>
                {one.username === self ? `${one.namespace}/${one.name}` : idOf(one)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {!target && (
        <div className="grid items-start gap-4 sm:grid-cols-2">
          <Field label={t.upload.review.namespace} help={t.upload.review.namespaceHelp} fault={faultOf('namespace')}>
            {(field) => <Input {...field} list={spaces} value={at.namespace} maxLength={128} autoComplete="off" onChange={(event) => onAt({ ...at, namespace: event.target.value })} />}
          </Field>
          <Field label={t.upload.review.name} help={t.upload.review.nameHelp} fault={faultOf('datasetName')}>
            {(field) => <Input {...field} value={at.datasetName} maxLength={128} autoComplete="off" onChange={(event) => onAt({ ...at, datasetName: event.target.value })} />}
          </Field>
          <datalist id={spaces}>
            {[...new Set(own.filter((one) => one.username === self).map((one) => one.namespace))].map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </div>
      )}
    </div>
  );
}
