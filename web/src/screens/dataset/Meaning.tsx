import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Check, ChevronRight, Plus, RotateCcw, X } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { api, newKey, type Schemas, takeWith } from '~/api/client';
import { ApiError } from '~/api/errors';
import { keyOf, pathOf, semantics } from '~/api/queries';
import { typeName } from '~/format/value';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button, IconButton } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { useUnsaved } from '~/unsaved';
import { Choices } from './Choices';
import { Conflict } from './Conflict';
import { type ColumnDraft, type Draft, draftOf, Faults, fieldsOf, type Fn, hasSynonym, type JoinDraft, type MeasureDraft, type Role, type Sent, sentOf, withSynonym, words } from './draft';
import type { Part } from './part';
import { SaveBar } from './SaveBar';

const texts = t.dataset.meaning;
const roles = Object.keys(texts.roles) as Role[];
const functions = Object.keys(texts.functions) as Fn[];

/** What questions calculate with: what one row is, roles, units and synonyms of columns, named figures, joins. */
export function Meaning(part: Part) {
  const saved = useQuery({ ...semantics(part.at), refetchOnWindowFocus: false });
  if (saved.isError) return <Failure what={t.failure.what.meaning} error={saved.error} onRetry={() => void saved.refetch()} />;
  if (saved.isPending) return <Skeleton lines={6} />;
  return <Editor key={saved.data.header ?? ''} {...part} saved={saved.data.data} tag={saved.data.header} />;
}

function Editor({ at, metadata, role, saved, tag }: Part & { saved: Schemas['Semantics']; tag: string | undefined }) {
  const queries = useQueryClient();
  const [start] = useState(() => draftOf(saved));
  const [draft, setDraft] = useState(start);
  const [sent, setSent] = useState<Sent>();
  const writable = role !== 'viewer';
  const changed = JSON.stringify(draft) !== JSON.stringify(start);
  useUnsaved(changed);
  const theirs = () => queries.invalidateQueries({ queryKey: [...keyOf(at), 'semantics'] });

  const store = useMutation({
    mutationFn: ({ over }: { over: boolean }) => {
      const next = sentOf(draft);
      setSent(next);
      return takeWith(
        api.PUT('/data/{username}/{namespace}/{datasetName}/semantics', { params: { path: pathOf(at), ...(tag && !over && { header: { 'If-Match': tag } }) }, body: next.body }),
        'ETag',
      );
    },
    onSuccess: async (answer) => {
      say(texts.saved);
      queries.setQueryData([...keyOf(at), 'semantics'], answer);
      await queries.invalidateQueries({ queryKey: ['suggestions'] });
    },
  });
  const failure = store.error instanceof ApiError ? store.error : undefined;
  const conflict = failure?.code === 'PRECONDITION_FAILED';
  const faults = new Faults(failure?.subErrors ?? [], sent, fieldsOf(draft));
  const shared = { draft, setDraft, writable, faults };
  const types = new Map(metadata.columns.map((column) => [column.name, column.type]));

  return (
    <section className="min-w-0">
      <h2 className="text-lg">{texts.title}</h2>
      <p className="mb-4 max-w-160 text-text-2">{texts.about}</p>
      <Field label={texts.row} help={texts.rowHelp} fault={faults.at('row')} className="mb-6 max-w-100">
        {(props) => <Input {...props} readOnly={!writable} maxLength={200} value={draft.row} onChange={(event) => setDraft({ ...draft, row: event.target.value, rowSaid: true })} />}
      </Field>
      {metadata.columns.length > 0 && <Columns {...shared} names={metadata.columnNames.filter((name) => name in draft.columns)} types={types} />}
      <Measures {...shared} />
      <Joins {...shared} />
      <Choices at={at} has={(column, word) => hasSynonym(draft, column, word)} onSynonym={(column, word) => setDraft(withSynonym(draft, column, word))} />
      {conflict ? (
        <Conflict message={texts.changed} busy={store.isPending} onTheirs={() => void theirs()} onMine={() => store.mutate({ over: true })} />
      ) : store.isError && (!failure || failure.subErrors.length === 0 || faults.others) ? (
        <Failure error={store.error} className="mt-4" />
      ) : (
        store.isError && (
          <p role="alert" className="mt-4 text-danger">
            {texts.marked}
          </p>
        )
      )}
      {writable && (changed || store.isPending) && (
        <SaveBar
          busy={store.isPending}
          onSave={() => store.mutate({ over: false })}
          onDiscard={() => {
            setDraft(start);
            store.reset();
          }}
        />
      )}
    </section>
  );
}

