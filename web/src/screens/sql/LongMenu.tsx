import { ChevronDown, Layers } from 'lucide-react';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { Menu } from '~/ui/Menu';
import { type Format, formats } from './runs';

/** Runs a statement as a long statement, in the format that is chosen. */
export function LongMenu({ text, look = 'plain', className, disabled = false, onPick }: { text: string; look?: 'plain' | 'quiet'; className?: string; disabled?: boolean; onPick: (format: Format) => void }) {
  return (
    <Menu align="start" className={buttonClass(look, className)} title={t.sql.long.runTitle} disabled={disabled} items={formats.map((format) => ({ label: t.sql.long.formats[format], onSelect: () => onPick(format) }))}>
      <Layers size={16} strokeWidth={1.75} aria-hidden />
      {text}
      <ChevronDown size={14} strokeWidth={1.75} aria-hidden />
    </Menu>
  );
}
