import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Sparkles } from 'lucide-react';
import { useState } from 'react';
import { api, take, takeWith } from '~/api/client';
import { ApiError } from '~/api/errors';
import { definition, keyOf, pathOf } from '~/api/queries';
import { formatNumber } from '~/format/number';
import { typeName } from '~/format/value';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Field, Input, Textarea } from '~/ui/Field';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { useUnsaved } from '~/unsaved';
import { Conflict } from './Conflict';
import { Meaning } from './Meaning';
import type { Part } from './part';
import { SaveBar } from './SaveBar';

const texts = t.dataset.definition;
const most = 10_000;

type Draft = { description: string; columns: Record<string, string> };

export default function Definition(part: Part) {
  const saved = useQuery({ ...definition(part.at), refetchOnWindowFocus: false });
  if (saved.isError) return <Failure what={t.failure.what.definition} error={saved.error} onRetry={() => void saved.refetch()} />;
  if (saved.isPending) return <Skeleton />;
  const { dataDescription, schemaDefinition } = saved.data.data;
  return (
    <div className="flex max-w-288 flex-col gap-10">
      <Editor key={saved.data.header ?? ''} {...part} saved={{ description: dataDescription, columns: schemaDefinition }} tag={saved.data.header} />
      <Meaning {...part} />
    </div>
  );
}

/** The length as the service counts it: characters, not units of UTF-16. */
const lengthOf = (text: string) => [...text].length;

function Editor({ at, metadata, role, saved, tag }: Part & { saved: Draft; tag: string | undefined }) {
  const queries = useQueryClient();
  const [draft, setDraft] = useState(saved);
  const writable = role !== 'viewer';
  const names = [...new Set([...metadata.columnNames, ...Object.keys(saved.columns)])];
  const changed = draft.description !== saved.description || names.some((name) => (draft.columns[name] ?? '') !== (saved.columns[name] ?? ''));
  useUnsaved(changed);
  const used = lengthOf(draft.description);
  const path = pathOf(at);

  const fill = useMutation({
    mutationFn: () => take(api.POST('/data/{username}/{namespace}/{datasetName}/inferDefinition/draft', { params: { path } })),
    onSuccess: (proposal) => {
      const columns = { ...draft.columns };
      let added = 0;
      for (const [name, text] of Object.entries(proposal.schemaDefinition)) {
        if (columns[name]) continue;
        columns[name] = text;
        added += 1;
      }
      const description = draft.description || proposal.dataDescription;
      if (description !== draft.description) added += 1;
      setDraft({ description, columns });
      say(added > 0 ? texts.drafted : texts.draftedNothing);
    },
  });
  const store = useMutation({
    mutationFn: ({ over }: { over: boolean }) => {
      const columns = Object.fromEntries(Object.entries(draft.columns).filter(([, text]) => text.trim() !== ''));
      return takeWith(
        api.PUT('/data/{username}/{namespace}/{datasetName}/inferDefinition', {
          params: { path, ...(tag && !over && { header: { 'If-Match': tag } }) },
          body: { dataDescription: draft.description, schemaDefinition: columns },
        }),
        'ETag',
      );
    },
    onSuccess: async () => {
      say(texts.saved);
      await queries.invalidateQueries({ queryKey: keyOf(at) });
    },
  });
  const conflict = store.error instanceof ApiError && store.error.code === 'PRECONDITION_FAILED';

  return (
    <section>
      <div className="mb-4 flex flex-wrap items-start justify-between gap-3">
        <p className="max-w-120 text-text-2">{writable ? texts.about : texts.readOnly}</p>
        {writable && (
          <Button icon={Sparkles} busy={fill.isPending} onClick={() => fill.mutate()}>
            {texts.draft}
          </Button>
        )}
      </div>
      {fill.isError && <Failure error={fill.error} className="mb-4" />}
      <Field
        label={texts.description}
        fault={used > most ? texts.tooLong : undefined}
        help={<span className={cx('block text-right figure', used > most * 0.9 && 'text-warn')}>{texts.counter(formatNumber(used), formatNumber(most))}</span>}
      >
        {(props) => (
          <Textarea {...props} rows={6} readOnly={!writable} value={draft.description} onChange={(event) => setDraft({ ...draft, description: event.target.value })} className="resize-y" />
        )}
      </Field>
      {names.length > 0 && (
        <>
          <h3 className="mt-6">{texts.columns}</h3>
          <p className="mb-3 text-sm text-text-3">{texts.columnHelp}</p>
          <div className="divide-y divide-line rounded-md border border-line bg-surface">
            {names.map((name) => {
              const type = metadata.columns.find((column) => column.name === name)?.type;
              return (
                <div key={name} className="grid items-center gap-x-4 gap-y-1 px-4 py-2 sm:grid-cols-[200px_minmax(0,1fr)]">
                  <div className="min-w-0">
                    <p className="truncate font-medium">{name}</p>
                    <p className="truncate text-xs text-text-3">{type ? typeName(type) : ''}</p>
                  </div>
                  <Input
                    aria-label={name}
                    readOnly={!writable}
                    value={draft.columns[name] ?? ''}
                    onChange={(event) => setDraft({ ...draft, columns: { ...draft.columns, [name]: event.target.value } })}
                  />
                </div>
              );
            })}
          </div>
        </>
      )}
      {conflict ? (
        <Conflict message={texts.changed} busy={store.isPending} onTheirs={() => void queries.invalidateQueries({ queryKey: keyOf(at) })} onMine={() => store.mutate({ over: true })} />
      ) : (
        store.isError && <Failure error={store.error} className="mt-4" />
      )}
      {writable && (changed || store.isPending) && (
        <SaveBar
          busy={store.isPending}
          disabled={used > most}
          onSave={() => store.mutate({ over: false })}
          onDiscard={() => {
            setDraft(saved);
            store.reset();
          }}
        />
      )}
    </section>
  );
}
