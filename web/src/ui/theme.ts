import { useSyncExternalStore } from 'react';

export type Theme = 'system' | 'light' | 'dark';
const key = 'quern.theme';
const listeners = new Set<() => void>();

export function theme(): Theme {
  const value = localStorage.getItem(key);
  return value === 'light' || value === 'dark' ? value : 'system';
}

export function setTheme(value: Theme): void {
  if (value === 'system') localStorage.removeItem(key);
  else localStorage.setItem(key, value);
  applyTheme();
  for (const listener of listeners) listener();
}

export function applyTheme(): void {
  const value = theme();
  if (value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = value;
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, theme);
}
