import { CircleAlert, CircleCheck, File as FileIcon, Pause, Play, RotateCw, TriangleAlert } from 'lucide-react';
import { formatBytes, formatPercent } from '~/format/number';
import { formatDuration } from '~/format/time';
import { t } from '~/texts';
import { Bar } from '~/ui/Bar';
import { Button } from '~/ui/Button';
import { Failure } from '~/ui/Failure';
import { upload } from '~/upload/current';
import { PartError } from '~/upload/send';
import type { View } from '~/upload/session';

const texts = t.upload.sending;

export function Sending({ view, onCancel }: { view: View; onCancel: () => Promise<void> }) {
  const share = view.size ? view.sent / view.size : 0;
  const failed = view.files.find((file) => file.status === 'failed');
  return (
    <section className="appear rounded-md border border-line bg-surface p-6">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <h2 className="text-lg">{view.state === 'failed' ? texts.stopped : view.state === 'paused' ? texts.paused : texts.title}</h2>
        <p className="text-xl font-semibold figure">{formatPercent(Math.floor(share * 100) / 100)}</p>
      </div>
      {view.files.length === 1 && <p className="truncate text-sm text-text-2">{view.files[0]?.name}</p>}
      <Bar share={share} label={texts.title} className="mt-3 h-2" tone={failed ? 'danger' : view.state === 'paused' ? 'quiet' : 'accent'} />
      <p className="mt-2 flex min-h-5 flex-wrap gap-x-4 text-sm text-text-2 figure">
        <span>{texts.progress(formatBytes(view.sent), formatBytes(view.size))}</span>
        {view.rate !== undefined && <span>{texts.rate(formatBytes(view.rate))}</span>}
        {view.left !== undefined && view.state === 'sending' && <span>{texts.left(formatDuration(view.left))}</span>}
      </p>
      {failed && (
        <div className="mt-4">
          {failed.error instanceof PartError ? (
            <div role="alert" className="flex gap-3 rounded-md border border-danger/30 bg-danger-soft p-4">
              <TriangleAlert size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0 text-danger" />
              <div className="min-w-0">
                <p className="font-medium text-danger [overflow-wrap:anywhere]">
                  {texts.failed} {failed.error.message}
                </p>
                <p className="mt-1 text-text-2">{texts.failedNext}</p>
              </div>
            </div>
          ) : (
            <Failure error={failed.error} />
          )}
        </div>
      )}
      <div className="mt-4 flex flex-wrap gap-2">
        {view.state === 'sending' && (
          <Button icon={Pause} onClick={() => upload()?.pause()}>
            {texts.pause}
          </Button>
        )}
        {view.state === 'paused' && (
          <Button look="primary" icon={Play} onClick={() => upload()?.resume()}>
            {texts.resume}
          </Button>
        )}
        {view.state === 'failed' && failed && (
          <Button look="primary" icon={RotateCw} onClick={() => upload()?.resume()}>
            {texts.retry}
          </Button>
        )}
        {view.state !== 'done' && (
          <Button look="quiet" onClick={() => void onCancel()}>
            {texts.cancel}
          </Button>
        )}
      </div>
      {view.files.length > 1 && (
        <ul className="mt-6 max-h-100 divide-y divide-line overflow-y-auto border-t border-line">
          {view.files.map((file) => (
            <li key={file.id} className="flex h-10 items-center gap-3">
              <span aria-hidden className="text-text-3">
                {file.status === 'done' ? <CircleCheck size={16} strokeWidth={1.75} className="text-ok" /> : file.status === 'failed' || file.status === 'absent' ? <CircleAlert size={16} strokeWidth={1.75} className="text-danger" /> : <FileIcon size={16} strokeWidth={1.75} />}
              </span>
              <span className="min-w-0 grow truncate">{file.name}</span>
              <span className="shrink-0 text-sm text-text-3 figure">{file.status === 'sending' ? formatPercent(Math.floor((file.sent / file.size) * 100) / 100) : texts.status[file.status]}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
