import { Search } from 'lucide-react';
import { type KeyboardEvent, lazy, Suspense, useId, useRef, useState } from 'react';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { useModal } from '~/ui/Dialog';
import type { Chosen, ListHandle } from './PaletteList';

const List = lazy(() => retried(() => import('./PaletteList')));

/** A field whose arrow keys choose from a list below it. It is there at once: what is typed while the code of the list is loaded counts, Enter too. */
export function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const id = useId();
  const list = useRef<ListHandle>(null);
  const [words, setWords] = useState('');
  const [chosen, setChosen] = useState<Chosen>();
  // Enter waits for the list: it opens what was found for the words, not what stood there before.
  const [entered, setEntered] = useState(false);
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter') setEntered(true);
    else if (!list.current?.press(event.key)) return;
    event.preventDefault();
  };
  return (
    <dialog
      {...useModal(onClose)}
      aria-label={t.palette.label}
      className="appear mx-auto mt-[12vh] mb-auto w-[calc(100vw-32px)] max-w-160 overflow-hidden rounded-lg border border-line bg-raised p-0 text-text shadow-lift"
    >
      <div className="flex items-center gap-3 border-b border-line px-4">
        <Search size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
        <input
          autoFocus
          role="combobox"
          aria-label={t.palette.label}
          aria-autocomplete="list"
          aria-expanded={chosen !== undefined}
          aria-controls={id}
          aria-activedescendant={chosen}
          autoComplete="off"
          spellCheck={false}
          value={words}
          onChange={(event) => {
            setWords(event.target.value);
            setEntered(false);
          }}
          onKeyDown={press}
          maxLength={200}
          placeholder={t.palette.placeholder}
          className="h-12 min-w-0 grow bg-transparent text-lg outline-none placeholder:text-text-3"
        />
      </div>
      <Suspense>
        <List ref={list} id={id} words={words} entered={entered} onEntered={() => setEntered(false)} onChosen={setChosen} onClose={onClose} onKeys={onKeys} />
      </Suspense>
      <p aria-hidden className="hidden gap-4 border-t border-line px-4 py-2 text-xs text-text-3 sm:flex">
        <span>↑ ↓ {t.palette.hint.move}</span>
        <span>↵ {t.palette.hint.open}</span>
        <span>Esc {t.palette.hint.close}</span>
      </p>
    </dialog>
  );
}
