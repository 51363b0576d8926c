import { lazy, type Ref, Suspense } from 'react';
import { retried } from '~/lazy';
import { cx } from './cx';

const Core = lazy(() => retried(() => import('./EditorCore')));

export type Suggestion = { label: string; insert: string; kind: 'column' | 'dataset' | 'namespace' | 'function' | 'keyword'; detail: string; /** −1 to 3; the highest comes first. */ rank?: number };

export type Completions = {
  /** Where the text begins that a suggestion replaces. */
  from: number;
  options: readonly Suggestion[];
  /** As long as the text matches, the same suggestions are filtered. */
  whole: RegExp;
  /** Whether something was typed already. Otherwise suggestions appear only if they are asked for. */
  typed: boolean;
};

export type Marked = { from: number; to: number; message: string };

/** What a screen does with an editor beside its text. */
export type EditorHandle = {
  focus: () => void;
  /** What stands in it now, also if the screen was not drawn since. */
  text: () => string | undefined;
  selection: () => { from: number; to: number };
  select: (from: number, to?: number) => void;
  /** Changes the whole text. */
  set: (text: string) => void;
  /** Changes a part as if it were typed, so that it can be undone. */
  replace: (from: number, to: number, text: string) => void;
};

export type EditorProps = {
  /** The text at first. Afterwards the editor has it: change it with `set`. */
  value: string;
  onChange: (value: string) => void;
  /** ⌘ or Ctrl with Enter. */
  onRun?: () => void;
  label: string;
  complete?: (text: string, at: number) => Promise<Completions | null>;
  /** What is wrong, and where. */
  fault?: Marked | undefined;
  placeholder?: string;
  autoFocus?: boolean;
  className?: string;
  ref?: Ref<EditorHandle>;
};

/** An editor for SQL. Its code is loaded when it is first shown; the text is there at once. */
export function Editor(props: EditorProps) {
  return (
    <div className={cx('overflow-hidden', props.className)}>
      <Suspense fallback={<pre className="h-full overflow-hidden py-3 pr-4 pl-12 font-mono text-(length:--code-size) leading-(--code-line) [overflow-wrap:anywhere] whitespace-break-spaces">{props.value}</pre>}>
        <Core {...props} />
      </Suspense>
    </div>
  );
}
