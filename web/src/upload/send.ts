/** A part that the store refused or that did not get through. */
export class PartError extends Error {
  override name = 'PartError';
  /** 0 if there was no answer. */
  readonly status: number;

  constructor(status: number) {
    super(status === 0 ? 'It could not be reached.' : `It answered with status ${status}.`);
    this.status = status;
  }
}

export type Send = (url: string, body: Blob, onProgress: (sent: number) => void, signal: AbortSignal) => Promise<void>;

/** Sends one part straight to the object store. XMLHttpRequest, because fetch does not say how much of a body has gone out. */
export const send: Send = (url, body, onProgress, signal) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    signal.addEventListener('abort', stop);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onload = () => (request.status >= 200 && request.status < 300 ? resolve() : reject(new PartError(request.status)));
    request.onerror = () => reject(new PartError(0));
    request.ontimeout = () => reject(new PartError(0));
    request.onabort = () => reject(new DOMException('stopped', 'AbortError'));
    request.onloadend = () => signal.removeEventListener('abort', stop);
    request.open('PUT', url);
    request.send(body);
  });
