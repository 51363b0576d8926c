import { parametersOf } from './tokens';

export const kinds = ['text', 'number', 'date', 'timestamp', 'boolean', 'null'] as const;
export type Kind = (typeof kinds)[number];
export type Value = { kind: Kind; text: string };
/** By name, or by number for a list. */
export type Values = Readonly<Record<string, Value>>;

/** As the service takes them; the contract has the types. */
export type Sent = readonly unknown[] | Readonly<Record<string, unknown>>;

export const empty: Value = { kind: 'text', text: '' };

/** The keys of the values that a statement waits for. */
export function keysOf(sql: string): string[] {
  const found = parametersOf(sql);
  if (found.kind === 'named') return found.names;
  return found.kind === 'listed' ? Array.from({ length: found.count }, (_, index) => String(index + 1)) : [];
}

/** What to send for a statement. Numbers go as text with their type, so that no digit is lost on the way. */
export function toSend(sql: string, values: Values): Sent | undefined {
  const found = parametersOf(sql);
  if (found.kind === 'none') return undefined;
  const one = (key: string) => sent(values[key] ?? empty);
  if (found.kind === 'listed') return Array.from({ length: found.count }, (_, index) => one(String(index + 1)));
  return Object.fromEntries(found.names.map((name) => [name, one(name)]));
}

function sent({ kind, text }: Value): unknown {
  const value = text.trim();
  switch (kind) {
    case 'null':
      return null;
    case 'text':
      return text;
    case 'boolean':
      return value !== 'false';
    case 'number':
      return { type: numberType(value), value };
    default:
      return { type: kind, value };
  }
}

/** The type that holds a number exactly as it was typed. */
export function numberType(text: string): string {
  const match = /^[+-]?(\d*)(?:\.(\d*))?$/.exec(text);
  if (!match) return 'double';
  const whole = (match[1] ?? '').replace(/^0+(?=\d)/, '').length;
  const places = (match[2] ?? '').length;
  if (match[2] === undefined && whole <= 18) return 'bigint';
  return whole + places <= 38 ? `decimal(${Math.max(1, whole + places)},${places})` : 'double';
}

/** The place in `values` of a fault such as `parameters.0` or `parameters.region`. */
export function keyOfFault(code: string, sql: string): string | undefined {
  const match = /^parameters\.(.+)$/.exec(code);
  if (!match?.[1]) return undefined;
  if (parametersOf(sql).kind === 'listed') return String(Number(match[1]) + 1);
  return keysOf(sql).find((name) => name.toLowerCase() === match[1]?.toLowerCase());
}
