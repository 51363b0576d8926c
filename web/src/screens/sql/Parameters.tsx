import { t } from '~/texts';
import { Input, Select } from '~/ui/Field';
import { empty, type Kind, kinds, type Value, type Values } from './values';

type Props = { keys: string[]; listed: boolean; values: Values; faults: Readonly<Record<string, string>>; onChange: (key: string, value: Value) => void };

/** One line for each parameter of the statement: its type and its value. */
export function ParameterFields({ keys, listed, values, faults, onChange }: Props) {
  return (
    <fieldset className="max-h-44 overflow-y-auto border-t border-line px-3 py-2">
      <legend className="sr-only">{t.sql.parameters}</legend>
      <div className="grid gap-x-6 gap-y-2 md:grid-cols-[repeat(auto-fill,minmax(340px,1fr))]">
        {keys.slice(0, 100).map((key) => {
          const name = `$${key}`;
          const value = values[key] ?? empty;
          const fault = faults[key];
          const note = `fault-${key}`;
          const field = { 'aria-label': t.sql.value(name), 'aria-invalid': fault ? (true as const) : undefined, 'aria-describedby': fault ? note : undefined };
          const change = (text: string) => onChange(key, { ...value, text });
          return (
            <div key={key}>
              <div className="flex items-center gap-2">
                <code className="mono w-20 shrink-0 truncate text-right text-text-2" title={name}>
                  {listed ? name : key}
                </code>
                <Select aria-label={t.sql.type(name)} className="w-32! shrink-0" value={value.kind} onChange={(event) => onChange(key, { ...value, kind: event.target.value as Kind })}>
                  {kinds.map((kind) => (
                    <option key={kind} value={kind}>
                      {t.sql.types[kind]}
                    </option>
                  ))}
                </Select>
                {value.kind === 'boolean' ? (
                  <Select {...field} value={value.text === 'false' ? 'false' : 'true'} onChange={(event) => change(event.target.value)}>
                    <option value="true">{t.sql.yes}</option>
                    <option value="false">{t.sql.no}</option>
                  </Select>
                ) : (
                  <Input
                    {...field}
                    value={value.kind === 'null' ? '' : value.text}
                    disabled={value.kind === 'null'}
                    inputMode={value.kind === 'number' ? 'decimal' : undefined}
                    placeholder={t.sql.hints[value.kind]}
                    onChange={(event) => change(event.target.value)}
                    autoComplete="off"
                    spellCheck={false}
                  />
                )}
              </div>
              {fault && (
                <p id={note} className="mt-1 pl-22 text-xs text-danger [overflow-wrap:anywhere]">
                  {fault}
                </p>
              )}
            </div>
          );
        })}
      </div>
    </fieldset>
  );
}
