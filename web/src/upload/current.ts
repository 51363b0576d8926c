import { useSyncExternalStore } from 'react';
import { useUnsaved } from '~/unsaved';
import type { UploadSession, View } from './session';

/** The upload of this tab. It goes on while the person looks at other screens. */
let current: UploadSession | null = null;
const listeners = new Set<() => void>();
let detach: (() => void) | undefined;

function tell(): void {
  for (const listener of listeners) listener();
}

export function setUpload(session: UploadSession | null): void {
  detach?.();
  if (current !== session) current?.dispose();
  current = session;
  detach = session?.subscribe(tell);
  tell();
}

export function upload(): UploadSession | null {
  return current;
}

/** Files that another screen took from the person, for the upload screen to send. */
let offered: File[] = [];

export function offer(files: File[]): void {
  offered = files;
}

export function takeOffered(): File[] {
  const files = offered;
  offered = [];
  return files;
}

const view = (): View | null => current?.view() ?? null;

export function useUpload(): View | null {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, view);
}

/** Warns before a page with an unfinished upload is left. Belongs into the shell, which is always there. */
export function useUploadGuard(): View | null {
  const now = useUpload();
  useUnsaved(now !== null && (now.state === 'sending' || now.state === 'paused'));
  return now;
}
