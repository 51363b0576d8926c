import type { Schemas } from '~/api/client';
import type { Options } from './dryRun';

type Doubt = Schemas['Doubt'];

/** A doubt of the same kind about the same column is the same one. */
export const idOf = (doubt: Doubt) => `${doubt.code ?? ''} ${doubt.option ?? ''} ${doubt.column ?? ''}`;

/** The doubts that options settled: those whose option is still set, and that the service does not have any more. */
export function stillSettled(settled: readonly Doubt[], open: readonly Doubt[], options: Options): Doubt[] {
  const isSet = ({ option, column }: Doubt) => {
    if (option === 'types') return column !== undefined && options.types?.[column] !== undefined;
    return option !== undefined && options[option as keyof Options] !== undefined;
  };
  return settled.filter((doubt) => isSet(doubt) && !open.some((one) => idOf(one) === idOf(doubt)));
}
