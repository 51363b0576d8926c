import { Fragment, type ReactNode } from 'react';

/** Facts in one line, with a point between them. Facts that are not there are left out. */
export function Facts({ of, className }: { of: readonly ReactNode[]; className?: string }) {
  const known = of.filter((fact) => fact !== undefined && fact !== null && fact !== false && fact !== '');
  return (
    <p className={className}>
      {known.map((fact, index) => (
        <Fragment key={index}>
          {/* The space before the point does not break: a line that is full ends with it, and the next one begins with a fact. */}
          {index > 0 && '\u00a0· '}
          <span>{fact}</span>
        </Fragment>
      ))}
    </p>
  );
}
