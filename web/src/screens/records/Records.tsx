import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { RotateCw } from 'lucide-react';
import { api, newKey, type Schemas, take } from '~/api/client';
import { dataset, keyOf, listEntry, type Ref, urlOf } from '~/api/queries';
import { count } from '~/format/number';
import { formatExact } from '~/format/time';
import { few, t } from '~/texts';
import { Bar } from '~/ui/Bar';
import { Button, buttonClass } from '~/ui/Button';
import { Facts } from '~/ui/Facts';
import { Failure } from '~/ui/Failure';
import { Page } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { say } from '~/ui/toast';
import { busy, load, loadPath } from './queries';
import { Review } from './Review';

const texts = t.records;

type Ingestion = Schemas['Ingestion'];

/** What a model read in the documents of a load: each record beside the page that it comes from. */
export default function Records() {
  const params = useParams({ strict: false }) as { owner: string; namespace: string; dataset: string; ingestion: string };
  const at: Ref = { owner: params.owner, namespace: params.namespace, dataset: params.dataset };
  const head = useQuery(dataset(at));
  const entry = useQuery(listEntry(at));
  const one = useQuery(load(at, params.ingestion));
  const failed = [head, entry, one].find((query) => query.isError);
  const editable = entry.data !== undefined && entry.data !== null && entry.data.role !== 'viewer';
  return (
    <Page
      title={texts.title}
      wide
      above={<Crumbs of={at} />}
      lead={one.data && <About of={one.data} />}
      actions={editable && one.data?.status === 'completed' && one.data.documents && <Reload key={params.ingestion} at={at} of={one.data} />}
    >
      {failed ? (
        <Failure what={texts.failed.load} error={failed.error} onRetry={() => void failed.refetch()} />
      ) : !head.data || entry.isPending || !one.data ? (
        <Skeleton lines={8} />
      ) : one.data.status === 'completed' ? (
        <Review key={urlOf(at) + params.ingestion} at={at} load={params.ingestion} metadata={head.data.metadata} editable={editable} />
      ) : (
        <Unfinished at={at} of={one.data} />
      )}
    </Page>
  );
}

function Crumbs({ of }: { of: Ref }) {
  return (
    <span className="[overflow-wrap:anywhere]">
      <Link to="/data" className="hover:text-text hover:underline">
        {t.data.title}
      </Link>
      {` / ${of.owner} / ${of.namespace} / `}
      <Link to="/data/$owner/$namespace/$dataset/$tab" params={{ ...of, tab: 'loads' }} className="hover:text-text hover:underline">
        {of.dataset}
      </Link>
    </span>
  );
}

function About({ of }: { of: Ingestion }) {
  const pages = of.documents?.reduce((sum, document) => sum + document.pages, 0);
  return (
    <Facts
      className="figure text-sm [overflow-wrap:anywhere]"
      of={[of.filenames && few(of.filenames), pages !== undefined && count(pages, 'page'), <time dateTime={of.createdAt}>{formatExact(of.createdAt)}</time>]}
    />
  );
}

function Reload({ at, of }: { at: Ref; of: Ingestion }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const reload = useMutation({
    mutationFn: () =>
      take(
        api.POST('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}/reload', { params: { path: loadPath(at, of.id), header: { 'Idempotency-Key': newKey() } } }),
      ),
    onSuccess: async (made) => {
      say(texts.reloading);
      await navigate({ to: '/data/$owner/$namespace/$dataset/loads/$ingestion', params: { ...at, ingestion: made.id } });
      await queries.invalidateQueries({ queryKey: keyOf(at) });
    },
  });
  return (
    <>
      <Button icon={RotateCw} title={texts.reloadTitle} busy={reload.isPending} onClick={() => reload.mutate()}>
        {texts.reload}
      </Button>
      {reload.isError && <Failure what={texts.failed.reload} error={reload.error} className="w-full" />}
    </>
  );
}

/** A load that has no records yet, or that will have none. */
function Unfinished({ at, of }: { at: Ref; of: Ingestion }) {
  const { pagesDone = 0, pagesTotal = 0, phase } = of.progress;
  return (
    <div className="max-w-190 rounded-md border border-line bg-surface p-4">
      <p role="status">{busy(of) ? (phase === 'waitingForModel' ? texts.waitingForModel : texts.running) : texts.unfinished[of.status as keyof typeof texts.unfinished]}</p>
      {busy(of) && <Bar className="mt-3" label={texts.progress} share={pagesTotal ? pagesDone / pagesTotal : 0} />}
      {busy(of) && pagesTotal > 0 && <p className="figure mt-2 text-sm text-text-3">{texts.pagesDone(count(pagesDone, 'page'), count(pagesTotal, 'page'))}</p>}
      {of.error && <p className="mt-2 text-sm text-danger [overflow-wrap:anywhere]">{of.error.message}</p>}
      {!busy(of) && (
        <Link to="/data/$owner/$namespace/$dataset/$tab" params={{ ...at, tab: 'loads' }} className={buttonClass('plain', 'mt-3')}>
          {texts.seeLoads}
        </Link>
      )}
    </div>
  );
}
