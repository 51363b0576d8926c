import { useMutation, useQueryClient } from '@tanstack/react-query';
import { KeyRound } from 'lucide-react';
import { type FormEvent, useId, useState } from 'react';
import { api, type Schemas, take } from '~/api/client';
import { keyOf, pathOf } from '~/api/queries';
import { typeName } from '~/format/value';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input } from '~/ui/Field';
import { say } from '~/ui/toast';
import type { Part } from './part';

const texts = t.dataset.key;
type Duplicates = Schemas['KeyDuplicates'];

/** The key of a dataset, and for editors the dialog that declares it. `unique` are the columns in which no two rows are alike. */
export function Key({ at, metadata, role, attached, unique }: Part & { unique: ReadonlySet<string> }) {
  const [open, setOpen] = useState(false);
  const { key } = metadata;
  if (role === 'viewer' || attached) {
    return key ? (
      <p className="flex items-center gap-2 text-sm text-text-2">
        <KeyRound size={16} strokeWidth={1.75} aria-hidden />
        {texts.shown(key.columns.join(', '))}
      </p>
    ) : null;
  }
  return (
    <>
      <Button icon={KeyRound} className="max-w-full min-w-0" onClick={() => setOpen(true)}>
        <span className="truncate">{key ? texts.shown(key.columns.join(', ')) : texts.declare}</span>
      </Button>
      {open && <Declare at={at} metadata={metadata} unique={unique} onClose={() => setOpen(false)} />}
    </>
  );
}

function Declare({ at, metadata, unique, onClose }: Pick<Part, 'at' | 'metadata'> & { unique: ReadonlySet<string>; onClose: () => void }) {
  const { key } = metadata;
  const queries = useQueryClient();
  const form = useId();
  const named = metadata.columns.length > 0;
  const [chosen, setChosen] = useState<string[]>(key?.columns ?? []);
  // Before the first rows there are no columns to choose from.
  const [typed, setTyped] = useState(chosen.join(', '));
  const [duplicates, setDuplicates] = useState<Duplicates>(key?.duplicates ?? 'setAside');
  const columns = named ? chosen : typed.split(',').map((one) => one.trim()).filter(Boolean);
  const done = async (words: string) => {
    await queries.invalidateQueries({ queryKey: keyOf(at) });
    say(words);
    onClose();
  };
  const params = { path: pathOf(at) };
  const declare = useMutation({
    mutationFn: () => take(api.PUT('/data/{username}/{namespace}/{datasetName}/key', { params, body: { columns, duplicates } })),
    onSuccess: () => done(texts.declared),
  });
  const remove = useMutation({
    mutationFn: () => take(api.DELETE('/data/{username}/{namespace}/{datasetName}/key', { params })),
    onSuccess: () => done(texts.removed),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    remove.reset();
    declare.mutate();
  };
  const toggle = (name: string) => setChosen((old) => (old.includes(name) ? old.filter((one) => one !== name) : [...old, name]));
  const error = declare.error ?? remove.error;
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.title}
      footer={
        <>
          {key && (
            <Button
              look="danger"
              className="mr-auto"
              busy={remove.isPending}
              onClick={() => {
                declare.reset();
                remove.mutate();
              }}
            >
              {texts.remove}
            </Button>
          )}
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button type="submit" form={form} look="primary" busy={declare.isPending} disabled={columns.length === 0 || columns.length > 16}>
            {key ? texts.change : texts.declare}
          </Button>
        </>
      }
    >
      <p className="mb-4 text-text-2">{texts.text}</p>
      <form id={form} onSubmit={submit} className="flex flex-col gap-4">
        {named ? (
          <fieldset>
            <legend className="mb-1 font-medium">{texts.columns}</legend>
            <ul className="max-h-72 divide-y divide-line overflow-y-auto rounded-md border border-line" tabIndex={0} aria-label={texts.columns}>
              {metadata.columns.map(({ name, type }) => {
                const cannot = /^(double|float|real|json)$/i.test(type);
                return (
                  <li key={name}>
                    <label className={cx('flex min-h-9 items-center gap-3 px-3 pointer-coarse:min-h-11', cannot ? 'text-text-3' : 'hover:bg-hover')}>
                      <input type="checkbox" checked={chosen.includes(name)} disabled={cannot} onChange={() => toggle(name)} />
                      <span className="min-w-0 grow truncate">{name}</span>
                      <span className="shrink-0 text-xs text-text-3">{cannot ? texts.cannot(typeName(type)) : unique.has(name) ? t.dataset.column.key : typeName(type)}</span>
                    </label>
                  </li>
                );
              })}
            </ul>
          </fieldset>
        ) : (
          <Field label={texts.columns} help={texts.namesHelp}>
            {(props) => <Input {...props} value={typed} autoComplete="off" spellCheck={false} onChange={(event) => setTyped(event.target.value)} />}
          </Field>
        )}
        <fieldset>
          <legend className="mb-1 font-medium">{texts.duplicates}</legend>
          <div className="grid gap-2 sm:grid-cols-2">
            {(Object.keys(texts.rules) as Duplicates[]).map((rule) => (
              <label key={rule} className={cx('flex items-start gap-3 rounded-md border p-3', duplicates === rule ? 'border-accent bg-accent-soft' : 'border-control hover:bg-hover')}>
                <input type="radio" name="duplicates" checked={duplicates === rule} onChange={() => setDuplicates(rule)} className="mt-0.5" />
                <span>
                  <span className="block font-medium">{texts.rules[rule][0]}</span>
                  <span className="block text-sm text-text-2">{texts.rules[rule][1]}</span>
                </span>
              </label>
            ))}
          </div>
        </fieldset>
      </form>
      {error && <Failure error={error} className="mt-4" />}
    </Dialog>
  );
}
