import { createElement, type ReactNode, useMemo } from 'react';
import Reader, { type Components, type Options } from 'react-markdown';
import gfm from 'remark-gfm';
import { cx } from './cx';

/** Structure and emphasis only. An image would be loaded from elsewhere, and a link would lead there. */
const allowed = ['p', 'br', 'strong', 'em', 'del', 'code', 'pre', 'ul', 'ol', 'li', 'blockquote', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a', 'img', 'mark'];

type Node = { type: string; value?: string; tagName?: string; properties?: Record<string, unknown>; children?: Node[] };

/**
 * Markdown from a closed set of elements; HTML in it is shown as text. Words between `opening` and `closing` are handed to `marked`
 * with their number.
 */
export default function Markdown({ text, opening, closing, marked, className }: { text: string; opening?: string; closing?: string; marked?: (index: number, words: ReactNode) => ReactNode; className?: string }) {
  const plugins = useMemo<Options['rehypePlugins']>(() => (opening && closing ? [[markWords, opening, closing]] : []), [opening, closing]);
  const components = useMemo<Components>(
    () => ({
      h1: heading,
      h2: heading,
      h3: heading,
      h4: heading,
      h5: heading,
      h6: heading,
      a: ({ children, href }) => (
        <>
          {children}
          {href && <span className="text-text-3 [overflow-wrap:anywhere]"> ({href})</span>}
        </>
      ),
      img: ({ alt }) => <>{alt}</>,
      p: ({ children }) => <p className="my-2 first:mt-0 last:mb-0">{children}</p>,
      ul: ({ children }) => <ul className="my-2 list-disc pl-5">{children}</ul>,
      ol: ({ children }) => <ol className="my-2 list-decimal pl-5">{children}</ol>,
      blockquote: ({ children }) => <blockquote className="my-2 border-l-2 border-line pl-3 text-text-2">{children}</blockquote>,
      code: ({ children }) => <code className="mono rounded-sm bg-sunken px-1">{children}</code>,
      pre: ({ children }) => <pre tabIndex={0} className="my-2 overflow-auto rounded-md bg-sunken p-3">{children}</pre>,
      table: ({ children }) => (
        <div tabIndex={0} className="my-3 max-w-full overflow-x-auto rounded-md border border-line bg-surface text-sm">
          <table className="w-full border-collapse [&_td]:border-t [&_td]:border-line [&_td]:px-3 [&_td]:py-1.5 [&_th]:px-3 [&_th]:py-1.5 [&_th]:text-left [&_th]:font-medium [&_tr>*]:align-top">{children}</table>
        </div>
      ),
      td: ({ children, style }) => <td style={style}>{children}</td>,
      th: ({ children, style }) => <th style={style}>{children}</th>,
      mark: ({ children, node }) => <>{marked ? marked(Number(node?.properties['index'] ?? -1), children) : children}</>,
    }),
    [marked],
  );
  return (
    <div className={cx('[overflow-wrap:anywhere]', className)}>
      <Reader remarkPlugins={[gfm]} rehypePlugins={plugins} components={components} allowedElements={allowed} unwrapDisallowed>
        {text}
      </Reader>
    </div>
  );
}

/** Below the heading of the answer, whatever level the text chose. */
function heading({ children }: { children?: ReactNode }) {
  return createElement('h4', { className: 'mt-4 mb-1 font-semibold first:mt-0' }, children);
}

/** Turns the words between two signs into an element. Words can stretch over several pieces of text, but not over paragraphs. */
function markWords(opening: string, closing: string) {
  return (tree: Node) => {
    let index = -1;
    let inside = false;
    const walk = (node: Node): void => {
      if (!node.children) return;
      const next: Node[] = [];
      for (const child of node.children) {
        if (child.type !== 'text') {
          walk(child);
          next.push(child);
          continue;
        }
        let rest = child.value ?? '';
        while (rest !== '') {
          const at = rest.indexOf(inside ? closing : opening);
          const words = at < 0 ? rest : rest.slice(0, at);
          if (words) next.push(inside ? { type: 'element', tagName: 'mark', properties: { index }, children: [{ type: 'text', value: words }] } : { type: 'text', value: words });
          if (at < 0) break;
          inside = !inside;
          if (inside) index += 1;
          rest = rest.slice(at + 1);
        }
      }
      node.children = next;
    };
    walk(tree);
  };
}
