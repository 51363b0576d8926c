import { useState } from 'react';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Field, Input, Select } from '~/ui/Field';
import type { Options } from './dryRun';

const texts = t.upload.review;

export type OptionName = Exclude<keyof Options, 'types' | 'extract'>;
export const optionNames: OptionName[] = ['delimiter', 'quote', 'header', 'skipRows', 'encoding', 'decimal', 'thousands', 'dateFormat', 'nullValues', 'sheet', 'rowsAt'];

const texty: OptionName[] = ['delimiter', 'quote', 'header', 'skipRows', 'encoding', 'decimal', 'thousands', 'dateFormat', 'nullValues'];

/** The options that mean something for files with these names; all of them if a name says nothing. */
export function optionsFor(names: readonly string[]): OptionName[] {
  const kinds = new Set(names.map((name) => /\.(csv|tsv|txt|xlsx|json|ndjson|jsonl|parquet|pdf|docx|html?|md|eml)(\.(gz|zst|bz2|zip))?$/i.exec(name)?.[1]?.toLowerCase() ?? ''));
  const all = (...of: string[]) => [...kinds].every((kind) => of.includes(kind));
  if (all('csv', 'tsv', 'txt')) return texty;
  if (all('xlsx')) return ['sheet', 'header', 'skipRows', 'decimal', 'thousands', 'dateFormat', 'nullValues'];
  if (all('pdf', 'docx', 'htm', 'html', 'md', 'eml')) return ['decimal', 'thousands', 'dateFormat', 'nullValues', 'encoding'];
  if (all('json', 'ndjson', 'jsonl')) return ['rowsAt', 'encoding', 'dateFormat', 'nullValues'];
  return optionNames;
}

const choices: Partial<Record<OptionName, [string, string][]>> = {
  delimiter: [[',', ','], [';', ';'], ['\t', texts.tab], ['|', '|']],
  quote: [['"', '"'], ["'", "'"], ['', texts.nothing]],
  header: [['true', texts.yes], ['false', texts.no]],
  decimal: [['.', '.'], [',', ',']],
  thousands: [[',', ','], ['.', '.'], ["'", "'"], [' ', '␣'], ['', texts.nothing]],
  encoding: [['utf-8', 'UTF-8'], ['windows-1252', 'Windows-1252'], ['windows-1250', 'Windows-1250'], ['latin-1', 'Latin-1'], ['utf-16le', 'UTF-16 LE'], ['utf-16be', 'UTF-16 BE'], ['shift_jis', 'Shift JIS']],
  dateFormat: ['dd/mm/yyyy', 'mm/dd/yyyy', 'dd.mm.yyyy', 'd.m.yy', 'yyyy-mm-dd', 'dd-mm-yyyy'].map((one) => [one, one]),
};

/** A setting of how files are read, in the form that its values need. `offered` are values that the service named. */
export function OptionControl({ name, value, offered = [], onChange }: { name: OptionName; value: unknown; offered?: string[]; onChange: (value: unknown) => void }) {
  const list = choices[name];
  const shown = value === undefined || value === null ? '' : Array.isArray(value) ? value.join(', ') : String(value);
  const [typed, setTyped] = useState(shown);
  if (offered.length > 1) {
    return (
      <div role="group" aria-label={texts.names[name]} className="flex flex-wrap gap-2">
        {offered.map((one) => (
          <Button key={one} aria-pressed={shown === one} look={shown === one ? 'primary' : 'plain'} onClick={() => onChange(parse(name, one))}>
            {list?.find(([value]) => value === one)?.[1] ?? one}
          </Button>
        ))}
      </div>
    );
  }
  if (list) {
    return (
      <Field label={texts.names[name]}>
        {(props) => (
          <Select
            {...props}
            value={value === undefined || value === null ? 'detected' : `=${shown}`}
            onChange={(event) => onChange(event.target.value === 'detected' ? undefined : parse(name, event.target.value.slice(1)))}
          >
            <option value="detected">{texts.detected}</option>
            {list.map(([one, label]) => (
              <option key={one} value={`=${one}`}>
                {label}
              </option>
            ))}
          </Select>
        )}
      </Field>
    );
  }
  const commit = () => {
    if (typed !== shown) onChange(typed === '' ? undefined : parse(name, typed));
  };
  return (
    <Field label={texts.names[name]}>
      {(props) => (
        <Input
          {...props}
          value={typed}
          type={name === 'skipRows' ? 'number' : 'text'}
          min={0}
          placeholder={name === 'nullValues' ? texts.nullHint : texts.detected}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={commit}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.nativeEvent.isComposing) commit();
          }}
        />
      )}
    </Field>
  );
}

function parse(name: OptionName, text: string): unknown {
  if (name === 'header') return text === 'true';
  if (name === 'skipRows') return Number(text);
  if (name === 'nullValues') return text.split(',').map((one) => one.trim());
  return text;
}
