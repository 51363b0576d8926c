import { must, raw } from './client';

/**
 * Downloads a file of the API. A large export is written by a job first (202 with Retry-After), and is then delivered by the object
 * store: fetch has followed the redirect without the token, so the browser downloads that address itself.
 */
export async function download(path: string, filename: string, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const response = await must(await raw(path, signal ? { signal } : {}));
    if (response.status === 202) {
      await response.body?.cancel();
      await pause(Number(response.headers.get('Retry-After') ?? 2) * 1000, signal);
      continue;
    }
    if (response.redirected) {
      await response.body?.cancel();
      location.assign(response.url);
      return;
    }
    save(await response.blob(), filename);
    return;
  }
}

/** Lets the browser save what the page has in memory. */
export function save(content: Blob, filename: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function pause(time: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, time);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}
