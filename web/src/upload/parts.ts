/** The parts of a file that the store does not have yet, in order. A part of another size is sent again. */
export function missingParts(size: number, partSize: number, have: readonly { partNumber: number; size: number }[]): number[] {
  const stored = new Map(have.map((part) => [part.partNumber, part.size]));
  const missing: number[] = [];
  for (let number = 1; (number - 1) * partSize < size; number += 1) {
    if (stored.get(number) !== lengthOf(size, partSize, number)) missing.push(number);
  }
  return missing;
}

export function lengthOf(size: number, partSize: number, number: number): number {
  return Math.min(partSize, size - (number - 1) * partSize);
}

/** How fast bytes go out, over the last seconds, and how long the rest takes. */
export class Meter {
  readonly #samples: { at: number; bytes: number }[] = [];
  readonly #window = 8000;

  add(bytes: number, at = performance.now()): void {
    this.#samples.push({ at, bytes });
    while (this.#samples[0] && this.#samples[0].at < at - this.#window) this.#samples.shift();
  }

  clear(): void {
    this.#samples.length = 0;
  }

  /** Bytes a second, or undefined while there is too little to tell. */
  rate(at = performance.now()): number | undefined {
    const first = this.#samples[0];
    if (!first) return undefined;
    const span = at - first.at;
    if (span < 500) return undefined;
    return (this.#samples.reduce((sum, sample) => sum + sample.bytes, 0) / span) * 1000;
  }
}

/** What a name of a file says about its time or its state, and nothing about its rows. */
const aside = '(\\d+|[qh]\\d|v\\d+|final|copy|kopie|export|neu|new|draft|entwurf|backup)';

/** The name without such words at its end, because questions use it: `umsatz-2026-q1-final` is `umsatz`. */
export function shortName(name: string): string {
  const short = name.replace(new RegExp(`([-_.]+${aside})+$`), '');
  return new RegExp(`^${aside}$`).test(short) ? name : short;
}

/** A name that the service accepts, made of the name of a file: `Q3 Umsätze (final).xlsx` → `q3-umsaetze-final`. */
export function nameFor(filename: string): string {
  const german: Record<string, string> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss', æ: 'ae', ø: 'o' };
  const plain = filename
    .split(/[\\/]/)
    .at(-1)!
    .replace(/(\.(csv|tsv|txt|json|ndjson|jsonl|parquet|xlsx|xlsm|pdf|docx|html?|md|eml|gz|zst|bz2|zip))+$/i, '')
    .toLowerCase()
    .replace(/[äöüßæø]/g, (letter) => german[letter] ?? letter)
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^a-z0-9._]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, 128);
  return plain || 'data';
}
