import { useMutation, useQueryClient } from '@tanstack/react-query';
import { ThumbsDown, ThumbsUp } from 'lucide-react';
import { useState } from 'react';
import { api, type Schemas, take } from '~/api/client';
import { t } from '~/texts';
import { Button, IconButton } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Field, Textarea } from '~/ui/Field';
import { say } from '~/ui/toast';
import { patchTurn } from './runs';

type Rating = Pick<Schemas['Feedback'], 'thumbsUp' | 'comment'> | null;

/** Thumbs. A comment is asked for only on down; the same thumb again withdraws the rating. */
export function Feedback({ conversationId, runId, rating }: { conversationId: string; runId: string; rating: Schemas['Feedback'] | undefined }) {
  const queries = useQueryClient();
  const params = { path: { runId } };
  const [asking, setAsking] = useState(false);
  const [comment, setComment] = useState('');
  const rate = useMutation({
    mutationFn: async (next: Rating) => {
      if (next) await take(api.POST('/query/runs/{runId}/feedback', { params, body: next }));
      else await take(api.DELETE('/query/runs/{runId}/feedback', { params }));
      return next;
    },
    onSuccess: (next) => patchTurn(queries, conversationId, runId, { feedback: next ? { ...next, updatedAt: new Date().toISOString() } : undefined }),
  });
  const press = (thumbsUp: boolean) => {
    if (rate.isPending) return;
    if (rating?.thumbsUp === thumbsUp) {
      setAsking(false);
      rate.mutate(null, { onSuccess: () => say(t.ask.feedback.withdrawn) });
      return;
    }
    setAsking(!thumbsUp);
    setComment('');
    rate.mutate({ thumbsUp }, { onSuccess: () => thumbsUp && say(t.ask.feedback.thanks) });
  };
  const thumb = (up: boolean) => (
    <IconButton
      icon={up ? ThumbsUp : ThumbsDown}
      label={up ? t.ask.feedback.up : t.ask.feedback.down}
      aria-pressed={rating?.thumbsUp === up}
      aria-disabled={rate.isPending}
      onClick={() => press(up)}
      className={cx(rating?.thumbsUp === up && (up ? 'bg-ok-soft text-ok' : 'bg-warn-soft text-warn'))}
    />
  );
  return (
    <>
      <div role="group" aria-label={t.ask.feedback.label} className="flex">
        {thumb(true)}
        {thumb(false)}
      </div>
      {asking && (
        <form
          className="order-last ml-2 w-full max-w-120"
          onSubmit={(event) => {
            event.preventDefault();
            rate.mutate({ thumbsUp: false, ...(comment.trim() && { comment: comment.trim() }) }, { onSuccess: () => (setAsking(false), say(t.ask.feedback.thanks)) });
          }}
        >
          <Field label={t.ask.feedback.comment} help={t.ask.feedback.commentHelp}>
            {(field) => <Textarea {...field} autoFocus rows={2} className="scroll-mb-48" maxLength={2000} value={comment} onChange={(event) => setComment(event.target.value)} />}
          </Field>
          <div className="mt-2 flex gap-2">
            <Button type="submit" look="primary" busy={rate.isPending} disabled={comment.trim() === ''}>
              {t.ask.feedback.send}
            </Button>
            <Button look="quiet" onClick={() => setAsking(false)}>
              {t.ask.feedback.skip}
            </Button>
          </div>
        </form>
      )}
      {rate.isError && <Failure error={rate.error} className="order-last ml-2 w-full" />}
    </>
  );
}
