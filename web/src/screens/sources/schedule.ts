import type { Schemas } from '~/api/client';
import { t } from '~/texts';

export type Rhythm = 'none' | 'hourly' | 'daily' | 'weekdays' | 'weekly' | 'cron';
export const rhythms: readonly Rhythm[] = ['none', 'hourly', 'daily', 'weekdays', 'weekly', 'cron'];

/** A schedule as a person chooses it. `time` is HH:MM and `day` a day of the week, 0 is Sunday. */
export type Choice = { rhythm: Rhythm; time: string; day: string; cron: string; timeZone: string };

export function noSchedule(timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone): Choice {
  return { rhythm: 'none', time: '03:00', day: '1', cron: '', timeZone };
}

/** The names of time zones that this browser knows, with UTC first. */
export function timeZones(chosen: string): string[] {
  return [...new Set(['UTC', chosen, ...Intl.supportedValuesOf('timeZone')])];
}

/** The schedule of the API; without a rhythm nothing. */
export function scheduleOf({ rhythm, time, day, cron, timeZone }: Choice): Schemas['NewSchedule'] | undefined {
  const [hour = 0, minute = 0] = time.split(':').map(Number);
  const at = `${minute} ${hour} * *`;
  const crons: Record<Exclude<Rhythm, 'none'>, string> = { hourly: '0 * * * *', daily: `${at} *`, weekdays: `${at} mon-fri`, weekly: `${at} ${day}`, cron: cron.trim() };
  return rhythm === 'none' ? undefined : { cron: crons[rhythm], timeZone };
}

const daily = /^(\d{1,2}) (\d{1,2}) \* \* (\*|mon-fri|1-5|[0-6])$/;

/** The choice that makes a schedule. What no rhythm makes stays as it is written. */
export function choiceOf(schedule: Schemas['Schedule'] | undefined): Choice {
  if (!schedule) return noSchedule();
  const { cron, timeZone } = schedule;
  const base = { ...noSchedule(timeZone), cron };
  if (cron === '0 * * * *') return { ...base, rhythm: 'hourly' };
  const [, minute, hour, days] = daily.exec(cron) ?? [];
  if (!minute || !hour || !days) return { ...base, rhythm: 'cron' };
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  if (days === '*') return { ...base, rhythm: 'daily', time };
  return /^\d$/.test(days) ? { ...base, rhythm: 'weekly', time, day: days } : { ...base, rhythm: 'weekdays', time };
}

/** `every day at 03:00 (Europe/Vienna)`. */
export function scheduleText(schedule: Schemas['Schedule']): string {
  const { rhythm, time, day, cron, timeZone } = choiceOf(schedule);
  return `${t.sources.schedule.said[rhythm](rhythm === 'cron' ? cron : time, t.sources.schedule.days[Number(day)] ?? '')} (${timeZone})`;
}
