import { describe, expect, it } from 'vitest';
import { t } from '~/texts';
import { actionName, detailOf } from './events';

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
  it('leaves out ids and says what holds for the whole namespace', () => {
    const said = (action: string, detail: string, target: typeof dataset | typeof namespace) => detailOf({ action, detail, target });
    expect(said('share.grant', 'bob viewer', dataset)).toBe('bob as viewer');
    expect(said('share.grant', 'bob viewer', namespace)).toBe('bob as viewer, whole namespace');
    expect(said('query.link', '', namespace)).toBe('whole namespace');
    expect(said('namespace.update', 'exposure rows', namespace)).toBe('exposure rows');
    expect(said('rows.append', '0199c0de-0000-7000-8000-000000000001', dataset)).toBe('');
    expect(said('ingestion.create', 'append 0199c0de-0000-7000-8000-000000000001, 1 files', dataset)).toBe('1 file, adds rows');
    expect(said('ingestion.create', 'replace 0199c0de-0000-7000-8000-000000000001, 2 files, dry run', dataset)).toBe('2 files, review only');
    expect(said('ingestion.create', 'something else', dataset)).toBe('something else');
  });
});
