import { api, newKey, type Schemas, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { lengthOf, Meter, missingParts } from './parts';
import { confirm, type Confirmed, confirmed } from './remember';
import { PartError, type Send, send } from './send';

export type FileStatus = 'sending' | 'finishing' | 'done' | 'failed' | 'absent';

export type FileView = { id: string; name: string; size: number; sent: number; status: FileStatus; error?: unknown };

export type View = {
  sessionId: string;
  state: 'sending' | 'paused' | 'done' | 'failed';
  files: FileView[];
  size: number;
  sent: number;
  /** Bytes a second. */
  rate: number | undefined;
  /** Seconds. */
  left: number | undefined;
};

/** The operations that an upload needs. Tests give their own. */
export type Service = {
  prepare: (files: { filename: string; size: number }[]) => Promise<Schemas['PreparedUpload']>;
  read: (sessionId: string) => Promise<Schemas['Upload']>;
  renew: (sessionId: string, fileId: string, parts: number[]) => Promise<Schemas['UploadUrls']>;
  finish: (sessionId: string, fileId: string, body: Schemas['FinishUpload']) => Promise<unknown>;
  send: Send;
  /** Keeps that the store has taken a part, for a page that continues. */
  confirm: (part: Confirmed) => Promise<unknown>;
  confirmed: (sessionId: string) => Promise<Confirmed[]>;
  /** Milliseconds before a part is tried again. */
  wait: (attempt: number) => Promise<void>;
};

export const service: Service = {
  prepare: (files) => take(api.POST('/file-upload/prepare', { params: { header: { 'Idempotency-Key': newKey() } }, body: { filesToUpload: files } })),
  read: (sessionId) => take(api.GET('/file-upload/{sessionId}', { params: { path: { sessionId } } })),
  renew: (sessionId, fileId, partNumbers) => take(api.POST('/file-upload/{sessionId}/files/{fileId}/urls', { params: { path: { sessionId, fileId } }, body: { partNumbers } })),
  finish: (sessionId, fileId, body) => take(api.POST('/file-upload/{sessionId}/files/{fileId}/finish', { params: { path: { sessionId, fileId } }, body })),
  send,
  confirm,
  confirmed,
  wait: (attempt) => new Promise((resolve) => setTimeout(resolve, Math.min(15_000, 500 * 2 ** attempt) * (0.5 + Math.random() / 2))),
};

type Item = {
  id: string;
  uploadId: string;
  key: string;
  name: string;
  size: number;
  partSize: number;
  file: File | undefined;
  missing: number[];
  running: Map<number, number>;
  stored: number;
  urls: Map<number, string>;
  status: FileStatus;
  error?: unknown;
};

const atOnce = 4;
const attempts = 5;
/** Addresses of this many parts are asked for at once. */
const batch = 64;

/**
 * Sends files to the object store in parts, four at once, each as often as it takes. What the store has is asked of the service, never
 * assumed, and the ETags need no exposed header. Another page can continue a session; it sends again what no page of this browser saw arrive.
 */
export class UploadSession {
  readonly sessionId: string;
  readonly #items: Item[];
  readonly #service: Service;
  readonly #meter = new Meter();
  readonly #listeners = new Set<() => void>();
  #stop = new AbortController();
  #paused = false;
  #active = 0;
  #view: View;
  #timer: ReturnType<typeof setTimeout> | undefined;

  private constructor(sessionId: string, items: Item[], given: Service) {
    this.sessionId = sessionId;
    this.#items = items;
    this.#service = given;
    this.#view = this.#look();
  }

  /** Begins a new session. */
  static async start(files: readonly File[], given = service): Promise<UploadSession> {
    const prepared = await given.prepare(files.map((file) => ({ filename: file.name, size: file.size })));
    const items = prepared.files.map((one, index): Item => {
      const file = files[index];
      const size = file?.size ?? 0;
      return {
        id: one.fileId,
        uploadId: one.uploadId,
        key: one.key,
        name: one.filename,
        size,
        partSize: one.partSize,
        file,
        missing: missingParts(size, one.partSize, []),
        running: new Map(),
        stored: 0,
        urls: new Map(one.presignedUrls.map((address, at) => [at + 1, address.url])),
        status: 'sending',
      };
    });
    const session = new UploadSession(prepared.sessionId, items, given);
    session.#fill();
    return session;
  }

  /** Continues a session with the files that a person picked again. A file that was not picked stays absent. */
  static async resume(sessionId: string, files: readonly File[], given = service): Promise<UploadSession> {
    const [known, confirmed] = await Promise.all([given.read(sessionId), given.confirmed(sessionId)]);
    const items = known.files
      .filter((one) => one.fileStatus !== 'aborted')
      .map((one): Item => {
        const done = one.fileStatus === 'completed';
        const file = files.find((picked) => picked.name === one.filename && picked.size === one.size);
        // A store may list a part whose sender went away in its middle, in full size. So only parts count that it confirmed, of this very file.
        const sure = new Set(confirmed.filter((part) => part.fileId === one.fileId && part.modified === file?.lastModified).map((part) => part.partNumber));
        const parts = one.parts.filter((part) => sure.has(part.partNumber));
        return {
          id: one.fileId,
          uploadId: one.uploadId,
          key: one.key,
          name: one.filename,
          size: one.size,
          partSize: one.partSize,
          file,
          missing: done ? [] : missingParts(one.size, one.partSize, parts),
          running: new Map(),
          stored: done ? one.size : parts.reduce((sum, part) => sum + part.size, 0),
          urls: new Map(),
          status: done ? 'done' : file ? 'sending' : 'absent',
        };
      });
    const session = new UploadSession(sessionId, items, given);
    session.#fill();
    return session;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly view = (): View => this.#view;

  pause(): void {
    this.#paused = true;
    this.#meter.clear();
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#tell(true);
  }

  /** Continues after a pause, and tries failed files again. */
  resume(): void {
    this.#paused = false;
    for (const item of this.#items) {
      if (item.status !== 'failed') continue;
      item.status = 'sending';
      item.error = undefined;
    }
    this.#tell(true);
    this.#fill();
  }

  /** Stops for good; the session stays at the service, which removes it after a day. */
  dispose(): void {
    this.#paused = true;
    this.#stop.abort();
    clearTimeout(this.#timer);
    this.#listeners.clear();
  }

  #fill(): void {
    if (this.#paused) return;
    for (const item of this.#items) {
      while (this.#active < atOnce && item.status === 'sending' && item.missing.length > 0) {
        const number = item.missing.shift();
        if (number !== undefined) void this.#part(item, number);
      }
      if (item.status === 'sending' && item.missing.length === 0 && item.running.size === 0) void this.#finish(item);
    }
  }

  async #part(item: Item, number: number): Promise<void> {
    const { signal } = this.#stop;
    this.#active += 1;
    item.running.set(number, 0);
    const length = lengthOf(item.size, item.partSize, number);
    try {
      await this.#attempt(item, number, length, signal);
      item.stored += length;
      item.running.set(number, 0);
      // Before the next part takes this one's turn: then a page that continues repeats at most the parts of the turns, four.
      await this.#service.confirm({ sessionId: this.sessionId, fileId: item.id, partNumber: number, modified: item.file?.lastModified ?? 0 });
      item.running.delete(number);
    } catch (cause) {
      item.running.delete(number);
      item.missing.unshift(number);
      if (!signal.aborted && item.status === 'sending') {
        item.status = 'failed';
        item.error = cause;
      }
    } finally {
      this.#active -= 1;
      this.#tell(item.status === 'failed');
      this.#fill();
    }
  }

  async #attempt(item: Item, number: number, length: number, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      let before = 0;
      try {
        const url = await this.#address(item, number);
        const start = (number - 1) * item.partSize;
        if (!item.file) throw new Error('the file is not here');
        await this.#service.send(
          url,
          item.file.slice(start, start + length),
          (sent) => {
            this.#meter.add(sent - before);
            before = sent;
            item.running.set(number, sent);
            this.#tell();
          },
          signal,
        );
        return;
      } catch (cause) {
        item.running.set(number, 0);
        signal.throwIfAborted();
        const expired = cause instanceof PartError && cause.status === 403;
        const worth = cause instanceof PartError ? cause.status === 0 || cause.status >= 500 || cause.status === 429 || expired : cause instanceof ApiError && cause.temporary;
        if (expired) item.urls.clear();
        if (!worth || attempt + 1 >= attempts) throw cause;
        await this.#service.wait(attempt);
        signal.throwIfAborted();
      }
    }
  }

  async #address(item: Item, number: number): Promise<string> {
    const known = item.urls.get(number);
    if (known) return known;
    const wanted = [number, ...item.running.keys(), ...item.missing.slice(0, batch)];
    const fresh = await this.#service.renew(this.sessionId, item.id, [...new Set(wanted)]);
    for (const address of fresh.presignedUrls) item.urls.set(address.partNumber, address.url);
    return item.urls.get(number) ?? '';
  }

  async #finish(item: Item): Promise<void> {
    item.status = 'finishing';
    this.#tell(true);
    try {
      const known = (await this.#service.read(this.sessionId)).files.find((file) => file.fileId === item.id);
      if (known && known.fileStatus !== 'completed') {
        // The store may have lost a part that it had taken: what is missing is sent again.
        const missing = missingParts(item.size, item.partSize, known.parts);
        if (missing.length > 0) {
          item.missing = missing;
          item.stored = known.parts.reduce((sum, part) => sum + part.size, 0);
          item.status = 'sending';
          this.#fill();
          return;
        }
        await this.#service.finish(this.sessionId, item.id, {
          uploadId: item.uploadId,
          key: item.key,
          parts: known.parts.map(({ partNumber, etag }) => ({ partNumber, etag })).toSorted((a, b) => a.partNumber - b.partNumber),
        });
      }
      item.status = 'done';
      item.stored = item.size;
    } catch (cause) {
      item.status = 'failed';
      item.error = cause;
    }
    this.#tell(true);
  }

  #look(): View {
    const files = this.#items.map((item): FileView => {
      const sent = Math.min(item.size, item.stored + [...item.running.values()].reduce((sum, bytes) => sum + bytes, 0));
      return { id: item.id, name: item.name, size: item.size, sent, status: item.status, ...(item.error !== undefined && { error: item.error }) };
    });
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const sent = files.reduce((sum, file) => sum + file.sent, 0);
    const rate = this.#paused ? undefined : this.#meter.rate();
    const open = files.filter((file) => file.status === 'sending' || file.status === 'finishing');
    const state = files.every((file) => file.status === 'done') ? 'done' : this.#paused ? 'paused' : open.length > 0 ? 'sending' : 'failed';
    return { sessionId: this.sessionId, state, files, size, sent, rate, left: rate ? (size - sent) / rate : undefined };
  }

  /** Progress arrives far more often than an eye can follow. */
  #tell(now = false): void {
    const tell = () => {
      this.#timer = undefined;
      this.#view = this.#look();
      for (const listener of this.#listeners) listener();
    };
    if (now) {
      clearTimeout(this.#timer);
      tell();
    } else {
      this.#timer ??= setTimeout(tell, 200);
    }
  }
}
