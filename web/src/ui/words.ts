/** A message without the sentences that tell a program which operation to call: a person gets a button or a sentence of the console instead. */
export function wordsOf(message: string): string {
  const kept = message.split(/(?<=[.!?]) /).filter((sentence) => !/\b(GET|HEAD|POST|PUT|PATCH|DELETE) \//.test(sentence));
  return kept.join(' ') || message;
}
