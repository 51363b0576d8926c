import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useState } from 'react';
import { api, take } from '~/api/client';
import { t } from '~/texts';
import { Failure } from '~/ui/Failure';
import { Page } from '~/ui/Page';
import { Skeleton } from '~/ui/Skeleton';
import { setUpload, takeOffered, upload, useUpload } from '~/upload/current';
import { forget, remember } from '~/upload/remember';
import { UploadSession } from '~/upload/session';
import { Drop } from './Drop';
import { Resume } from './Resume';
import { Review } from './Review';
import { Sending } from './Sending';

const texts = t.upload;
const mostFiles = 100;

/** From files to a dataset: choose, send, review, load. The session stands in the address, so a reload comes back to its step. */
export default function Upload() {
  const { into, session } = useSearch({ from: '/shell/upload' });
  const navigate = useNavigate({ from: '/upload' });
  const now = useUpload();
  const [notes, setNotes] = useState<string[]>([]);
  const [failure, setFailure] = useState<unknown>();
  const [starting, setStarting] = useState(false);

  const begin = async (files: File[]) => {
    const good = files.filter((file) => file.size > 0);
    const left = files.filter((file) => file.size === 0).map((file) => texts.emptyFile(file.name));
    setNotes(good.length > mostFiles ? [...left, texts.tooMany] : left);
    setFailure(undefined);
    if (good.length === 0) return;
    setStarting(true);
    try {
      const chosen = good.slice(0, mostFiles);
      const started = await UploadSession.start(chosen);
      setUpload(started);
      await remember({
        sessionId: started.sessionId,
        startedAt: Date.now(),
        into: into ?? '',
        files: started.view().files.map((file, index) => ({ fileId: file.id, name: file.name, size: file.size, modified: chosen[index]?.lastModified ?? 0 })),
      });
      await navigate({ search: { into, session: started.sessionId }, replace: true });
    } catch (cause) {
      setFailure(cause);
    } finally {
      setStarting(false);
    }
  };
  const proceed = async (sessionId: string, files: File[]) => {
    setFailure(undefined);
    const resumed = await UploadSession.resume(sessionId, files);
    setUpload(resumed);
    await navigate({ search: { into, session: sessionId }, replace: true });
  };
  const again = async () => {
    setUpload(null);
    setNotes([]);
    await navigate({ search: {}, replace: true });
  };

  const beginOffered = useEffectEvent(() => {
    const files = takeOffered();
    if (files.length > 0) void begin(files);
  });
  useEffect(() => beginOffered(), []);

  const done = now?.state === 'done';
  useEffect(() => {
    if (done && now) void forget(now.sessionId);
  }, [done, now]);

  // A page that was loaded again knows the session by its address alone.
  const known = useQuery({
    queryKey: ['upload', session],
    queryFn: ({ signal }) => take(api.GET('/file-upload/{sessionId}', { params: { path: { sessionId: session ?? '' } }, signal })),
    enabled: session !== undefined && (now === null || now.sessionId !== session || done),
    staleTime: 0,
  });
  const current = now && (session === undefined || now.sessionId === session) ? now : null;
  const ready = session !== undefined && known.data?.sessionId === session && known.data.sessionStatus === 'completed' ? known.data : undefined;

  return (
    <Page wide title={into ? texts.into(into.split('/').at(-1) ?? into) : texts.title}>
      {notes.map((note) => (
        <p key={note} className="mb-3 rounded-md bg-warn-soft px-4 py-2 text-warn">
          {note}
        </p>
      ))}
      {failure !== undefined && <Failure error={failure} className="mb-4" />}
      {ready ? (
        <Review key={ready.sessionId} session={ready} into={into} onAgain={() => void again()} />
      ) : current ? (
        <Sending
          view={current}
          onCancel={async () => {
            const id = current.sessionId;
            upload()?.pause();
            await take(api.POST('/file-upload/{sessionId}/abort', { params: { path: { sessionId: id } } })).catch(setFailure);
            await forget(id);
            await again();
          }}
        />
      ) : session && known.isPending ? (
        <Skeleton lines={4} />
      ) : session && known.isError ? (
        <Failure error={known.error} onRetry={() => void again()} />
      ) : (
        <>
          <Drop busy={starting} onFiles={(files) => void begin(files)} />
          <Resume only={session} onFiles={proceed} />
        </>
      )}
    </Page>
  );
}
