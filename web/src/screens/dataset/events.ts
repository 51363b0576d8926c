import type { Schemas } from '~/api/client';
import { count } from '~/format/number';
import { t } from '~/texts';

type Entry = Schemas['AuditEntry'];

/** What was done, in words. An action that the console does not know keeps its code. */
export function actionName(action: string): string {
  return Object.hasOwn(t.dataset.audit.actions, action) ? t.dataset.audit.actions[action as keyof typeof t.dataset.audit.actions] : action;
}

const id = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What else there is to say. Ids say nothing to people. */
export function detailOf(entry: Pick<Entry, 'detail' | 'action' | 'target'>): string {
  const [, name, role] = entry.action === 'share.grant' ? (/^(\S+) (viewer|editor|owner)$/.exec(entry.detail) ?? []) : [];
  const load = /^(append|replace|merge) \S+, (\d+) files(, dry run)?$/.exec(entry.detail);
  const detail = id.test(entry.detail)
    ? ''
    : name && role
      ? t.dataset.audit.as(name, role)
      : load && entry.action === 'ingestion.create'
        ? t.dataset.audit.load(load[1] as 'append' | 'replace' | 'merge', count(Number(load[2]), 'file'), load[3] !== undefined)
        : entry.detail;
  const whole = entry.target.kind === 'namespace' && !entry.action.startsWith('namespace.') ? t.dataset.audit.wholeSpace : '';
  return [detail, whole].filter(Boolean).join(', ');
}
