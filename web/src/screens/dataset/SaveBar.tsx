import { t } from '~/texts';
import { Badge } from '~/ui/Badge';
import { Button } from '~/ui/Button';

/** Saves or discards what was changed in a form. It stays in sight at the bottom of a long form. */
export function SaveBar({ busy, disabled, onSave, onDiscard }: { busy: boolean; disabled?: boolean; onSave: () => void; onDiscard: () => void }) {
  const texts = t.dataset.definition;
  return (
    <div className="sticky bottom-0 -mx-1 mt-4 flex flex-wrap items-center gap-2 border-t border-line bg-canvas px-1 py-3">
      <Button look="primary" busy={busy} disabled={disabled} onClick={onSave}>
        {texts.save}
      </Button>
      <Button look="quiet" disabled={busy} onClick={onDiscard}>
        {texts.discard}
      </Button>
      <Badge tone="warn">{texts.unsaved}</Badge>
    </div>
  );
}
