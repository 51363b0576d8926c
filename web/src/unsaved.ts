import { useEffect } from 'react';

/** What would be lost if the page were left now. While there is something, nothing reloads or leaves the page by itself. */
const held = new Set<symbol>();

export function somethingUnsaved(): boolean {
  return held.size > 0;
}

export function useUnsaved(unsaved: boolean): void {
  useEffect(() => {
    if (!unsaved) return;
    const mine = Symbol();
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    held.add(mine);
    window.addEventListener('beforeunload', warn);
    return () => {
      held.delete(mine);
      window.removeEventListener('beforeunload', warn);
    };
  }, [unsaved]);
}
