import { describe, expect, it } from 'vitest';
import { t } from '~/texts';
import { actionName, concerns, detailOf, isRead } from './events';

const dataset = { kind: 'dataset' as const, id: '1', namespace: 'Sales', dataset: 'Orders' };
const namespace = { kind: 'namespace' as const, id: '2', namespace: 'Sales' };

describe('audit', () => {
  it('names what the service writes', () => {
    expect(actionName('rows.list')).toBe('Rows viewed');
    expect(actionName('semantics.put')).toBe('Semantics changed');
    expect(actionName('setAside.export')).toBe('Rows set aside exported');
  });
  it('shows the code of an action that it does not know', () => {
    expect(actionName('dataset.polish')).toBe('dataset.polish');
    expect(actionName('toString')).toBe('toString');
  });
  it('gives each action a name of its own', () => {
    const names = Object.values(t.dataset.audit.actions);
    expect(new Set(names).size).toBe(names.length);
  });
  it('tells reads from changes and exports', () => {
    const seen = Object.keys(t.dataset.audit.actions).filter((action) => isRead({ action }));
    expect(seen.toSorted()).toEqual(['profile.get', 'query.link', 'query.run', 'rows.list', 'run.read', 'setAside.read', 'step.read']);
    for (const action of ['dataset.export', 'setAside.export', 'share.grant', 'dataset.polish']) expect(isRead({ action })).toBe(false);
  });
  it('leaves out ids and says what holds for the whole namespace', () => {
    const said = (action: string, detail: string, target: typeof dataset | typeof namespace) => detailOf({ action, detail, target });
    expect(said('share.grant', 'bob viewer', dataset)).toBe('bob viewer');
    expect(said('share.grant', 'bob viewer', namespace)).toBe('bob viewer, whole namespace');
    expect(said('query.link', '', namespace)).toBe('whole namespace');
    expect(said('namespace.update', 'exposure rows', namespace)).toBe('exposure rows');
    expect(said('rows.append', '0199c0de-0000-7000-8000-000000000001', dataset)).toBe('');
    expect(said('ingestion.create', 'append 0199c0de-0000-7000-8000-000000000001, 1 files', dataset)).toContain('append');
  });
  it('takes entries of the dataset and of its namespace, in any letters', () => {
    const at = { namespace: 'sales', dataset: 'orders' };
    expect(concerns(at, { target: dataset })).toBe(true);
    expect(concerns(at, { target: namespace })).toBe(true);
    expect(concerns(at, { target: { ...dataset, dataset: 'other' } })).toBe(false);
    expect(concerns(at, { target: { kind: 'account', id: '3' } })).toBe(false);
  });
});
