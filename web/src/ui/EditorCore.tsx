import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, type Completion, type CompletionContext, type CompletionResult, completionKeymap, pickedCompletion } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { sql, SQLDialect } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorState, Prec, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useImperativeHandle, useRef } from 'react';
import { t } from '~/texts';
import type { EditorProps, Marked } from './Editor';
import { functions, keywords } from './sqlWords';

const dialect = SQLDialect.define({
  keywords: [...new Set(keywords.join(' ').toLowerCase().split(' ')), 'outer', 'natural', 'positional', 'semi', 'anti', 'window', 'lateral', 'escape', 'similar', 'sample', 'tables', 'analyze'].join(' '),
  builtin: functions.map(([name]) => name).join(' '),
  types: 'bigint blob boolean bool date decimal double float hugeint int integer interval json list map numeric real smallint struct text time timestamp timestamptz tinyint ubigint uinteger uuid varchar',
  operatorChars: '*+-%<>!=&|~^/:',
  specialVar: '$?',
  identifierQuotes: '"',
  caseInsensitiveIdentifiers: true,
});

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null], color: 'var(--info)', fontWeight: '500' },
  { tag: tags.string, color: 'var(--ok)' },
  { tag: tags.special(tags.string), color: 'var(--text)' },
  { tag: tags.number, color: 'var(--warn)' },
  { tag: tags.special(tags.name), color: 'var(--danger)', fontWeight: '500' },
  { tag: tags.comment, color: 'var(--text-3)', fontStyle: 'italic' },
  { tag: [tags.operator, tags.punctuation, tags.paren], color: 'var(--text-2)' },
]);