type Shared = { draft: Draft; setDraft: (next: Draft) => void; writable: boolean; faults: Faults };

/** One column with its role, unit and synonyms: a table on a desk, a form on a phone. */
const line = 'gap-x-3 gap-y-2 px-4 sm:grid-cols-[minmax(0,3fr)_minmax(0,2fr)_minmax(0,4fr)] xl:grid-cols-[minmax(0,180px)_170px_110px_minmax(0,1fr)_212px]';
/** A label that the head of the table replaces where there is one. */
const small = 'mb-0.5 block text-xs text-text-3 xl:hidden';

function Columns({ draft, setDraft, writable, faults, names, types }: Shared & { names: string[]; types: Map<string, string> }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (name: string) => setOpen((old) => (old.has(name) ? new Set([...old].filter((one) => one !== name)) : new Set([...old, name])));
  const set = (name: string, change: Partial<ColumnDraft>) => {
    const column = draft.columns[name];
    if (column) setDraft({ ...draft, columns: { ...draft.columns, [name]: { ...column, said: true, ...change } } });
  };
  return (
    <>
      <h3>{texts.columns}</h3>
      <p className="mb-2 text-sm text-text-3">{texts.columnsText}</p>
      <ul className="divide-y divide-line rounded-md border border-line bg-surface">
        <li aria-hidden className={cx(line, 'hidden py-2 text-xs font-medium text-text-3 xl:grid')}>
          <span>{t.dataset.column.name}</span>
          <span>{texts.roleHead}</span>
          <span>{texts.unit}</span>
          <span>{texts.synonyms}</span>
        </li>
        {names.map((name) => {
          const column = draft.columns[name]!;
          const label = (what: string) => `${what} ${name}`;
          const isOpen = open.has(name) || ['', '.role', '.unit', '.synonyms'].some((field) => faults.at(`columns.${name}${field}`));
          return (
            <li key={name} className={cx(line, 'grid items-start py-3')}>
              <div className="relative min-w-0 sm:col-span-2 xl:col-span-1">
                <p className="flex items-center gap-2">
                  <span className="truncate font-medium" title={name}>
                    {name}
                  </span>
                  {column.said && <Origin source="confirmed" />}
                </p>
                <p className="truncate text-xs text-text-3">
                  {typeName(types.get(name) ?? '')}
                  {!isOpen && <span className="sm:hidden"> · {[texts.roles[column.role], column.unit, column.synonyms.text].filter(Boolean).join(' · ')}</span>}
                </p>
                {/* On a phone a column is one line until somebody wants to change it. */}
                <button
                  type="button"
                  aria-expanded={isOpen}
                  aria-label={texts.change(name)}
                  onClick={() => toggle(name)}
                  className="absolute -inset-x-4 -inset-y-3 flex items-center justify-end rounded-md pr-4 text-text-3 focus-visible:-outline-offset-2 sm:hidden"
                >
                  <ChevronRight size={16} strokeWidth={1.75} aria-hidden className={cx('transition-transform duration-120', isOpen && 'rotate-90')} />
                </button>
                <Fault text={faults.at(`columns.${name}`)} />
              </div>
              <div className={cx('contents', !isOpen && 'max-sm:hidden')}>
              <Field label={label(texts.role)} hideLabel fault={faults.at(`columns.${name}.role`)} help={texts.roleEffects[column.role]}>
                {(props) => (
                  <>
                  <span aria-hidden className={small}>{texts.roleHead}</span>
                  <Select {...props} disabled={!writable} value={column.role} onChange={(event) => set(name, { role: event.target.value as Role })}>
                    {roles.map((one) => (
                      <option key={one} value={one}>
                        {texts.roles[one]}
                      </option>
                    ))}
                  </Select>
                  </>
                )}
              </Field>
              <Field label={label(texts.unit)} hideLabel fault={faults.at(`columns.${name}.unit`)}>
                {(props) => (
                  <>
                    <span aria-hidden className={small}>
                      {texts.unit}
                    </span>
                    <Input {...props} readOnly={!writable} maxLength={50} value={column.unit} onChange={(event) => set(name, { unit: event.target.value })} />
                  </>
                )}
              </Field>
              <Field label={label(texts.synonyms)} hideLabel fault={faults.at(`columns.${name}.synonyms`)}>
                {(props) => (
                  <>
                  <span aria-hidden className={small}>{texts.synonyms}</span>
                  <Input {...props} placeholder={texts.synonymsHint} readOnly={!writable} value={column.synonyms.text} onChange={(event) => set(name, { synonyms: { ...column.synonyms, text: event.target.value } })} />
                  </>
                )}
              </Field>
              <div className="flex h-8 items-center gap-2 sm:max-xl:order-first sm:max-xl:col-start-3 sm:max-xl:row-start-1 sm:max-xl:justify-end">
                <label className="flex items-center gap-2 text-sm whitespace-nowrap text-text-2" title={texts.notForFiguresTitle}>
                  <input type="checkbox" disabled={!writable} aria-label={label(texts.notForFigures)} checked={column.notForFigures} onChange={(event) => set(name, { notForFigures: event.target.checked })} className="accent-accent" />
                  {texts.notForFigures}
                </label>
                <IconButton
                  icon={RotateCcw}
                  label={texts.backToDraft(name)}
                  disabled={!writable || !column.said}
                  className={column.said && writable ? undefined : 'invisible'}
                  onClick={() => set(name, { said: false })}
                />
              </div>
              </div>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function Measures({ draft, setDraft, writable, faults }: Shared) {
  const set = (key: string, change: Partial<MeasureDraft>) =>
    setDraft({ ...draft, measures: draft.measures.map((one) => (one.key === key ? { ...one, source: 'confirmed', ...change } : one)) });
  const remove = (one: MeasureDraft) => setDraft({ ...draft, measures: draft.measures.filter((other) => other !== one) });
  const add = () => setDraft({ ...draft, measures: [...draft.measures, { key: newKey(), name: '', synonyms: words([]), function: 'sum', expression: '', unit: '', source: 'confirmed' }] });
  return (
    <Entries title={texts.measures} text={texts.measuresText} none={texts.noMeasures} add={texts.addMeasure} onAdd={writable ? add : undefined}>
      {draft.measures.map((one) => {
        const fault = (part: string) => faults.at(`measures.${one.key}.${part}`);
        const off = !writable || one.source === 'rejected';
        return (
          <Entry key={one.key} name={one.name || texts.newMeasure} source={one.source} writable={writable} fault={faults.at(`measures.${one.key}`)} onSource={(source) => set(one.key, { source })} onRemove={() => remove(one)}>
            <div className="grid gap-3 sm:grid-cols-2 xl:grid-cols-[minmax(0,1fr)_150px_minmax(0,1.4fr)_90px_minmax(0,1fr)]">
              <Field label={texts.name} fault={fault('name')}>
                {(props) => <Input {...props} readOnly={off} maxLength={100} value={one.name} onChange={(event) => set(one.key, { name: event.target.value })} />}
              </Field>
              <Field label={texts.function} fault={fault('function')}>
                {(props) => (
                  <Select {...props} disabled={off} value={one.function} onChange={(event) => set(one.key, { function: event.target.value as Fn })}>
                    {functions.map((fn) => (
                      <option key={fn} value={fn}>
                        {texts.functions[fn]}
                      </option>
                    ))}
                  </Select>
                )}
              </Field>
              <Field label={texts.expression} fault={fault('expression')}>
                {(props) => (
                  <Input
                    {...props}
                    readOnly={off}
                    maxLength={1000}
                    spellCheck={false}
                    autoCapitalize="none"
                    placeholder={one.function === 'count' ? texts.allRows : texts.expressionHint}
                    className="mono"
                    value={one.expression}
                    onChange={(event) => set(one.key, { expression: event.target.value })}
                  />
                )}
              </Field>
              <Field label={texts.unit} fault={fault('unit')}>
                {(props) => <Input {...props} readOnly={off} maxLength={50} value={one.unit} onChange={(event) => set(one.key, { unit: event.target.value })} />}
              </Field>
              <Field label={texts.synonyms} fault={fault('synonyms')}>
                {(props) => (
                  <Input {...props} placeholder={texts.synonymsHint} readOnly={off} value={one.synonyms.text} onChange={(event) => set(one.key, { synonyms: { ...one.synonyms, text: event.target.value } })} />
                )}
              </Field>
            </div>
          </Entry>
        );
      })}
    </Entries>
  );
}

function Joins({ draft, setDraft, writable, faults }: Shared) {
  const set = (key: string, change: Partial<JoinDraft>) => setDraft({ ...draft, joins: draft.joins.map((one) => (one.key === key ? { ...one, source: 'confirmed', ...change } : one)) });
  const remove = (one: JoinDraft) => setDraft({ ...draft, joins: draft.joins.filter((other) => other !== one) });
  const add = () => setDraft({ ...draft, joins: [...draft.joins, { key: newKey(), columns: words([]), to: '', keys: words([]), source: 'confirmed' }] });
  return (
    <Entries title={texts.joins} text={texts.joinsText} none={texts.noJoins} add={texts.addJoin} onAdd={writable ? add : undefined}>
      {draft.joins.map((one) => {
        const fault = (part: string) => faults.at(`joins.${one.key}.${part}`);
        const off = !writable || one.source === 'rejected';
        return (
          <Entry key={one.key} name={one.to || texts.newJoin} source={one.source} writable={writable} fault={faults.at(`joins.${one.key}`)} onSource={(source) => set(one.key, { source })} onRemove={() => remove(one)}>
            <div className="grid gap-3 sm:grid-cols-3">
              <Field label={texts.joinColumns} fault={fault('columns')}>
                {(props) => <Input {...props} readOnly={off} value={one.columns.text} onChange={(event) => set(one.key, { columns: { ...one.columns, text: event.target.value } })} />}
              </Field>
              <Field label={texts.joinTo} fault={fault('to')}>
                {(props) => <Input {...props} readOnly={off} maxLength={400} autoCapitalize="none" spellCheck={false} value={one.to} onChange={(event) => set(one.key, { to: event.target.value })} />}
              </Field>
              <Field label={texts.joinKeys} fault={fault('keys')}>
                {(props) => <Input {...props} readOnly={off} value={one.keys.text} onChange={(event) => set(one.key, { keys: { ...one.keys, text: event.target.value } })} />}
              </Field>
            </div>
          </Entry>
        );
      })}
    </Entries>
  );
}

type Source = MeasureDraft['source'];

/** The measures or the joins, and the button that adds one. */
function Entries({ title, text, none, add, onAdd, children }: { title: string; text: string; none: string; add: string; onAdd: (() => void) | undefined; children: ReactNode[] }) {
  return (
    <section className="mt-8">
      <h3>{title}</h3>
      <p className="mb-2 max-w-160 text-sm text-text-3">{text}</p>
      {children.length === 0 ? <p className="mb-2 text-text-2">{none}</p> : <ul className="mb-2 flex flex-col gap-2">{children}</ul>}
      {onAdd && (
        <Button icon={Plus} onClick={onAdd}>
          {add}
        </Button>
      )}
    </section>
  );
}

/** A measure or a join with what can be done about it: a draft is confirmed or rejected, what people said is removed. */
function Entry({
  name,
  source,
  writable,
  fault,
  onSource,
  onRemove,
  children,
}: {
  name: string;
  source: Source;
  writable: boolean;
  fault: string | undefined;
  onSource: (source: Source) => void;
  onRemove: () => void;
  children: ReactNode;
}) {
  return (
    <li className={cx('rounded-md border border-line bg-surface px-4 pt-2 pb-4', source === 'rejected' && 'opacity-70')}>
      <div className="mb-2 flex min-h-8 flex-wrap items-center gap-2">
        <span className="min-w-0 truncate font-medium">{name}</span>
        <Origin source={source} />
        <span className="grow" />
        {writable && source === 'drafted' && (
          <>
            <Button look="quiet" icon={Check} aria-label={`${texts.confirm} ${name}`} onClick={() => onSource('confirmed')}>
              {texts.confirm}
            </Button>
            <Button look="quiet" icon={X} aria-label={`${texts.reject} ${name}`} onClick={() => onSource('rejected')}>
              {texts.reject}
            </Button>
          </>
        )}
        {writable && source === 'rejected' && (
          <Button look="quiet" icon={RotateCcw} aria-label={`${texts.use} ${name}`} onClick={() => onSource('drafted')}>
            {texts.use}
          </Button>
        )}
        {writable && source === 'confirmed' && <IconButton icon={X} label={texts.remove(name)} onClick={onRemove} />}
      </div>
      {children}
      <Fault text={fault} />
    </li>
  );
}

function Origin({ source }: { source: Source }) {
  return (
    <Badge tone={source === 'confirmed' ? 'ok' : source === 'rejected' ? 'warn' : 'plain'} title={texts.sourceTitles[source]}>
      {texts.sources[source]}
    </Badge>
  );
}

function Fault({ text }: { text: string | undefined }) {
  return text ? <p className="mt-1 text-xs text-danger">{text}</p> : null;
}
