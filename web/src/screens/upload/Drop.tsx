import { LoaderCircle, Upload } from 'lucide-react';
import { type DragEvent, useRef, useState } from 'react';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { droppedFiles } from '~/upload/dropped';

const texts = t.upload;

export function Drop({ busy, onFiles }: { busy: boolean; onFiles: (files: File[]) => void }) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const hold = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  return (
    <div
      onDragEnter={hold}
      onDragOver={hold}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void droppedFiles(event.dataTransfer).then(onFiles);
      }}
      className={cx(
        'flex flex-col items-center rounded-md border border-dashed px-6 py-16 text-center transition-colors duration-120',
        over ? 'border-accent bg-accent-soft' : 'border-control bg-surface',
      )}
    >
      <span className="mb-4 flex size-12 items-center justify-center rounded-full bg-accent-soft text-accent">
        {busy ? <LoaderCircle size={20} strokeWidth={1.75} aria-hidden className="spin" /> : <Upload size={20} strokeWidth={1.75} aria-hidden />}
      </span>
      {/* With a finger nothing can be dropped. */}
      <p className="text-lg font-medium pointer-coarse:hidden">{over ? texts.release : texts.drop}</p>
      <p className="my-2 text-text-3 pointer-coarse:hidden">{texts.or}</p>
      <Button look="primary" busy={busy} onClick={() => input.current?.click()}>
        {texts.choose}
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          const files = [...(event.target.files ?? [])];
          event.target.value = '';
          if (files.length > 0) onFiles(files);
        }}
      />
      <p className="mt-6 max-w-110 text-sm text-text-3 text-balance">{texts.kinds}</p>
    </div>
  );
}
