import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation, useNavigate } from '@tanstack/react-router';
import { Link2Off, MessageSquareText, Play } from 'lucide-react';
import { t } from '~/texts';
import { Button, buttonClass } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Empty } from '~/ui/Empty';
import { Failure } from '~/ui/Failure';
import { frame, useTitle } from '~/ui/Page';
import { Sql } from '~/ui/Sql';
import { Emphasis } from './Answer';
import { decode } from './link';
import { Outcome, useRunQuery } from './Query';
import { ask } from './runs';

/** A question that somebody sent. Nothing runs before the reader says so, and then with the reader's rights. */
export default function Shared() {
  useTitle(t.ask.link.title);
  const shared = decode(useLocation({ select: (location) => location.hash }));
  const queries = useQueryClient();
  const navigate = useNavigate();
  const run = useRunQuery(shared?.where ?? { username: '', namespace: '' });
  const own = useMutation({
    mutationFn: async () => {
      if (!shared) return;
      const started = await ask(queries, { where: shared.where, text: shared.question, datasets: [] });
      await navigate({ to: '/ask/$conversation', params: { conversation: started.conversationId }, search: { run: started.runId } });
    },
  });
  if (!shared) {
    return (
      <Empty
        icon={Link2Off}
        title={t.ask.link.broken}
        action={
          <Link to="/" className={buttonClass('primary')}>
            {t.ask.conversation.newQuestion}
          </Link>
        }
      >
        {t.ask.link.brokenText}
      </Empty>
    );
  }
  return (
    <div className={cx(frame, 'py-8')}>
      <p className="text-sm text-text-3">
        {t.ask.link.title} · {shared.where.username} / {shared.where.namespace}
      </p>
      <h1 className="mt-1 text-xl [overflow-wrap:anywhere]">{shared.question}</h1>
      {shared.meaning && (
        <p className="mt-2 text-sm text-text-2 [overflow-wrap:anywhere]">
          <span className="text-text-3">{t.ask.answer.understood} </span>
          <Emphasis text={shared.meaning} />
        </p>
      )}
      <p className="mt-2 max-w-190 text-text-2">{t.ask.link.text}</p>
      <Sql text={shared.statement} className="mt-4 max-h-100 max-w-264" />
      <div className="mt-4 mb-6 flex flex-wrap gap-2">
        <Button look="primary" icon={Play} busy={run.isPending} onClick={() => run.mutate(shared.statement)}>
          {t.ask.link.run}
        </Button>
        <Button icon={MessageSquareText} busy={own.isPending} onClick={() => own.mutate()}>
          {t.ask.link.ask}
        </Button>
      </div>
      {own.isError && <Failure error={own.error} className="mb-4" />}
      <Outcome run={run} />
    </div>
  );
}
