import orders from '../../../internal/dev/sample/orders.csv?url';
import { api, newKey, type Schemas, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import type { Ref } from '~/api/queries';
import { t } from '~/texts';
import { UploadSession } from './session';

/** The sample has a namespace of its own, so that nobody's files get mixed with it. */
export const sampleNamespace = 'sample';
const place = { namespace: sampleNamespace, datasetName: 'orders' };

/** The operations that the sample needs. Tests give their own. */
export type Loader = {
  file: () => Promise<File>;
  /** Creates the dataset, or finds it; the answer says how many rows it has. */
  create: () => Promise<Schemas['Dataset']>;
  send: (file: File) => Promise<string>;
  load: (at: Ref, sessionId: string) => Promise<Schemas['Ingestion']>;
  read: (at: Ref, id: string) => Promise<Schemas['Ingestion']>;
  wait: () => Promise<void>;
};

const path = (at: Ref) => ({ username: at.owner, namespace: at.namespace, datasetName: at.dataset });

export const loader: Loader = {
  file: async () => {
    const answer = await fetch(orders);
    if (!answer.ok) throw new ApiError({ code: 'NETWORK', message: t.start.noFile });
    return new File([await answer.blob()], 'orders.csv', { type: 'text/csv' });
  },
  create: async () => {
    const body = { dataDescription: t.start.description, schemaDefinition: t.start.columns };
    try {
      return await take(api.POST('/ingest/new/{namespace}/{datasetName}', { params: { path: place, header: { 'Idempotency-Key': newKey() } }, body }));
    } catch (cause) {
      if (!(cause instanceof ApiError) || cause.code !== 'CONFLICT') throw cause;
      return take(api.GET('/data/{username}/{namespace}/{datasetName}', { params: { path: { username: 'self', ...place } } }));
    }
  },
  send: sent,
  load: (at, sessionId) =>
    take(
      api.POST('/data/{username}/{namespace}/{datasetName}/ingestions', {
        params: { path: path(at), header: { 'Idempotency-Key': newKey() } },
        // Amounts of money are exact. Replacing the rows of an empty dataset can be repeated.
        body: { sessionId, mode: 'replace', options: { types: { amount: 'decimal(12,2)' } }, accept: ['all'] },
      }),
    ),
  read: (at, id) => take(api.GET('/data/{username}/{namespace}/{datasetName}/ingestions/{ingestionId}', { params: { path: { ...path(at), ingestionId: id } } })),
  wait: () => new Promise((resolve) => setTimeout(resolve, 400)),
};

/** Sends a file as the upload screen does, and waits until the store has it. */
async function sent(file: File): Promise<string> {
  const session = await UploadSession.start([file]);
  return new Promise((resolve, reject) => {
    const look = () => {
      const { state, files } = session.view();
      if (state === 'sending') return;
      session.dispose();
      if (state === 'done') resolve(session.sessionId);
      else reject(files.find((one) => one.error !== undefined)?.error ?? new Error('the upload stopped'));
    };
    session.subscribe(look);
    look();
  });
}

/** Loads the sample by the same way as a file of a person, and returns where it is. Rows that are there already stay. */
export async function loadSample(given: Loader = loader): Promise<Ref> {
  const { dataset, metadata } = await given.create();
  const at: Ref = { owner: dataset.owner, namespace: dataset.namespace, dataset: dataset.name };
  if (metadata.rowCount > 0) return at;
  let load = await given.load(at, await given.send(await given.file()));
  while (load.status === 'queued' || load.status === 'running') {
    await given.wait();
    load = await given.read(at, load.id);
  }
  if (load.status === 'completed') return at;
  throw new ApiError({ code: 'UNAVAILABLE', message: load.error?.message ?? t.start.notLoaded });
}
