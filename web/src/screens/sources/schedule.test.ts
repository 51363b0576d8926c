import { describe, expect, it } from 'vitest';
import { type Choice, choiceOf, noSchedule, scheduleOf, scheduleText, timeZones } from './schedule';

const base: Choice = { ...noSchedule('Europe/Vienna'), time: '06:30' };

describe('schedules', () => {
  it.each([
    ['hourly', '0 * * * *', 'every hour (Europe/Vienna)'],
    ['daily', '30 6 * * *', 'every day at 06:30 (Europe/Vienna)'],
    ['weekdays', '30 6 * * mon-fri', 'Monday to Friday at 06:30 (Europe/Vienna)'],
    ['weekly', '30 6 * * 1', 'every Monday at 06:30 (Europe/Vienna)'],
  ] as const)('%s is written as a schedule and read again', (rhythm, cron, text) => {
    const made = scheduleOf({ ...base, rhythm });
    expect(made).toEqual({ cron, timeZone: 'Europe/Vienna' });
    const stored = { cron, timeZone: 'Europe/Vienna', jitterMinutes: 0 };
    expect(choiceOf(stored).rhythm).toBe(rhythm);
    expect(scheduleOf(choiceOf(stored))).toEqual(made);
    expect(scheduleText(stored)).toBe(text);
  });

  it('keeps what no rhythm makes', () => {
    for (const cron of ['*/15 6-22 * * mon-fri', '0 3 1 * *', '5 4 * * 7', '0 3 * * 1,3']) {
      const stored = { cron, timeZone: 'UTC', jitterMinutes: 0 };
      expect(choiceOf(stored)).toMatchObject({ rhythm: 'cron', cron });
      expect(scheduleOf(choiceOf(stored))).toEqual({ cron, timeZone: 'UTC' });
      expect(scheduleText(stored)).toBe(`${cron} (UTC)`);
    }
  });

  it('is absent without a rhythm', () => {
    expect(scheduleOf(choiceOf(undefined))).toBeUndefined();
  });

  it('offers each time zone once, with the chosen one', () => {
    const all = timeZones('Etc/GMT+3');
    expect(all[0]).toBe('UTC');
    expect(all).toContain('Etc/GMT+3');
    expect(new Set(all).size).toBe(all.length);
  });
});
