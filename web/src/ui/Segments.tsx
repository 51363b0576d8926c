import { cx } from './cx';

/** A few exclusive choices in one row. */
export function Segments<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
  return (
    <div role="group" aria-label={label} className="flex h-8 shrink-0 rounded-md border border-control bg-surface p-0.5 pointer-coarse:h-11">
      {options.map(([option, text]) => (
        <button
          key={option}
          type="button"
          aria-pressed={value === option}
          onClick={() => onChange(option)}
          className={cx('rounded-sm px-3 whitespace-nowrap transition-colors duration-120', value === option ? 'bg-accent-soft font-medium text-accent' : 'text-text-2 hover:text-text')}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
