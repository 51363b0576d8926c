/** What a later visit needs to continue an upload. The file itself stays with the person, who picks it again. */
export type Remembered = {
  sessionId: string;
  startedAt: number;
  into: string;
  files: { fileId: string; name: string; size: number; modified: number }[];
};

function database(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('quern', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('uploads', { keyPath: 'sessionId' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('the browser keeps no data'));
  });
}

async function run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opened = await database();
  try {
    return await new Promise<T>((resolve, reject) => {
      const request = work(opened.transaction('uploads', mode).objectStore('uploads'));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error ?? new Error('the browser keeps no data'));
    });
  } finally {
    opened.close();
  }
}

/** Keeping is a comfort: in a private window, where it may fail, the upload goes on without it. */
export const remember = (upload: Remembered): Promise<unknown> => run('readwrite', (store) => store.put(upload)).catch(() => undefined);
export const forget = (sessionId: string): Promise<unknown> => run('readwrite', (store) => store.delete(sessionId)).catch(() => undefined);
export const remembered = (): Promise<Remembered[]> => run<Remembered[]>('readonly', (store) => store.getAll() as IDBRequest<Remembered[]>).catch(() => []);
