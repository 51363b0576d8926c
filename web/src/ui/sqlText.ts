export type SqlToken = { kind: 'keyword' | 'string' | 'number' | 'comment' | 'name' | 'sign' | 'space'; text: string };

const keywords = new Set(
  'select distinct from where group by order having limit offset as and or not in is null like ilike between case when then else end join left right full inner outer cross on using union all except intersect with recursive over partition filter qualify window rows range preceding following current row asc desc nulls first last cast date timestamp interval true false values exists any some pivot unpivot lateral natural asof semi anti sample explain describe summarize show tables'.split(' '),
);

const pattern = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([\p{L}_$][\p{L}\p{N}_$]*)|(\s+)|([\s\S])/giu;

/** Divides a statement into words. The words together are the statement. */
export function colour(text: string): SqlToken[] {
  const tokens: SqlToken[] = [];
  for (const [word, comment, string, quoted, number, name, space] of text.matchAll(pattern)) {
    const kind = comment ? 'comment' : string ? 'string' : quoted ? 'name' : number ? 'number' : name ? (keywords.has(name.toLowerCase()) ? 'keyword' : 'name') : space ? 'space' : 'sign';
    tokens.push({ kind, text: word });
  }
  return tokens;
}

const starts = new Set(['from', 'where', 'group', 'order', 'having', 'limit', 'qualify', 'window', 'union', 'except', 'intersect']);
const joins = new Set(['join', 'left', 'right', 'full', 'inner', 'cross', 'natural', 'asof', 'semi', 'anti']);

/** Breaks a statement of one line before its clauses. A statement that has lines already is left as it is. */
export function layOut(text: string): string {
  const trimmed = text.trim();
  if (trimmed.includes('\n') || trimmed.length < 60) return trimmed;
  let depth = 0;
  let result = '';
  const tokens = colour(trimmed);
  tokens.forEach((token, index) => {
    if (token.text === '(') depth += 1;
    if (token.text === ')') depth -= 1;
    const next = tokens[index + 1];
    if (token.kind === 'space' && depth === 0 && next?.kind === 'keyword') {
      const word = next.text.toLowerCase();
      const before = tokens[index - 1]?.text.toLowerCase() ?? '';
      if (starts.has(word) || (joins.has(word) && !joins.has(before) && before !== 'outer')) {
        result += '\n';
        return;
      }
      if ((word === 'and' || word === 'or') && !between(tokens, index)) {
        result += '\n  ';
        return;
      }
    }
    result += token.text;
  });
  return result;
}

/** Whether the AND after this place belongs to a BETWEEN. */
function between(tokens: readonly SqlToken[], at: number): boolean {
  for (let index = at; index >= 0; index -= 1) {
    const word = tokens[index]?.text.toLowerCase();
    if (tokens[index]?.kind !== 'keyword') continue;
    if (word === 'between') return true;
    if (word === 'and' || word === 'or' || word === 'where' || word === 'on') return false;
  }
  return false;
}

/** Whether a statement says in which order its rows come. */
export const hasOrder = (text: string): boolean => firstOrder(text) !== undefined;

/**
 * What a statement orders its rows by at first: the name of a column without its quotes, or nothing if it is a calculation.
 * Orders in parentheses are those of windows and of parts.
 */
export function firstOrder(text: string): string | undefined {
  const tokens = colour(text).filter(({ kind }) => kind !== 'space' && kind !== 'comment');
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    if (token.text === '(') depth += 1;
    else if (token.text === ')') depth -= 1;
    else if (depth === 0 && token.kind === 'keyword' && token.text.toLowerCase() === 'order') {
      const [by, next] = tokens.slice(at + 2, at + 4);
      const alone = !next || next.text === ',' || next.text === ';' || next.kind === 'keyword';
      if (by?.kind !== 'name' || !alone) return '';
      return by.text.startsWith('"') ? by.text.slice(1, -1).replaceAll('""', '"') : by.text;
    }
  }
  return undefined;
}
