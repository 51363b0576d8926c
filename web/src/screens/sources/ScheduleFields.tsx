import { t } from '~/texts';
import { Field, Input, Select } from '~/ui/Field';
import { type Choice, rhythms, timeZones } from './schedule';

const texts = t.sources.schedule;

/** When a source runs by itself. */
export function ScheduleFields({ value, fault, onChange }: { value: Choice; fault?: string | undefined; onChange: (value: Choice) => void }) {
  const { rhythm } = value;
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      <Field label={texts.label} fault={rhythm === 'cron' ? undefined : fault}>
        {(field) => (
          <Select {...field} value={rhythm} onChange={(event) => onChange({ ...value, rhythm: event.target.value as Choice['rhythm'] })}>
            {rhythms.map((one) => (
              <option key={one} value={one}>
                {texts.rhythms[one]}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {rhythm === 'weekly' && (
        <Field label={texts.day}>
          {(field) => (
            <Select {...field} value={value.day} onChange={(event) => onChange({ ...value, day: event.target.value })}>
              {['1', '2', '3', '4', '5', '6', '0'].map((one) => (
                <option key={one} value={one}>
                  {texts.days[Number(one)]}
                </option>
              ))}
            </Select>
          )}
        </Field>
      )}
      {['daily', 'weekdays', 'weekly'].includes(rhythm) && (
        <Field label={texts.time}>
          {(field) => <Input {...field} type="time" required value={value.time} onChange={(event) => event.target.value && onChange({ ...value, time: event.target.value })} />}
        </Field>
      )}
      {rhythm === 'cron' && (
        <Field label={texts.cron} help={texts.cronHelp} fault={fault}>
          {(field) => <Input {...field} value={value.cron} placeholder="0 3 * * mon-fri" spellCheck={false} autoComplete="off" onChange={(event) => onChange({ ...value, cron: event.target.value })} />}
        </Field>
      )}
      {rhythm !== 'none' && (
        <Field label={texts.timeZone}>
          {(field) => (
            <Select {...field} value={value.timeZone} onChange={(event) => onChange({ ...value, timeZone: event.target.value })}>
              {timeZones(value.timeZone).map((one) => (
                <option key={one}>{one}</option>
              ))}
            </Select>
          )}
        </Field>
      )}
    </div>
  );
}
