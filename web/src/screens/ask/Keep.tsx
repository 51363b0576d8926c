import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, newKey, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Textarea } from '~/ui/Field';
import { Sql } from '~/ui/Sql';
import { say } from '~/ui/toast';
import { type Where, verifiedQuestions } from './runs';

/** Keeps the question with its statement, so that it answers everybody who asks the same. */
export function Keep({ runId, question, statement, where, onClose, onKept }: { runId: string; question: string; statement: string; where: Where; onClose: () => void; onKept: () => void }) {
  const queries = useQueryClient();
  const key = useRef(newKey());
  const [words, setWords] = useState(question);
  const [others, setOthers] = useState('');
  const wordings = others.split('\n').map((line) => line.trim()).filter(Boolean);
  const keep = useMutation({
    mutationFn: () =>
      take(
        api.POST('/verified/{username}/{namespace}', {
          params: { path: where, header: { 'Idempotency-Key': key.current } },
          body: { runId, ...(words.trim() !== question && { question: words.trim() }), ...(wordings.length > 0 && { wordings }) },
        }),
      ),
    onSuccess: () => {
      say(t.ask.keep.done);
      void queries.invalidateQueries({ queryKey: verifiedQuestions(where).queryKey });
      onKept();
      onClose();
    },
    onError: () => {
      // Another try is another request.
      key.current = newKey();
    },
  });
  const forbidden = keep.error instanceof ApiError && keep.error.code === 'FORBIDDEN';
  return (
    <Dialog
      open
      onClose={onClose}
      title={t.ask.keep.title}
      size="lg"
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" busy={keep.isPending} disabled={words.trim() === '' || wordings.length > 20} onClick={() => keep.mutate()}>
            {t.ask.keep.button}
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          keep.mutate();
        }}
      >
        <p className="text-text-2">{t.ask.keep.text}</p>
        <Field label={t.ask.keep.question}>{(field) => <Input {...field} autoFocus maxLength={500} value={words} onChange={(event) => setWords(event.target.value)} />}</Field>
        <Field label={t.ask.keep.wordings} help={t.ask.keep.wordingsHelp}>
          {(field) => <Textarea {...field} rows={3} value={others} onChange={(event) => setOthers(event.target.value)} />}
        </Field>
        <div>
          <p className="mb-1 font-medium">{t.ask.keep.query}</p>
          <Sql text={statement} className="max-h-50" />
        </div>
        {keep.isError && <Failure error={forbidden ? new ApiError({ code: 'FORBIDDEN', message: t.ask.keep.needsEditor }) : keep.error} />}
      </form>
    </Dialog>
  );
}
