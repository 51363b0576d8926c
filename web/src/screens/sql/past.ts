import { useSyncExternalStore } from 'react';

export type Outcome = { state: 'running' | 'cancelled' | 'kept' | 'long' } | { state: 'done'; rows: number; ms: number } | { state: 'failed'; message: string };

/** A statement that was run, or one that gave way to another. Values of parameters and rows are not kept. */
export type Entry = { id: string; query: string; owner: string; namespace: string | undefined; at: string; outcome: Outcome };

const most = 100;
const longest = 400_000;

/** The list with an entry in front. The same statement run again takes the place of its last run; the oldest go first. */
export function withEntry(entries: readonly Entry[], entry: Entry): Entry[] {
  const others = entries.filter((one) => one.id !== entry.id && !(one.query === entry.query && one.owner === entry.owner && one.namespace === entry.namespace));
  let room = longest - entry.query.length;
  return [entry, ...others.slice(0, most - 1).filter((one) => (room -= one.query.length) >= 0)];
}

/** The list after a run has ended. The run may not be there any more. */
export function withOutcome(entries: readonly Entry[], id: string, outcome: Outcome): Entry[] {
  return entries.map((one) => (one.id === id ? { ...one, outcome } : one));
}

const keyOf = (account: string) => `quern.sql.history.${account}`;
const none: Entry[] = [];
const listeners = new Set<() => void>();
let read: { account: string; text: string | null; entries: Entry[] } | undefined;

/** Reads what is stored, which another tab may have changed. */
export function historyOf(account: string): Entry[] {
  const text = localStorage.getItem(keyOf(account));
  if (read?.account !== account || read.text !== text) read = { account, text, entries: parse(text) };
  return read.entries;
}

function parse(text: string | null): Entry[] {
  try {
    const stored: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(stored) ? (stored as Entry[]).filter((one) => typeof one?.query === 'string' && typeof one.id === 'string' && typeof one.outcome?.state === 'string') : none;
  } catch {
    return none;
  }
}

export function remember(account: string, change: (entries: Entry[]) => Entry[]): void {
  try {
    localStorage.setItem(keyOf(account), JSON.stringify(change(historyOf(account))));
  } catch {
    // The storage is full or forbidden: statements run all the same.
  }
  for (const listener of listeners) listener();
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}

export function useHistory(account: string): Entry[] {
  return useSyncExternalStore(listen, () => historyOf(account));
}
