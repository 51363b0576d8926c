/**
 * Whether the service would load a file: `*` is anything except `/`, `?` one such character, `[a-z]` one of these. A pattern without `/` is
 * compared with the last part of the path, another one with what follows the prefix. Undefined if it is not a pattern.
 */
export function matcher(prefix: string, pattern: string): ((path: string) => boolean) | undefined {
  const expression = pattern === '' ? /^/ : expressionOf(pattern);
  if (!expression) return undefined;
  return (path) => path.startsWith(prefix) && !path.endsWith('/') && expression.test(pattern.includes('/') ? path.slice(prefix.length) : path.slice(path.lastIndexOf('/') + 1));
}

function expressionOf(pattern: string): RegExp | undefined {
  let source = '';
  for (let rest = pattern; rest !== ''; ) {
    const set = /^\[(\^?)((?:\\.|[^\]\\])+)\]/.exec(rest);
    const escaped = /^\\(.)/.exec(rest);
    if (set) {
      source += `[${set[1]}${(set[2] ?? '').replace(/[[&~|]/g, '\\$&')}]`;
      rest = rest.slice(set[0].length);
    } else if (escaped) {
      source += literal(escaped[1] ?? '');
      rest = rest.slice(escaped[0].length);
    } else {
      const [first = ''] = rest;
      if (first === '[' || first === '\\') return undefined;
      source += first === '*' ? '[^/]*' : first === '?' ? '[^/]' : literal(first);
      rest = rest.slice(first.length);
    }
  }
  try {
    return new RegExp(`^${source}$`, 'su');
  } catch {
    return undefined;
  }
}

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
