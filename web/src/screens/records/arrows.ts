import type { KeyboardEvent } from 'react';

/** Moves between the choices of a list with the arrow keys, and chooses. They are the buttons with data-choice. */
export function onArrows(event: KeyboardEvent<HTMLElement>): void {
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>('[data-choice]')];
  const at = all.indexOf(event.target as HTMLElement);
  if (at < 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined) return;
  // Otherwise the browser scrolls the page, also when the list has no further choice.
  event.preventDefault();
  all[next]?.focus();
  all[next]?.click();
}
