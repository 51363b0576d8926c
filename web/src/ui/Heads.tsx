import { cx } from './cx';

/** The names of the columns of a table. A name with `right` stands over numbers, one with `grow` takes the rest of the width, and
 * one with `wide` is left out on a phone. */
export function Heads({ names, className }: { names: readonly (string | { name: string; right?: true; grow?: true; wide?: true })[]; className?: string }) {
  return (
    <tr className={cx('[&>th]:py-2 [&>th]:font-medium [&>th]:whitespace-nowrap', className)}>
      {names.map((one) => {
        const { name, right, grow, wide } = typeof one === 'string' ? { name: one, right: undefined, grow: undefined, wide: undefined } : one;
        return (
          <th key={name} scope="col" className={cx(right && 'text-right', grow && 'w-full', wide && 'max-sm:hidden')}>
            {name}
          </th>
        );
      })}
    </tr>
  );
}
