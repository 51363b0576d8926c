/** What a later visit needs to continue an upload. The file itself stays with the person, who picks it again. */
export type Remembered = {
  sessionId: string;
  startedAt: number;
  into: string;
  files: { fileId: string; name: string; size: number; modified: number }[];
};

/** A part that the store has confirmed to this browser, of the file as it was then. */
export type Confirmed = { sessionId: string; fileId: string; partNumber: number; modified: number };

function database(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('quern', 2);
    request.onupgradeneeded = () => {
      const { result } = request;
      if (!result.objectStoreNames.contains('uploads')) result.createObjectStore('uploads', { keyPath: 'sessionId' });
      if (!result.objectStoreNames.contains('parts')) result.createObjectStore('parts', { keyPath: ['sessionId', 'fileId', 'partNumber'] });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('the browser keeps no data'));
    // A tab with an older page has it open; it closes after each use, so this cannot last.
    request.onblocked = () => reject(new Error('the browser keeps no data now'));
  });
}

async function run<T>(name: 'uploads' | 'parts', mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opened = await database();
  try {
    return await new Promise<T>((resolve, reject) => {
      const transaction = opened.transaction(name, mode);
      const request = work(transaction.objectStore(name));
      // Only what is committed survives a reload.
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error ?? new Error('the browser keeps no data'));
    });
  } finally {
    opened.close();
  }
}

/** The keys of all parts of a session: an array is after every string. */
const partsOf = (sessionId: string) => IDBKeyRange.bound([sessionId], [sessionId, []]);

/** Keeping is a comfort: in a private window, where it may fail, the upload goes on without it. */
export const remember = (upload: Remembered): Promise<unknown> => run('uploads', 'readwrite', (store) => store.put(upload)).catch(() => undefined);
export const remembered = (): Promise<Remembered[]> => run<Remembered[]>('uploads', 'readonly', (store) => store.getAll() as IDBRequest<Remembered[]>).catch(() => []);
export const confirm = (part: Confirmed): Promise<unknown> =>
  // The next part waits for it, but not for a browser that does not answer.
  Promise.race([run('parts', 'readwrite', (store) => store.put(part)), new Promise((resolve) => setTimeout(resolve, 2000))]).catch(() => undefined);
export const confirmed = (sessionId: string): Promise<Confirmed[]> => run<Confirmed[]>('parts', 'readonly', (store) => store.getAll(partsOf(sessionId)) as IDBRequest<Confirmed[]>).catch(() => []);

export async function forget(sessionId: string): Promise<void> {
  await run('uploads', 'readwrite', (store) => store.delete(sessionId)).catch(() => undefined);
  await run('parts', 'readwrite', (store) => store.delete(partsOf(sessionId))).catch(() => undefined);
}
