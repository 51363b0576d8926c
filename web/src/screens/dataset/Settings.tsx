import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, type Schemas, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { keyOf, listEntry, namespaces, pathOf, profile, rows } from '~/api/queries';
import { formatCell, typeName } from '~/format/value';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { say } from '~/ui/toast';
import { widens } from './exposure';
import type { Part } from './part';

const texts = t.dataset.settings;
type Exposure = Schemas['Exposure'];

export default function Settings(part: Part) {
  if (part.role !== 'owner') return <p className="text-text-2">{texts.ownerOnly}</p>;
  return (
    <div className="flex max-w-190 flex-col gap-8">
      <Name {...part} />
      <Exposed {...part} />
      <Danger {...part} />
    </div>
  );
}

function Section({ title, text, danger = false, children }: { title: string; text?: string; danger?: boolean; children: ReactNode }) {
  return (
    <section className={cx('rounded-lg border bg-surface p-6', danger ? 'border-danger/40' : 'border-line')}>
      <h2 className={cx('text-lg', danger && 'text-danger')}>{title}</h2>
      {text && <p className="mt-1 text-text-2">{text}</p>}
      <div className="mt-4">{children}</div>
    </section>
  );
}

function Name({ at }: Part) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const spaces = useQuery(namespaces);
  const [name, setName] = useState(at.dataset);
  const [namespace, setNamespace] = useState(at.namespace);
  const change = useMutation({
    mutationFn: () =>
      take(
        api.PATCH('/data/{username}/{namespace}/{datasetName}', {
          params: { path: pathOf(at) },
          body: { ...(name !== at.dataset && { name }), ...(namespace !== at.namespace && { namespace }) },
        }),
      ),
    onSuccess: async (done) => {
      say(texts.renamed);
      await navigate({ to: '/data/$owner/$namespace/$dataset/$tab', params: { owner: done.dataset.owner, namespace: done.dataset.namespace, dataset: done.dataset.name, tab: 'settings' }, replace: true });
      queries.removeQueries({ queryKey: keyOf(at) });
      await queries.invalidateQueries({ queryKey: ['datasets'] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate();
  };
  const own = (spaces.data?.data ?? []).filter((space) => space.username === at.owner).map((space) => space.name);
  const fault = change.error instanceof ApiError ? change.error.field('name') : undefined;
  return (
    <Section title={texts.name} text={texts.nameText}>
      <form onSubmit={submit} className="grid items-start gap-3 sm:grid-cols-[1fr_1fr_auto]">
        <Field label={texts.newNamespace}>
          {(props) => (
            <Select {...props} value={namespace} onChange={(event) => setNamespace(event.target.value)}>
              {[...new Set([at.namespace, ...own])].map((one) => (
                <option key={one}>{one}</option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={texts.newName} fault={fault}>
          {(props) => <Input {...props} value={name} maxLength={128} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Button type="submit" busy={change.isPending} disabled={!name || (name === at.dataset && namespace === at.namespace)} className="sm:mt-6">
          {texts.rename}
        </Button>
      </form>
      {spaces.isError && <Failure what={t.failure.what.namespaces} error={spaces.error} onRetry={() => void spaces.refetch()} className="mt-4" />}
      {change.isError && !fault && <Failure error={change.error} className="mt-4" />}
    </Section>
  );
}

function Exposed({ at, metadata }: Part) {
  const queries = useQueryClient();
  const entry = useQuery(listEntry(at));
  const stats = useQuery({ ...profile(at), enabled: metadata.rowCount > 0 });
  const some = useInfiniteQuery(rows(at));
  const change = useMutation({
    mutationFn: (exposure: Exposure) => take(api.PATCH('/data/{username}/{namespace}/{datasetName}', { params: { path: pathOf(at) }, body: { exposure } })),
    onSuccess: async () => {
      say(texts.exposureSaved);
      await queries.invalidateQueries({ queryKey: [...keyOf(at), 'entry'] });
    },
  });
  const [wish, setWish] = useState<Exposure>();
  const allow = () => {
    if (wish) change.mutate(wish);
    setWish(undefined);
  };
  const now = change.isPending ? change.variables : entry.data?.exposure;
  const columns = metadata.columns.slice(0, 4);
  const example: string[] = columns.map((column) => `${column.name}: ${typeName(column.type)}`);
  if (now === 'values' || now === 'rows') {
    for (const column of stats.data?.columns.slice(0, 4) ?? []) {
      const values = column.topValues.slice(0, 3).map((one) => formatCell(one.value, column.type, column.name));
      if (values.length) example.push(`${column.name}: ${values.join(', ')} …`);
    }
  }
  if (now === 'rows') {
    for (const row of some.data?.pages[0]?.data.slice(0, 2) ?? []) example.push(columns.map((column) => formatCell(row[column.name], column.type, column.name)).join(' | '));
  }
  // The example keeps its values. Without them it would suggest that models see less than they do.
  const missing = [now !== 'schema' && stats, now === 'rows' && some].find((one) => one && one.isError) || undefined;
  return (
    <Section title={texts.exposure} text={texts.exposureText}>
      <div role="radiogroup" aria-label={texts.exposure} className="grid gap-2 sm:grid-cols-3">
        {(Object.keys(texts.exposures) as Exposure[]).map((name) => (
          <label key={name} className={cx('flex items-start gap-3 rounded-md border p-3', now === name ? 'border-accent bg-accent-soft' : 'border-control hover:bg-hover')}>
            <input type="radio" name="exposure" checked={now === name} onChange={() => (widens(now, name) ? setWish(name) : change.mutate(name))} className="mt-1 accent-accent" />
            <span>
              <span className="block font-medium">{texts.exposures[name][0]}</span>
              <span className="block text-sm text-text-2">{texts.exposures[name][1]}</span>
            </span>
          </label>
        ))}
      </div>
      {missing ? (
        <Failure what={t.failure.what.example} error={missing.error} onRetry={() => void missing.refetch()} className="mt-4" />
      ) : (
        example.length > 0 && (
          <>
            <p className="mt-4 mb-1 text-xs text-text-3">{texts.example}</p>
            <pre dir="auto" className="mono overflow-x-auto rounded-md bg-sunken p-3 text-text-2" tabIndex={0}>
              {example.map((line) => line.slice(0, 200)).join('\n')}
            </pre>
          </>
        )
      )}
      {change.isError && <Failure error={change.error} className="mt-4" />}
      <Dialog
        open={wish !== undefined}
        onClose={() => setWish(undefined)}
        title={texts.widen}
        footer={
          <>
            <Button onClick={() => setWish(undefined)}>{t.common.cancel}</Button>
            <Button look="primary" onClick={allow}>
              {texts.allow}
            </Button>
          </>
        }
      >
        {wish && (
          <>
            <p className="font-medium">{texts.exposures[wish][0]}</p>
            <p className="text-text-2">{texts.exposures[wish][1]}</p>
          </>
        )}
        <p className="mt-4 text-text-2">{texts.widenText}</p>
      </Dialog>
    </Section>
  );
}

function Danger(part: Part) {
  const { at, metadata } = part;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<'clear' | 'delete' | null>(null);
  const [typed, setTyped] = useState('');
  const act = useMutation<unknown, Error, 'clear' | 'delete'>({
    mutationFn: (what) =>
      what === 'clear'
        ? take(api.POST('/data/{username}/{namespace}/{datasetName}/clear', { params: { path: pathOf(at) } }))
        : take(api.DELETE('/data/{username}/{namespace}/{datasetName}', { params: { path: pathOf(at) } })),
    onSuccess: async (_, what) => {
      setAsked(null);
      say(what === 'clear' ? texts.clearDone : texts.deleteDone(at.dataset));
      if (what === 'delete') {
        await navigate({ to: '/data' });
        queries.removeQueries({ queryKey: keyOf(at) });
      } else {
        await queries.invalidateQueries({ queryKey: keyOf(at) });
      }
      await queries.invalidateQueries({ queryKey: ['datasets'] });
    },
  });
  const ask = (what: 'clear' | 'delete') => {
    act.reset();
    setTyped('');
    setAsked(what);
  };
  const line = (what: 'clear' | 'delete', text: string, disabled = false) => (
    <div className="flex flex-wrap items-center justify-between gap-3 py-3">
      <div className="max-w-110">
        <p className="font-medium">{texts[what]}</p>
        <p className="text-sm text-text-2">{text}</p>
      </div>
      <Button look="danger" disabled={disabled} onClick={() => ask(what)}>
        {texts[what]}
      </Button>
    </div>
  );
  return (
    <Section title={texts.danger} danger>
      <div className="-my-3 divide-y divide-line">
        {line('clear', texts.clearText, metadata.rowCount === 0)}
        {line('delete', texts.deleteText)}
      </div>
      <Dialog
        open={asked !== null}
        onClose={() => setAsked(null)}
        title={asked === 'delete' ? texts.deleteTitle(at.dataset) : texts.clearTitle(at.dataset)}
        footer={
          <>
            <Button onClick={() => setAsked(null)}>{t.common.cancel}</Button>
            <Button look="danger" busy={act.isPending} disabled={typed !== at.dataset} onClick={() => asked && act.mutate(asked)}>
              {asked ? texts[asked] : ''}
            </Button>
          </>
        }
      >
        <p className="mb-4 text-text-2">{asked === 'clear' ? texts.clearText : texts.deleteText}</p>
        <Field label={texts.confirmName(at.dataset)}>
          {(props) => <Input {...props} value={typed} autoFocus autoComplete="off" spellCheck={false} onChange={(event) => setTyped(event.target.value)} />}
        </Field>
        {act.isError && <Failure error={act.error} className="mt-4" />}
      </Dialog>
    </Section>
  );
}
