import { type ComponentProps, type ReactNode, useId } from 'react';
import { cx } from './cx';

// With less than 16 pixels, a phone enlarges the page when the field gets the focus.
const control =
  'rounded-md border border-control bg-surface px-3 text-text placeholder:text-text-3 transition-colors duration-120 focus-visible:border-info focus-visible:outline-1 focus-visible:outline-offset-0 disabled:opacity-60 aria-invalid:border-danger pointer-coarse:text-lg';

/** A label above its control, with help or the fault below it. */
export function Field({
  label,
  help,
  fault,
  hideLabel = false,
  className,
  children,
}: {
  label: string;
  help?: ReactNode;
  fault?: string | undefined;
  hideLabel?: boolean;
  className?: string;
  children: (props: { id: string; 'aria-describedby': string | undefined; 'aria-invalid': true | undefined }) => ReactNode;
}) {
  const id = useId();
  const note = `${id}-note`;
  return (
    <div className={className}>
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'mb-1 block font-medium'}>
        {label}
      </label>
      {children({ id, 'aria-describedby': fault || help ? note : undefined, 'aria-invalid': fault ? true : undefined })}
      {(fault || help) && (
        <p id={note} className={cx('mt-1 text-xs', fault ? 'text-danger' : 'text-text-3')}>
          {fault ?? help}
        </p>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  return <input {...rest} className={cx(control, 'h-8 w-full pointer-coarse:h-11', className)} />;
}

export function Textarea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea {...rest} className={cx(control, 'w-full py-2', className)} />;
}

/** `fit` makes it as wide as its longest option. */
export function Select({ className, fit = false, ...rest }: ComponentProps<'select'> & { fit?: boolean }) {
  return <select {...rest} className={cx(control, 'select h-8 pr-8 pointer-coarse:h-11', fit ? 'w-auto' : 'w-full', className)} />;
}
