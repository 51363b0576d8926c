import { useMutation } from '@tanstack/react-query';
import { Ban, Pencil, Undo2 } from 'lucide-react';
import { type ReactNode, useRef, useState } from 'react';
import { api, take } from '~/api/client';
import type { Ref } from '~/api/queries';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Field, Input } from '~/ui/Field';
import { say } from '~/ui/toast';
import { useUnsaved } from '~/unsaved';
import { onArrows } from './arrows';
import { type DocumentField, type DocumentRecord, isDoubted } from './place';
import { loadPath } from './queries';

const texts = t.records;

/** The fields of a record, each with its value, its quote and why it is doubted. The one that is chosen can be corrected. */
export function Fields({
  fields,
  chosen,
  onChoose,
  onChange,
  at,
  load,
  record,
  editable,
  below,
}: {
  fields: readonly (readonly [string, DocumentField])[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
  onChange: (now: DocumentRecord) => void;
  at: Ref;
  load: string;
  record: DocumentRecord;
  editable: boolean;
  /** What stands under the chosen field, if there is no place beside it. */
  below: ReactNode;
}) {
  return (
    <ul aria-label={texts.fields} onKeyDown={onArrows} className="min-h-0 divide-y divide-line rounded-md border border-line bg-surface lg:overflow-y-auto">
      {fields.map(([name, field]) => (
        <li key={name} className={cx('relative first:rounded-t-md last:rounded-b-md', chosen === name && 'bg-accent-soft')}>
          <button
            type="button"
            data-choice
            aria-pressed={chosen === name}
            onClick={(event) => {
              onChoose(name);
              // What appears under the field on a narrow screen must be seen.
              const item = event.currentTarget.closest('li');
              requestAnimationFrame(() => item?.scrollIntoView({ block: 'nearest' }));
            }}
            // With the pointer it would be chosen before the click, and move away under it.
            onFocus={(event) => {
              if (event.currentTarget.matches(':focus-visible')) onChoose(name);
            }}
            className={cx('block w-full rounded-md px-4 py-3 text-left focus-visible:-outline-offset-2', chosen !== name && 'transition-colors duration-120 hover:bg-hover')}
          >
            <Content name={name} field={field} />
          </button>
          {chosen === name && editable && <Correct key={name} at={at} load={load} record={record} name={name} field={field} onChange={onChange} />}
          {chosen === name && below && <div className="px-4 pb-4">{below}</div>}
        </li>
      ))}
    </ul>
  );
}

/** Names, values and quotes come from documents, in any script. */
const outside = '[overflow-wrap:anywhere] [unicode-bidi:isolate]';

function Content({ name, field }: { name: string; field: DocumentField }) {
  const doubted = isDoubted(field);
  return (
    <>
      <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className={cx('text-sm text-text-2', outside)}>{name}</span>
        {doubted && <Badge tone="warn">{texts.doubted}</Badge>}
        {field.corrected && <Badge tone="info">{texts.corrected}</Badge>}
        {field.pending && (
          <Badge title={texts.pendingTitle}>{texts.pending}</Badge>
        )}
      </span>
      <span dir="auto" className={cx('mt-0.5 block whitespace-pre-wrap', field.value === undefined ? 'text-text-3' : 'font-medium', outside)}>
        {field.value ?? texts.noValue}
      </span>
      {doubted && field.flag && <span className="mt-1 block text-sm text-warn">{texts.flags[field.flag]}</span>}
      {field.said !== undefined && (
        <span className="mt-1 block text-sm text-text-2">
          {texts.said} <span className={outside}>“{field.said}”</span>
        </span>
      )}
      <span className="mt-1 block text-sm text-text-2">
        {field.quote === '' ? (
          texts.silent
        ) : (
          <>
            {field.page === undefined ? texts.notFound : texts.page(field.page)}: <q className={outside}>{field.quote.trim()}</q>
          </>
        )}
      </span>
    </>
  );
}

type Props = { at: Ref; load: string; record: DocumentRecord; name: string; field: DocumentField; onChange: (now: DocumentRecord) => void };

function Correct({ at, load, record, name, field, onChange }: Props) {
  const [draft, setDraft] = useState<string>();
  const place = useRef<HTMLDivElement>(null);
  const start = field.value ?? field.said ?? '';
  useUnsaved(draft !== undefined && draft !== start);
  const params = { path: { ...loadPath(at, load), recordId: record.id, fieldName: name } };
  const path = '/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/records/{recordId}/fields/{fieldName}';
  const set = useMutation({
    mutationFn: (value: string | null | undefined) => take(value === undefined ? api.DELETE(path, { params }) : api.PUT(path, { params, body: { value } })),
    onSuccess: (now, value) => {
      onChange(now);
      close();
      say(value === undefined ? texts.undone(name) : texts.saved(name));
    },
  });
  // What had the focus goes, so the field gets it.
  const close = () => {
    setDraft(undefined);
    place.current?.parentElement?.querySelector<HTMLElement>('[data-choice]')?.focus();
  };
  const busy = (value: 'text' | 'null' | 'none') => set.isPending && (set.variables === undefined ? 'none' : set.variables === null ? 'null' : 'text') === value;
  return (
    <div ref={place} className="px-4 pb-3">
      {draft === undefined ? (
        <div className="flex flex-wrap gap-2">
          <Button icon={Pencil} onClick={() => setDraft(start)}>
            {texts.correct}
          </Button>
          {!(field.corrected && field.value === undefined) && (
            <Button icon={Ban} title={texts.noneTitle} busy={busy('null')} onClick={() => set.mutate(null)}>
              {texts.none}
            </Button>
          )}
          {field.corrected && (
            <Button look="quiet" icon={Undo2} busy={busy('none')} onClick={() => set.mutate(undefined)}>
              {texts.undo}
            </Button>
          )}
        </div>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (draft.trim() !== '' && !set.isPending) set.mutate(draft.trim());
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape' && !event.nativeEvent.isComposing) close();
          }}
        >
          <Field label={texts.valueOf(name)} help={texts.valueHelp}>
            {(props) => <Input {...props} autoFocus autoComplete="off" dir="auto" maxLength={4000} value={draft} onChange={(event) => setDraft(event.target.value)} />}
          </Field>
          <div className="mt-2 flex flex-wrap gap-2">
            <Button type="submit" look="primary" busy={busy('text')} disabled={draft.trim() === ''}>
              {t.common.save}
            </Button>
            <Button onClick={close}>{t.common.cancel}</Button>
          </div>
        </form>
      )}
      {set.isError && <Failure what={texts.failed.correct} error={set.error} className="mt-3" />}
    </div>
  );
}
