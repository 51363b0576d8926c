import { type Dispatch, type SetStateAction, useEffect, useState } from 'react';

const prefix = 'quern.kept.';

/** What was kept under a key, laid over the initial value, so that a field that an older page did not know has its initial value. */
export function kept<T>(key: string, initial: T): T {
  try {
    const found: unknown = JSON.parse(sessionStorage.getItem(prefix + key) ?? 'null');
    if (found === null || typeof found !== typeof initial) return initial;
    return typeof found === 'object' ? { ...initial, ...found } : (found as T);
  } catch {
    return initial;
  }
}

/** State of this tab that survives a reload of the page. */
export function useKept<T extends string | object>(key: string, initial: T): [T, Dispatch<SetStateAction<T>>] {
  const [value, setValue] = useState(() => kept(key, initial));
  useEffect(() => {
    try {
      sessionStorage.setItem(prefix + key, JSON.stringify(value));
    } catch {
      // A browser that keeps nothing, or no more, is not in the way of the work.
    }
  }, [key, value]);
  return [value, setValue];
}
