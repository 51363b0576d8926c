import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { FileClock } from 'lucide-react';
import { useRef, useState } from 'react';
import { api, take } from '~/api/client';
import { formatBytes } from '~/format/number';
import { t } from '~/texts';
import { Bar } from '~/ui/Bar';
import { Button } from '~/ui/Button';
import { Failure } from '~/ui/Failure';
import { Ago } from '~/ui/Time';
import { forget, remembered } from '~/upload/remember';

const texts = t.upload.continue;

/** Uploads that a closed or reloaded page left behind, as far as this browser remembers and the service still has them. */
export function Resume({ only, onFiles }: { only: string | undefined; onFiles: (sessionId: string, files: File[]) => Promise<void> }) {
  const open = useQuery({
    queryKey: ['interrupted', only],
    queryFn: async () => {
      const kept = only === undefined ? (await remembered()).map((one) => one.sessionId) : [only];
      const found = await Promise.all(
        kept.map(async (sessionId) => {
          const state = await read(sessionId).catch(() => undefined);
          if (state?.sessionStatus === 'preparing') return state;
          if (state) await forget(sessionId);
          return undefined;
        }),
      );
      return found.filter((one) => one !== undefined);
    },
    staleTime: 0,
    gcTime: 0,
  });
  const shown = open.data ?? [];
  if (shown.length === 0) return null;
  return (
    <section className="mt-8">
      <h2 className="text-lg">{texts.title}</h2>
      <p className="mb-3 text-text-2">{texts.text}</p>
      <ul className="divide-y divide-line rounded-md border border-line bg-surface">
        {shown.map((one) => (
          <Interrupted key={one.sessionId} session={one} onFiles={onFiles} />
        ))}
      </ul>
    </section>
  );
}

type Session = NonNullable<Awaited<ReturnType<typeof read>>>;
const read = (sessionId: string) => take(api.GET('/file-upload/{sessionId}', { params: { path: { sessionId } } }));

function Interrupted({ session, onFiles }: { session: Session; onFiles: (sessionId: string, files: File[]) => Promise<void> }) {
  const queries = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState(false);
  const discard = useMutation({
    mutationFn: async () => {
      await take(api.POST('/file-upload/{sessionId}/abort', { params: { path: { sessionId: session.sessionId } } }));
      await forget(session.sessionId);
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ['interrupted'] }),
  });
  const go = useMutation({ mutationFn: (files: File[]) => onFiles(session.sessionId, files) });
  const size = session.files.reduce((sum, file) => sum + file.size, 0);
  const stored = session.files.reduce((sum, file) => sum + (file.fileStatus === 'completed' ? file.size : file.parts.reduce((all, part) => all + part.size, 0)), 0);
  const pick = (files: File[]) => {
    const fits = files.some((file) => session.files.some((one) => one.filename === file.name && one.size === file.size));
    setWrong(!fits);
    if (fits) go.mutate(files);
  };
  return (
    <li className="px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <FileClock size={16} strokeWidth={1.75} aria-hidden className="text-text-3" />
        <div className="min-w-0 grow">
          <p className="truncate font-medium">{session.files.map((file) => file.filename).join(', ')}</p>
          <p className="text-sm text-text-3 figure">
            {t.upload.sending.progress(formatBytes(stored), formatBytes(size))} · {texts.expires} <Ago time={session.expiresAt} />
          </p>
        </div>
        <Button look="quiet" busy={discard.isPending} onClick={() => discard.mutate()}>
          {texts.discard}
        </Button>
        <Button look="primary" busy={go.isPending} onClick={() => input.current?.click()}>
          {texts.button}
        </Button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            pick([...(event.target.files ?? [])]);
            event.target.value = '';
          }}
        />
      </div>
      <Bar className="mt-3" share={stored / size} label={t.upload.sending.title} tone="quiet" />
      {wrong && <p className="mt-2 text-sm text-danger">{texts.wrong}</p>}
      {(go.error ?? discard.error) && <Failure error={go.error ?? discard.error} className="mt-3" />}
    </li>
  );
}
