import { t } from '~/texts';
import { Button } from '~/ui/Button';

/** Somebody else saved in the meantime: the person decides whose version stays. */
export function Conflict({ message, busy, onTheirs, onMine }: { message: string; busy: boolean; onTheirs: () => void; onMine: () => void }) {
  const texts = t.dataset.definition;
  return (
    <div role="alert" className="mt-4 rounded-md border border-warn/40 bg-warn-soft p-4">
      <p className="font-medium text-warn">{message}</p>
      <div className="mt-3 flex flex-wrap gap-2">
        <Button onClick={onTheirs}>{texts.takeTheirs}</Button>
        <Button busy={busy} onClick={onMine}>
          {texts.keepMine}
        </Button>
      </div>
    </div>
  );
}
