import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { CircleCheck, FileText } from 'lucide-react';
import { useState, useSyncExternalStore } from 'react';
import type { Schemas } from '~/api/client';
import type { Ref } from '~/api/queries';
import { formatNumber } from '~/format/number';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { Skeleton } from '~/ui/Skeleton';
import { Fields } from './Fields';
import { PageText } from './PageText';
import { type DocumentRecord, fieldsOf, isDoubted } from './place';
import { doubted, listsKey, sure } from './queries';
import { RecordList } from './RecordList';

const texts = t.records;

type Props = { at: Ref; load: string; metadata: Schemas['DatasetMetadata']; editable: boolean };

/** All records of a load, those with doubted fields first, and the chosen one beside its document. */
export function Review(props: Props) {
  const { at, load, metadata } = props;
  const { doubted: only = false, record: wanted } = useSearch({ strict: false }) as { doubted?: boolean; record?: string };
  const navigate = useNavigate();
  const first = useInfiniteQuery(doubted(at, load));
  const rest = useInfiniteQuery({ ...sure(at, load), enabled: !only && first.isSuccess && !first.hasNextPage });
  const go = (search: { doubted?: boolean | undefined; record?: string | undefined }) => void navigate({ to: '.', search, replace: true });

  const failed = first.isError ? first : rest.isError ? rest : undefined;
  const groups = [
    { title: texts.withDoubts, records: first.data?.pages.flatMap(({ data }) => data) ?? [] },
    // One that is doubted no more is still where the person found it.
    { title: texts.withoutDoubts, records: only || !rest.data ? [] : rest.data.pages.flatMap(({ data }) => data) },
  ];
  const known = new Set(groups[0]?.records.map(({ id }) => id));
  for (const group of groups.slice(1)) group.records = group.records.filter(({ id }) => !known.has(id));
  const all = groups.flatMap(({ records }) => records);
  const record = all.find(({ id }) => id === wanted) ?? all[0];
  const waiting = first.isPending || (!only && rest.isLoading);

  if (failed && !record) return <Failure what={texts.failed.records} error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!record && waiting) return <Skeleton lines={8} />;
  if (!record) {
    return only ? (
      <Empty icon={CircleCheck} title={texts.noDoubts} action={<Button onClick={() => go({})}>{texts.showAll}</Button>}>
        {texts.noDoubtsText}
      </Empty>
    ) : (
      <Empty icon={FileText} title={texts.empty}>
        {texts.emptyText}
      </Empty>
    );
  }
  const next = first.hasNextPage ? first : rest.hasNextPage && !only ? rest : undefined;
  return (
    <div className="grid min-h-0 grow gap-4 md:grid-cols-2 lg:h-0 lg:min-h-100 lg:grid-cols-[minmax(200px,260px)_minmax(0,5fr)_minmax(0,7fr)] lg:grid-rows-[minmax(0,1fr)]">
      <div className="flex min-h-0 flex-col md:max-lg:col-span-2">
        <label className="mb-2 flex min-h-8 items-center gap-2 text-sm">
          <input type="checkbox" checked={only} onChange={(event) => go({ doubted: event.target.checked || undefined, record: record.id })} />
          {texts.onlyDoubted}
        </label>
        <RecordList
          groups={groups}
          columns={metadata.columnNames}
          chosen={record.id}
          onChoose={(id) => go({ doubted: only || undefined, record: id })}
          more={next && { load: () => void next.fetchNextPage(), busy: next.isFetchingNextPage }}
        />
        {failed && <Failure what={texts.failed.records} error={failed.error} onRetry={() => void (next ?? failed).fetchNextPage()} className="mt-2" />}
      </div>
      <Detail key={record.id} {...props} record={record} />
    </div>
  );
}

type Lists = InfiniteData<Schemas['DocumentRecordList']>;

function Detail({ at, load, metadata, editable, record }: Props & { record: DocumentRecord }) {
  const queries = useQueryClient();
  const beside = useBeside();
  const fields = fieldsOf(record, metadata.columnNames, Object.keys(metadata.schemaDefinition));
  const [chosen, setChosen] = useState((fields.find(([, field]) => isDoubted(field)) ?? fields[0])?.[0]);
  const field = fields.find(([name]) => name === chosen)?.[1];
  const text = <PageText key={chosen} at={at} load={load} record={record} field={field} className={beside ? 'h-full' : ''} />;
  // The list stays as it is: a record that was settled must not go from under the hands.
  const change = (now: DocumentRecord) =>
    queries.setQueriesData<Lists>({ queryKey: listsKey(at, load) }, (old) => old && { ...old, pages: old.pages.map((page) => ({ ...page, data: page.data.map((one) => (one.id === now.id ? now : one)) })) });
  return (
    <>
      <div className="flex min-h-0 flex-col">
        <h2 className="mb-2 flex min-h-8 items-center text-sm font-medium">{record.row === undefined ? texts.noRow : texts.row(formatNumber(record.row))}</h2>
        <Fields fields={fields} chosen={chosen} onChoose={setChosen} onChange={change} at={at} load={load} record={record} editable={editable} below={!beside && text} />
        {/* What the eye sees at the mark is said. */}
        <p role="status" className="sr-only">
          {field && (field.quote === '' ? texts.silent : field.page === undefined ? texts.notFoundOf(field.quote) : texts.quoteOn(field.page, field.quote))}
        </p>
      </div>
      {beside && <div className="min-h-0 max-lg:sticky max-lg:top-4 max-lg:h-[min(70dvh,600px)] max-lg:self-start">{text}</div>}
    </>
  );
}

const wide = '(min-width: 768px)';

/** Whether the text stands beside the fields; in a narrow window it stands under the chosen one. */
function useBeside(): boolean {
  return useSyncExternalStore(
    (changed) => {
      const media = matchMedia(wide);
      media.addEventListener('change', changed);
      return () => media.removeEventListener('change', changed);
    },
    () => matchMedia(wide).matches,
  );
}
