import { ChevronDown, Clock } from 'lucide-react';
import { useState } from 'react';
import { formatExact } from '~/format/time';
import { t } from '~/texts';
import { Button, buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Field, Input } from '~/ui/Field';
import { Menu } from '~/ui/Menu';

/** At which moment the datasets are read. */
export function AsOf({ value, onChange }: { value: string | undefined; onChange: (value: string | undefined) => void }) {
  const [choosing, setChoosing] = useState(false);
  const ago = (hours: number) => () => onChange(new Date(Date.now() - hours * 3_600_000).toISOString());
  const text = t.sql.asOf;
  return (
    <>
      <Menu
        align="start"
        className={buttonClass('plain', cx('min-w-0 shrink', value && 'border-warn bg-warn-soft text-warn hover:bg-warn-soft'))}
        items={[
          { label: text.now, checked: value === undefined, onSelect: () => onChange(undefined) },
          'line',
          { label: text.hour, onSelect: ago(1) },
          { label: text.day, onSelect: ago(24) },
          { label: text.week, onSelect: ago(168) },
          { label: text.choose, onSelect: () => setChoosing(true) },
        ]}
      >
        <Clock size={16} strokeWidth={1.75} aria-hidden className="shrink-0" />
        <span className={cx('truncate', !value && 'max-sm:sr-only')}>{value ? text.at(formatExact(value)) : text.now}</span>
        <ChevronDown size={14} strokeWidth={1.75} aria-hidden className="shrink-0" />
      </Menu>
      <Moment open={choosing} value={value} onClose={() => setChoosing(false)} onChange={onChange} />
    </>
  );
}

function Moment({ open, value, onClose, onChange }: { open: boolean; value: string | undefined; onClose: () => void; onChange: (value: string | undefined) => void }) {
  const [given, setGiven] = useState<{ date?: string; time?: string }>({});
  const start = value ?? new Date().toISOString();
  const date = given.date ?? start.slice(0, 10);
  const time = given.time ?? start.slice(11, 19);
  const moment = new Date(`${date}T${time.length === 5 ? `${time}:00` : time}Z`);
  const good = !Number.isNaN(moment.getTime());
  const close = () => {
    setGiven({});
    onClose();
  };
  const use = () => {
    if (!good) return;
    onChange(moment.toISOString());
    close();
  };
  return (
    <Dialog
      open={open}
      onClose={close}
      title={t.sql.asOf.title}
      footer={
        <>
          <Button onClick={close}>{t.common.cancel}</Button>
          <Button look="primary" disabled={!good} onClick={use}>
            {t.sql.asOf.use}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          use();
        }}
      >
        <p className="mb-4 text-text-2">{t.sql.asOf.text}</p>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t.sql.asOf.date}>
            {(field) => <Input {...field} type="date" autoFocus value={date} max="9999-12-31" onChange={(event) => setGiven({ ...given, date: event.target.value })} />}
          </Field>
          <Field label={t.sql.asOf.time}>{(field) => <Input {...field} type="time" step={1} value={time} onChange={(event) => setGiven({ ...given, time: event.target.value })} />}</Field>
        </div>
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
