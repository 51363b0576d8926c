import { useNavigate } from '@tanstack/react-router';
import { Upload } from 'lucide-react';
import { useEffect, useEffectEvent, useState } from 'react';
import { t } from '~/texts';
import { offer } from '~/upload/current';
import { droppedFiles } from '~/upload/dropped';

/** Uploads files that are dropped beside every place for them. The browser would open them instead of the page. */
export function DropAnywhere({ path }: { path: string }) {
  const [over, setOver] = useState(false);
  const navigate = useNavigate();
  const take = useEffectEvent(async (data: DataTransfer) => {
    const files = await droppedFiles(data);
    if (files.length === 0 || path.startsWith('/upload')) return;
    offer(files);
    await navigate({ to: '/upload' });
  });
  useEffect(() => {
    const stop = new AbortController();
    const on = (name: 'dragover' | 'dragleave' | 'drop', does: (event: DragEvent, data: DataTransfer) => void) =>
      window.addEventListener(name, (event) => event.dataTransfer?.types.includes('Files') && does(event, event.dataTransfer), stop);
    on('dragover', (event) => {
      setOver(!event.defaultPrevented);
      event.preventDefault();
    });
    on('dragleave', (event) => {
      if (event.relatedTarget === null) setOver(false);
    });
    on('drop', (event, data) => {
      setOver(false);
      if (event.defaultPrevented) return;
      event.preventDefault();
      void take(data);
    });
    return () => stop.abort();
  }, []);
  if (!over || path.startsWith('/upload')) return null;
  return (
    <div aria-hidden className="pointer-events-none fixed inset-2 z-50 flex items-center justify-center rounded-lg border border-dashed border-accent bg-accent-soft/90 text-lg font-medium text-accent">
      <Upload size={20} strokeWidth={1.75} className="mr-3" />
      {t.upload.release}
    </div>
  );
}
