import { whereOf } from './scope';
import type { Where } from './runs';

export type Shared = { question: string; where: Where; statement: string; meaning?: string };

/**
 * A link carries the question and its statement, never rows. They stand after the # of the address, which browsers do not send to
 * servers, so that no log on the way has them.
 */
export function shareUrl(shared: Shared): string {
  return `${location.origin}/ask/link#${encode(shared)}`;
}

export function encode({ question, where, statement, meaning }: Shared): string {
  return new URLSearchParams({ in: `${where.username}/${where.namespace}`, q: question, ...(meaning && { as: meaning }), sql: statement }).toString();
}

export function decode(hash: string): Shared | undefined {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const where = whereOf(fields.get('in') ?? undefined);
  const question = fields.get('q');
  const statement = fields.get('sql');
  const meaning = fields.get('as');
  return where && question && statement ? { question: question.slice(0, 10_000), where, statement: statement.slice(0, 100_000), ...(meaning && { meaning: meaning.slice(0, 2000) }) } : undefined;
}

/** The SQL screen with a statement in its editor. */
export function linkToSql(where: Where, statement: string) {
  return { to: '/sql', hash: new URLSearchParams({ in: `${where.username}/${where.namespace}`, sql: statement }).toString() } as const;
}
