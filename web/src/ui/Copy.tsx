import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState } from 'react';
import { t } from '~/texts';
import { IconButton } from './Button';

/** Copies a text and says so. */
export function Copy({ text, label = t.common.copy, className }: { text: string; label?: string; className?: string }) {
  const [done, setDone] = useState(false);
  return (
    <IconButton
      icon={done ? Check : CopyIcon}
      label={done ? t.common.copied : label}
      className={className ?? 'size-6'}
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        });
      }}
    />
  );
}
