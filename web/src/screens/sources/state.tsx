import { t } from '~/texts';
import { Badge, type Tone } from '~/ui/Badge';
import type { Source, SourceRun } from './queries';

const texts = t.sources;

const runTones: Record<SourceRun['status'], Tone> = { queued: 'plain', running: 'info', completed: 'ok', stopped: 'warn', failed: 'danger' };

export function RunBadge({ run }: { run: SourceRun }) {
  return <Badge tone={runTones[run.status]}>{texts.runs.status[run.status]}</Badge>;
}

/** Nothing for a source that is as it should be. */
export function StatusBadge({ source }: { source: Source }) {
  if (source.status === 'active') return null;
  return <Badge tone={source.status === 'stopped' ? 'danger' : 'plain'}>{texts.status[source.status]}</Badge>;
}
