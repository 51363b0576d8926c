import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Coffee } from 'lucide-react';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { offer } from '~/upload/current';
import { loadSample } from '~/upload/sample';
import { Drop } from '../upload/Drop';

const texts = t.start;

/** What a person without any data sees: one sentence, a place for files, and a sample to try. `page` if it is a page of its own. */
export default function Start({ title, page = false }: { title: string; page?: boolean }) {
  const Heading = page ? 'h1' : 'h2';
  const queries = useQueryClient();
  const navigate = useNavigate();
  const sample = useMutation({
    mutationFn: () => loadSample(),
    onSuccess: async (at) => {
      await Promise.all([queries.invalidateQueries({ queryKey: ['datasets'] }), queries.invalidateQueries({ queryKey: ['namespaces'] })]);
      await navigate({ to: '/', search: { about: `${at.owner}/${at.namespace}/${at.dataset}`, q: texts.question } });
    },
  });
  return (
    <div className={cx('appear mx-auto w-full max-w-170 pb-12 text-center', page ? 'px-4 pt-8 sm:px-8 sm:pt-[8vh]' : 'pt-4 sm:px-8')}>
      <Heading className={page ? 'text-2xl tracking-tight text-balance' : 'text-lg'}>{title}</Heading>
      <p className="mx-auto mt-2 mb-6 max-w-120 text-text-2 text-balance">{texts.text}</p>
      <Drop
        busy={false}
        onFiles={(files) => {
          offer(files);
          void navigate({ to: '/upload' });
        }}
      />
      <div className="mt-4 flex flex-wrap items-center justify-between gap-x-6 gap-y-3 rounded-md border border-line bg-surface px-6 py-4 text-left">
        <div className="min-w-0 grow basis-70">
          <p className="font-medium">{texts.noFileYet}</p>
          <p className="text-sm text-text-2">{texts.sampleText}</p>
        </div>
        <Button icon={Coffee} busy={sample.isPending} onClick={() => sample.mutate()}>
          {sample.isPending ? texts.loading : texts.sample}
        </Button>
      </div>
      {sample.isError && <Failure error={sample.error} onRetry={() => sample.mutate()} className="mt-4 text-left" />}
    </div>
  );
}
