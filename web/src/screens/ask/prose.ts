import type { RunResult } from '~/stream/run';

/** The words of an answer without the table at its end: the rows stand beside it, all of them. */
export function proseOf(response: string): string {
  const lines = response.trimEnd().split('\n');
  let from = lines.length;
  while (from > 0 && lines[from - 1]?.trimStart().startsWith('|')) from -= 1;
  if (from === lines.length || !/^\s*\|[\s:|-]+\|\s*$/.test(lines[from + 1] ?? '')) return lines.join('\n');
  return lines.slice(0, from).join('\n').trim();
}

/** An answer without its sentences about rows that are not counted: they stand in a box of their own. */
export function withoutLosses(result: RunResult): RunResult {
  const losses = (result.doubts ?? []).filter(({ kind }) => kind === leftOut);
  return losses.length === 0 ? result : { ...result, response: losses.reduce((response, { text }) => response.replace(`\n\n${text}`, () => ''), result.response) };
}

/** The kind of doubts about rows that are not counted. */
export const leftOut = 'leftOut';

/** A refusal lists questions that could be asked, and how SQL is sent without a console. The first become buttons, the second a link. */
export function suggestionsOf(response: string): { text: string; questions: string[] } {
  const questions: string[] = [];
  const kept: string[] = [];
  for (const block of response.split(/\n{2,}/)) {
    const lines = block.split('\n');
    const items = lines.filter((line) => /^[-*] /.test(line));
    if (items.length > 0 && items.length >= lines.length - 1) {
      questions.push(...items.map((line) => line.slice(2).trim()));
    } else if (!/`quern query`|`POST \/query`/.test(block)) {
      kept.push(block);
    }
  }
  return { text: kept.join('\n\n').trim(), questions };
}

const byRules = 'Answered by the planner, without a model.';

/** What the rules did that the question does not say, for example rows that they left out. */
export function noteOf({ basis, steps }: { basis?: RunResult['basis']; steps: readonly { reasoning?: string }[] }): string {
  const reasoning = steps.length === 1 ? (steps[0]?.reasoning ?? '') : '';
  return basis === 'rules' && reasoning.startsWith(byRules) ? reasoning.slice(byRules.length).trim() : '';
}
