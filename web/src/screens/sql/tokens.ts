export type Token = {
  kind: 'word' | 'quoted' | 'string' | 'number' | 'parameter' | 'comment' | 'sign';
  from: number;
  to: number;
  text: string;
};

// The order matters: what begins like something longer comes after it.
const pattern =
  /(?<comment>--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>[eE]?'(?:[^']|'')*(?:'|$)|(?<tag>\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?(?:\k<tag>|$))|(?<quoted>"(?:[^"]|"")*(?:"|$))|(?<parameter>\$\w+|\?)|(?<number>\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|(?<word>[\p{L}_][\p{L}\p{N}_$]*)|(?<sign>[^\s])/gu;

/** The parts of a statement, without the white space. Text that is not finished yet, as while typing, ends with the statement. */
export function tokens(sql: string): Token[] {
  const found: Token[] = [];
  for (const match of sql.matchAll(pattern)) {
    const groups = match.groups ?? {};
    const kind = (['comment', 'string', 'quoted', 'parameter', 'number', 'word'] as const).find((name) => groups[name] !== undefined) ?? 'sign';
    found.push({ kind, from: match.index, to: match.index + match[0].length, text: match[0] });
  }
  return found;
}

export type Part = { from: number; to: number; text: string };

/** The statements of a text, separated by semicolons, without those that are empty. */
export function statements(sql: string): Part[] {
  const parts: Part[] = [];
  let first: Token | undefined;
  let last: Token | undefined;
  const close = () => {
    if (first && last) parts.push({ from: first.from, to: last.to, text: sql.slice(first.from, last.to) });
    first = undefined;
    last = undefined;
  };
  for (const token of tokens(sql)) {
    if (token.kind === 'sign' && token.text === ';') close();
    else if (token.kind !== 'comment' || first) {
      first ??= token;
      // A remark after the statement belongs to nothing.
      if (token.kind !== 'comment') last = token;
    }
  }
  close();
  return parts;
}

/** What runs: the selection, or else the statement at the cursor. After the last semicolon that is the statement before it. */
export function statementAt(sql: string, from: number, to = from): Part | undefined {
  if (from !== to) {
    const chosen = sql.slice(from, to);
    const before = chosen.length - chosen.trimStart().length;
    const text = chosen.trim().replace(/;\s*$/, '');
    return text === '' ? undefined : { from: from + before, to: from + before + text.length, text };
  }
  const all = statements(sql);
  return all.find((part) => from <= part.to) ?? all.at(-1);
}

export type Parameters = { kind: 'none' } | { kind: 'named'; names: string[] } | { kind: 'listed'; count: number };

/** Which values a statement waits for. */
export function parametersOf(sql: string): Parameters {
  const names: string[] = [];
  let highest = 0;
  let marks = 0;
  for (const { kind, text } of tokens(sql)) {
    if (kind !== 'parameter') continue;
    if (text === '?') marks += 1;
    else if (/^\$\d+$/.test(text)) highest = Math.max(highest, Math.min(1000, Number(text.slice(1))));
    else {
      const name = text.slice(1);
      if (!names.some((known) => known.toLowerCase() === name.toLowerCase())) names.push(name);
    }
  }
  if (names.length > 0) return { kind: 'named', names: names.slice(0, 1000) };
  const count = Math.min(1000, Math.max(highest, marks));
  return count > 0 ? { kind: 'listed', count } : { kind: 'none' };
}

/** Whether the statement itself says how many rows it wants. */
export function hasLimit(sql: string): boolean {
  let depth = 0;
  for (const { kind, text } of tokens(sql)) {
    if (text === '(') depth += 1;
    else if (text === ')') depth -= 1;
    else if (depth === 0 && kind === 'word' && text.toLowerCase() === 'limit') return true;
  }
  return false;
}

const plainName = /^[a-z_][a-z0-9_]*$/i;
const reserved = new Set(
  (
    'all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default deferrable desc describe distinct ' +
    'do else end except false fetch for foreign from group having in initially intersect into lambda lateral leading limit not null offset on only or order ' +
    'pivot placing primary qualify references returning select show some summarize symmetric table then to trailing true union unique unpivot using variadic ' +
    'when where window with anti asof cross full inner is isnull join left like natural notnull outer overlaps positional right semi similar tablesample between'
  ).split(' '),
);

/** A name as it must stand in a statement. */
export function quoteName(name: string): string {
  return plainName.test(name) && !reserved.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The name that a word or a quoted word means. */
export function nameOf(token: { kind: string; text: string }): string {
  return token.kind === 'quoted' ? token.text.slice(1, token.text.endsWith('"') && token.text.length > 1 ? -1 : undefined).replaceAll('""', '"') : token.text;
}

/** The words of a dotted name, `bob.sales.leads`, that begin at a token. */
function chainFrom(all: Token[], index: number): Token[] {
  const chain: Token[] = [];
  for (let at = index; at < all.length; at += 2) {
    const token = all[at];
    if (!token || (token.kind !== 'word' && token.kind !== 'quoted')) break;
    chain.push(token);
    if (all[at + 1]?.text !== '.') break;
  }
  return chain;
}

/** The offset of `line 1, column 8`, as the service writes it. It counts characters, JavaScript counts halves of some. */
export function offsetOf(sql: string, position: string): number | undefined {
  const match = /^line (\d+), column (\d+)$/.exec(position);
  if (!match) return undefined;
  const line = Number(match[1]);
  let start = 0;
  for (let now = 1; now < line; now += 1) {
    const end = sql.indexOf('\n', start);
    if (end < 0) return undefined;
    start = end + 1;
  }
  let offset = start;
  for (let column = 1; column < Number(match[2]); column += 1) {
    const code = sql.codePointAt(offset);
    if (code === undefined) break;
    offset += code > 0xffff ? 2 : 1;
  }
  return Math.min(offset, sql.length);
}

/** What to underline for a fault at an offset: the name with its dots, or else the token. */
export function spanAt(sql: string, offset: number): { from: number; to: number } {
  const all = tokens(sql).filter(({ kind }) => kind !== 'comment');
  const index = all.findIndex((token) => offset < token.to);
  const token = all[index];
  if (!token) {
    // At the end, such as a statement that stops too early.
    const last = all.at(-1);
    return last ? { from: last.from, to: last.to } : { from: 0, to: sql.length };
  }
  const chain = chainFrom(all, index);
  return { from: token.from, to: (chain.at(-1) ?? token).to };
}

/** How a suggested name replaces what is wrong at an offset. No suggestion that is more than a name can be put in. */
export function fixAt(sql: string, offset: number, candidate: string): { from: number; to: number; insert: string } | undefined {
  if (/[()]/.test(candidate)) return undefined;
  const all = tokens(sql).filter(({ kind }) => kind !== 'comment');
  const index = all.findIndex((token) => offset >= token.from && offset < token.to);
  const chain = index < 0 ? [] : chainFrom(all, index);
  const last = chain.at(-1);
  if (!last) return undefined;
  const parts = tokens(candidate);
  const dotted = parts.length > 1 && chainFrom(parts, 0).length * 2 - 1 === parts.length;
  if (dotted) return { from: chain.at(-((parts.length + 1) / 2))?.from ?? (chain[0] ?? last).from, to: last.to, insert: candidate };
  const quoted = parts.length === 1 && parts[0]?.kind === 'quoted';
  return { from: last.from, to: last.to, insert: quoted ? candidate : quoteName(candidate) };
}

export type Source = { parts: string[]; alias?: string };

const notAlias = new Set(
  'on using where group order limit join inner left right full cross natural union intersect except having qualify window offset tablesample asof positional semi anti select from pivot unpivot as'.split(' '),
);

/** The datasets after FROM and JOIN, with their aliases. */
export function sourcesOf(sql: string): Source[] {
  const all = tokens(sql).filter(({ kind }) => kind !== 'comment');
  const found: Source[] = [];
  let listing = false;
  for (let at = 0; at < all.length; at += 1) {
    const token = all[at] as Token;
    const word = token.kind === 'word' ? token.text.toLowerCase() : '';
    const opens = word === 'from' || word === 'join' || word === 'describe' || word === 'summarize' || (listing && token.text === ',');
    if (word !== '' && notAlias.has(word)) listing = false;
    if (!opens) continue;
    const chain = chainFrom(all, at + 1);
    listing = word !== 'join';
    if (chain.length === 0 || all[at + chain.length * 2]?.text === '(') continue;
    let next = at + chain.length * 2;
    if (all[next]?.text.toLowerCase() === 'as') next += 1;
    const alias = all[next];
    const named = alias && (alias.kind === 'quoted' || (alias.kind === 'word' && !notAlias.has(alias.text.toLowerCase())));
    // A quoted path, "bob/sales/leads", means the same as bob.sales.leads.
    const parts = chain.length === 1 && chain[0]?.kind === 'quoted' ? nameOf(chain[0]).split('/') : chain.map(nameOf);
    found.push(named ? { parts, alias: nameOf(alias) } : { parts });
    at += chain.length * 2 - 1;
    if (named) at = next;
  }
  return found;
}
