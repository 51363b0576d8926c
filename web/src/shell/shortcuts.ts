import { useEffect, useRef } from 'react';

type Actions = { palette: () => void; keys: () => void; go: (to: string) => void };

const places: Record<string, string> = { a: '/', d: '/data', s: '/sql', u: '/upload' };

/** The keys that work everywhere. A screen marks the box that `/` goes to with data-slash. */
export function useShortcuts(actions: Actions): void {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    let leading = 0;
    const down = (event: KeyboardEvent) => {
      if (event.isComposing || event.defaultPrevented) return;
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        latest.current.palette();
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target) || document.querySelector('dialog[open]')) return;
      const place = performance.now() - leading < 1000 ? places[event.key] : undefined;
      leading = 0;
      if (place) {
        latest.current.go(place);
      } else if (event.key === 'g') {
        leading = performance.now();
      } else if (event.key === '?') {
        latest.current.keys();
      } else if (event.key === '/') {
        const box = document.querySelector<HTMLElement>('[data-slash]');
        event.preventDefault();
        if (box) box.focus();
        else latest.current.palette();
      }
    };
    window.addEventListener('keydown', down);
    return () => window.removeEventListener('keydown', down);
  }, []);
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) || target.shadowRoot !== null);
}
