import { ArrowUp, AtSign, Folder, LoaderCircle, Table2, X } from 'lucide-react';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { count } from '~/format/number';
import { t } from '~/texts';
import { cx } from '~/ui/cx';
import { Menu } from '~/ui/Menu';
import type { Where } from './runs';
import type { Named } from './scope';

const longest = 10_000;

/** The box for a question: Enter asks, Shift Enter makes a line, @ names a dataset. */
export function Box({
  where,
  choices = [],
  datasets,
  chips,
  onChips,
  onWhere,
  onAsk,
  busy,
  autoFocus = false,
  value,
  onValue,
  label = t.ask.box,
  placeholder = t.ask.placeholder,
  large = false,
}: {
  where: Where | undefined;
  /** The namespaces to choose from; none if the question belongs to a conversation. */
  choices?: Where[];
  datasets: Named[];
  chips: Named[];
  onChips: (chips: Named[]) => void;
  onWhere?: (where: Where) => void;
  onAsk: () => void;
  busy: boolean;
  autoFocus?: boolean;
  value: string;
  onValue: (text: string) => void;
  label?: string;
  placeholder?: string;
  large?: boolean;
}) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [mention, setMention] = useState<{ from: number; to: number; words: string } | null>(null);
  const [at, setAt] = useState(0);
  const local = datasets.filter((one) => one.username === where?.username && one.namespace === where.namespace);
  const pool = [...local, ...datasets.filter((one) => !local.includes(one))];
  const found = mention ? pool.filter((one) => one.name.toLowerCase().includes(mention.words.toLowerCase()) && !chips.includes(one)).slice(0, 8) : [];
  const ready = value.trim() !== '' && value.length <= longest && where !== undefined && !busy;

  useEffect(() => {
    if (autoFocus) area.current?.focus({ preventScroll: true });
  }, [autoFocus]);
  useEffect(() => {
    // As high as its lines, up to a third of the window.
    const box = area.current;
    if (!box) return;
    box.style.height = 'auto';
    box.style.height = `${Math.min(box.scrollHeight, innerHeight / 3)}px`;
  }, [value]);

  const look = () => {
    const box = area.current;
    const caret = box?.selectionStart ?? 0;
    const word = /(?:^|\s)@([\p{L}\p{N}_.-]*)$/u.exec(value.slice(0, caret));
    setMention(word && box?.selectionEnd === caret ? { from: caret - (word[1]?.length ?? 0) - 1, to: caret, words: word[1] ?? '' } : null);
    setAt(0);
  };
  useEffect(look, [value]);

  const add = (one: Named) => {
    if (!chips.includes(one)) onChips([...chips, one]);
    if (mention) {
      onValue(`${value.slice(0, mention.from)}${one.name} ${value.slice(mention.to).trimStart()}`);
      setMention(null);
    }
    area.current?.focus();
  };
  const keys = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    if (mention && found.length > 0) {
      const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        setAt((to + found.length) % found.length);
        return;
      }
      const chosen = found[at];
      if ((event.key === 'Enter' || event.key === 'Tab') && chosen) {
        event.preventDefault();
        add(chosen);
        return;
      }
    }
    if (event.key === 'Escape' && mention) {
      event.stopPropagation();
      setMention(null);
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      if (ready) onAsk();
    } else if (event.key === 'Backspace' && value === '' && chips.length > 0) {
      onChips(chips.slice(0, -1));
    }
  };
  const pill = 'inline-flex h-7 max-w-full min-w-0 items-center gap-1.5 rounded-md px-2 text-sm text-text-2 transition-colors duration-120 hover:bg-hover hover:text-text pointer-coarse:h-11';

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) onAsk();
      }}
      className="relative rounded-lg border border-control bg-surface transition-colors duration-120 focus-within:border-info focus-within:outline-1 focus-within:outline-info"
    >
      <textarea
        ref={area}
        data-slash
        rows={large ? 2 : 1}
        value={value}
        aria-label={label}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={mention ? `${id}-list` : undefined}
        aria-activedescendant={mention && found.length > 0 ? `${id}-${at}` : undefined}
        placeholder={placeholder}
        onChange={(event) => onValue(event.target.value)}
        onKeyDown={keys}
        onClick={look}
        onBlur={() => setMention(null)}
        className={cx('block w-full resize-none bg-transparent px-4 outline-none placeholder:text-text-3', large ? 'pt-4 pb-2 text-lg' : 'pt-3 pb-1 text-base pointer-coarse:text-lg')}
      />
      <div className="flex items-end gap-2 px-2 pb-2">
        <div className="flex min-w-0 grow flex-wrap items-center gap-1">
          {choices.length > 1 && (
            <Menu
              align="start"
              className={pill}
              items={choices.map((choice) => ({
                label: choice.username === where?.username && choice.namespace === where.namespace ? choice.namespace : `${choice.namespace}`,
                hint: t.ask.scope.of(choice.username),
                checked: choice.username === where?.username && choice.namespace === where.namespace,
                onSelect: () => {
                  onWhere?.(choice);
                  onChips([]);
                  area.current?.focus();
                },
              }))}
            >
              <Folder size={16} strokeWidth={1.75} aria-hidden className="shrink-0" />
              <span className="sr-only">{t.ask.scope.label}</span>
              <span className="truncate">{where?.namespace ?? t.ask.scope.choose}</span>
            </Menu>
          )}
          {chips.map((chip) => (
            <span key={`${chip.username}/${chip.namespace}/${chip.name}`} className="inline-flex h-7 max-w-full min-w-0 items-center gap-1 rounded-md bg-accent-soft pl-2 text-sm text-accent pointer-coarse:h-11">
              <Table2 size={14} strokeWidth={1.75} aria-hidden className="shrink-0" />
              <span className="truncate">{chip.name}</span>
              <button type="button" aria-label={t.ask.scope.remove(chip.name)} onClick={() => onChips(chips.filter((other) => other !== chip))} className="flex size-7 items-center justify-center rounded-md hover:bg-surface pointer-coarse:size-11">
                <X size={14} strokeWidth={1.75} aria-hidden />
              </button>
            </span>
          ))}
          {local.length > chips.length && (
            <Menu align="start" className={pill} items={local.filter((one) => !chips.includes(one)).slice(0, 50).map((one) => ({ label: one.name, icon: Table2, hint: count(one.rowCount, 'row'), onSelect: () => add(one) }))}>
              <AtSign size={16} strokeWidth={1.75} aria-hidden className="shrink-0" />
              {chips.length > 0 ? t.ask.scope.add : choices.length === 0 && where ? t.ask.scope.allOf(where.namespace) : t.ask.scope.all}
              <span className="sr-only">: {t.ask.scope.addLabel}</span>
            </Menu>
          )}
        </div>
        {value.length > longest && (
          <p role="alert" className="self-center text-xs text-danger">
            {t.ask.tooLong}
          </p>
        )}
        <button
          type="submit"
          disabled={!ready}
          aria-label={t.ask.send}
          title={t.ask.send}
          className="flex size-8 shrink-0 items-center justify-center rounded-md bg-accent text-on-accent transition-colors duration-120 hover:bg-accent-hover disabled:bg-sunken disabled:text-text-3 pointer-coarse:size-11"
        >
          {busy ? <LoaderCircle size={16} strokeWidth={1.75} aria-hidden className="spin" /> : <ArrowUp size={16} strokeWidth={2} aria-hidden />}
        </button>
      </div>
      {mention && (
        <div className={cx('absolute left-2 z-10 w-80 max-w-[calc(100%-16px)] rounded-md border border-line bg-raised p-1 shadow-lift', large ? 'top-full mt-1' : 'bottom-full mb-1')}>
          <ul id={`${id}-list`} role="listbox" aria-label={t.ask.scope.found}>
            {found.map((one, index) => (
              <li
                key={`${one.username}/${one.namespace}/${one.name}`}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === at}
                onMouseDown={(event) => {
                  event.preventDefault();
                  add(one);
                }}
                onMouseEnter={() => setAt(index)}
                className={cx('flex h-8 cursor-pointer items-center gap-2 rounded-sm px-2 pointer-coarse:h-11', index === at && 'bg-hover outline-1 -outline-offset-1 outline-control')}
              >
                <Table2 size={16} strokeWidth={1.75} aria-hidden className="shrink-0 text-text-3" />
                <span className="min-w-0 grow truncate">
                  {!local.includes(one) && <span className="text-text-3">{one.namespace} / </span>}
                  {one.name}
                </span>
                <span className="shrink-0 text-xs text-text-3">{count(one.rowCount, 'row')}</span>
              </li>
            ))}
          </ul>
          {found.length === 0 && <p className="px-2 py-1 text-text-2">{t.ask.scope.none}</p>}
        </div>
      )}
    </form>
  );
}
