import { History as Clock, Search } from 'lucide-react';
import { useState } from 'react';
import { count } from '~/format/number';
import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Empty } from '~/ui/Empty';
import { Input } from '~/ui/Field';
import { Segments } from '~/ui/Segments';
import { Ago } from '~/ui/Time';
import { say } from '~/ui/toast';
import { LongList } from './LongList';
import { formatMs } from './Result';
import { type Entry, remember, useHistory } from './past';

type Props = { account: string; self: string; open: boolean; onClose: () => void; onPick: (entry: Entry) => void; onLong: (id: string) => void };

/** What this account ran in this browser, and what workers ran for it. Choosing an entry runs nothing. */
export function History({ account, self, open, onClose, onPick, onLong }: Props) {
  const entries = useHistory(account);
  const [which, setWhich] = useState<'here' | 'background'>('here');
  const [words, setWords] = useState('');
  const found = entries.filter(({ query }) => query.toLowerCase().includes(words.trim().toLowerCase()));
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={t.sql.history.title}
      size="lg"
      footer={
        which === 'here' &&
        entries.length > 0 && (
          <Button
            look="quiet"
            onClick={() => {
              remember(account, () => []);
              onClose();
              say(t.sql.history.cleared);
            }}
          >
            {t.sql.history.clear}
          </Button>
        )
      }
    >
      <div className="mb-4 flex">
        <Segments
          label={t.sql.history.which}
          value={which}
          options={[
            ['here', t.sql.history.here],
            ['background', t.sql.history.background],
          ]}
          onChange={setWhich}
        />
      </div>
      {which === 'background' ? (
        <LongList onPick={onLong} />
      ) : entries.length === 0 ? (
        <Empty icon={Clock} title={t.sql.history.empty}>
          {t.sql.history.emptyText}
        </Empty>
      ) : (
        <>
          <p className="mb-3 text-text-2">{t.sql.history.text}</p>
          <div className="relative mb-3">
            <Search size={16} strokeWidth={1.75} aria-hidden className="pointer-events-none absolute inset-y-0 left-3 my-auto text-text-3" />
            <Input type="search" value={words} onChange={(event) => setWords(event.target.value)} aria-label={t.sql.history.filter} placeholder={t.sql.history.filter} className="pl-9" />
          </div>
          {found.length === 0 && <p className="py-4 text-text-2">{t.sql.history.none}</p>}
          <ul className="divide-y divide-line overflow-hidden rounded-md border border-line">
            {found.map((entry) => (
              <li key={entry.id}>
                <button
                  type="button"
                  onClick={() => onPick(entry)}
                  className="block w-full px-4 py-3 text-left transition-colors duration-120 hover:bg-hover focus-visible:-outline-offset-2"
                >
                  <span className="mono line-clamp-3 [overflow-wrap:anywhere] whitespace-pre-wrap">{entry.query.slice(0, 1000)}</span>
                  <span className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-text-3">
                    <Outcome entry={entry} />
                    {entry.namespace && <span>{entry.owner && entry.owner !== self ? `${entry.owner} / ${entry.namespace}` : entry.namespace}</span>}
                    <Ago time={entry.at} />
                  </span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}

function Outcome({ entry: { outcome } }: { entry: Entry }) {
  switch (outcome.state) {
    case 'done':
      return (
        <span className="text-text-2">
          {count(outcome.rows, 'row')} · {formatMs(outcome.ms)}
        </span>
      );
    case 'failed':
      return (
        <Badge tone="danger" title={outcome.message}>
          {t.sql.history.failed}
        </Badge>
      );
    default:
      return <Badge>{t.sql.history[outcome.state]}</Badge>;
  }
}