const look = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'transparent', color: 'var(--text)', fontSize: 'var(--code-size)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: 'var(--code-line)', overflow: 'auto' },
  '.cm-content': { padding: '12px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 16px 0 8px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--text-3)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 4px 0 12px', minWidth: '40px' },
  '&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter': { backgroundColor: 'color-mix(in oklab, var(--sunken) 60%, transparent)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '.cm-content ::selection': { backgroundColor: 'color-mix(in oklab, var(--accent) 28%, transparent)' },
  '.cm-placeholder': { color: 'var(--text-3)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)', outline: '1px solid var(--accent)' },
  '.cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'var(--danger-soft)' },
  '.cm-fault': { textDecoration: 'underline wavy var(--danger)', textUnderlineOffset: '4px', backgroundColor: 'var(--danger-soft)', borderRadius: '2px' },
  '.cm-tooltip': { border: '1px solid var(--line)', borderRadius: '8px', backgroundColor: 'var(--raised)', color: 'var(--text)', boxShadow: 'var(--lift)', overflow: 'hidden' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--font-sans)', maxHeight: '240px', minWidth: '240px', maxWidth: 'min(440px, 90vw)', padding: '4px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { display: 'flex', alignItems: 'center', gap: '8px', height: '28px', padding: '0 8px', borderRadius: '4px', lineHeight: '28px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-completionLabel': { overflow: 'hidden', textOverflow: 'ellipsis' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600', color: 'var(--accent)' },
  '.cm-completionDetail': { marginLeft: '0', fontStyle: 'normal', fontSize: '12px', color: 'var(--text-2)', overflow: 'hidden', textOverflow: 'ellipsis', flexShrink: '1' },
  '.cm-kind': { marginLeft: 'auto', paddingLeft: '12px', fontSize: '12px', color: 'var(--text-2)' },
});

/** A suggestion with what stands at its right edge. */
type Shown = Completion & { aside: string };

/** Puts a function in, with the cursor between its parentheses. */
function call(editor: EditorView, option: Completion, from: number, to: number): void {
  const open = editor.state.sliceDoc(to, to + 1) === '(';
  editor.dispatch({
    changes: { from, to, insert: open ? option.label : `${option.label}()` },
    selection: { anchor: from + option.label.length + 1 },
    annotations: pickedCompletion.of(option),
    userEvent: 'input.complete',
  });
}

/**
 * Text that replaces a selection is put in here: the browser itself would keep the look of what was there with a style attribute,
 * which the policy reports.
 */
function typeOver(event: InputEvent, editor: EditorView): boolean {
  const { from, to, empty } = editor.state.selection.main;
  const text = event.data;
  if (event.inputType !== 'insertText' || text === null || empty || editor.composing || event.isComposing) return false;
  event.preventDefault();
  const insert = () => editor.state.update(editor.state.replaceSelection(text), { userEvent: 'input.type', scrollIntoView: true });
  if (!editor.state.facet(EditorView.inputHandler).some((handle) => handle(editor, from, to, text, insert))) editor.dispatch(insert());
  return true;
}

const setFault = StateEffect.define<Marked | undefined>();

/** The underlined fault. It moves with the text and goes when what it marks is changed. */
const faults = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    let next = marks.map(change.changes);
    change.changes.iterChangedRanges((from, to) => {
      marks.between(from, to, () => {
        next = Decoration.none;
        return false;
      });
    });
    for (const effect of change.effects) {
      if (!effect.is(setFault)) continue;
      const fault = effect.value;
      const to = Math.min(fault?.to ?? 0, change.state.doc.length);
      next = fault && fault.from < to ? Decoration.set(Decoration.mark({ class: 'cm-fault', attributes: { title: fault.message } }).range(fault.from, to)) : Decoration.none;
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/**
 * CodeMirror in a shadow root: there it adds its styles as constructed sheets, which the policy allows, and not as style elements.
 * Custom properties reach into the root, so the colours follow the theme by themselves.
 */
export default function EditorCore({ value, onChange, onRun, label, complete, fault, placeholder: hint, autoFocus = false, ref }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const latest = useRef({ onChange, onRun, complete });
  useEffect(() => {
    latest.current = { onChange, onRun, complete };
  });

  useEffect(() => {
    const at = host.current;
    if (!at) return;
    const root = at.shadowRoot ?? at.attachShadow({ mode: 'open' });
    const suggest = async (context: CompletionContext): Promise<CompletionResult | null> => {
      const found = await latest.current.complete?.(context.state.doc.toString(), context.pos);
      if (!found || context.aborted || !(found.typed || context.explicit)) return null;
      const typed = context.state.sliceDoc(found.from, context.pos);
      const ready = new Set(found.options.map(({ insert }) => insert));
      // A word that is complete gets no suggestion: Enter after it ends the line.
      if (ready.has(typed)) return null;
      return {
        from: found.from,
        validFor: (text) => found.whole.test(text) && !ready.has(text),
        options: found.options.map(
          (one, index): Shown => ({
            label: one.label,
            apply: one.kind === 'function' ? call : one.insert,
            ...(one.kind === 'column' ? {} : { detail: one.detail }),
            aside: one.kind === 'column' ? one.detail : t.editor.kinds[one.kind],
            boost: (one.rank ?? 0) * 20,
            sortText: String(index).padStart(6, '0'),
          }),
        ),
      };
    };
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          Prec.highest(
            keymap.of([
              {
                key: 'Mod-Enter',
                run: (editor) => {
                  closeCompletion(editor);
                  latest.current.onRun?.();
                  return latest.current.onRun !== undefined;
                },
              },
              { key: 'Tab', run: acceptCompletion },
            ]),
          ),
          lineNumbers(),
          history(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          bracketMatching(),
          closeBrackets(),
          sql({ dialect }),
          syntaxHighlighting(colors),
          look,
          faults,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', autocapitalize: 'off' }),
          placeholder(hint ?? ''),
          autocompletion({
            override: [suggest],
            icons: false,
            maxRenderedOptions: 60,
            addToOptions: [
              {
                position: 90,
                render: (option) => {
                  const mark = document.createElement('span');
                  mark.className = 'cm-kind';
                  mark.textContent = (option as Shown).aside;
                  return mark;
                },
              },
            ],
          }),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.domEventHandlers({ beforeinput: typeOver }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    if (autoFocus) editor.focus();
    return () => {
      view.current = null;
      editor.destroy();
    };
    // From now on the editor has the text. To push a later value in could undo what was typed since.
  }, [label, hint]);

  useEffect(() => {
    view.current?.dispatch({ effects: setFault.of(fault) });
  }, [fault]);

  useImperativeHandle(ref, () => ({
    focus: () => view.current?.focus(),
    text: () => view.current?.state.doc.toString(),
    selection: () => {
      const main = view.current?.state.selection.main;
      return { from: main?.from ?? 0, to: main?.to ?? 0 };
    },
    select: (from, to = from) => {
      const editor = view.current;
      if (!editor) return;
      const most = editor.state.doc.length;
      editor.dispatch({ selection: { anchor: Math.min(from, most), head: Math.min(to, most) }, scrollIntoView: true });
      editor.focus();
    },
    set: (text) => {
      const editor = view.current;
      if (!editor || editor.state.doc.toString() === text) return;
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text }, selection: { anchor: text.length } });
    },
    replace: (from, to, text) => {
      const editor = view.current;
      if (!editor) return;
      editor.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length }, scrollIntoView: true, userEvent: 'input' });
      editor.focus();
    },
  }));

  return <div ref={host} data-editor className="h-full" />;
}
