import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { Schemas } from '~/api/client';
import { datasets, me, namespaces } from '~/api/queries';
import { t } from '~/texts';
import { Segments } from '~/ui/Segments';
import { Skeleton } from '~/ui/Skeleton';
import { useKept } from '~/upload/kept';
import { nameFor, shortName } from '~/upload/parts';
import { sampleNamespace } from '~/upload/sample';
import { Target } from './Target';

const texts = t.upload;
const lastNamespace = 'quern.upload.namespace';

/** What becomes of the files of a session: one dataset of all of them, or one of each. */
export function Review({ session, into, onAgain }: { session: Schemas['Upload']; into: string | undefined; onAgain: () => void }) {
  const account = useQuery(me);
  const spaces = useQuery(namespaces);
  const files = session.files.filter((file) => file.fileStatus === 'completed');
  const [plan, setPlan] = useKept<'one' | 'each'>(`${session.sessionId}.plan`, sameKind(files.map((file) => file.filename)) ? 'one' : 'each');
  const all = useInfiniteQuery(datasets(''));
  if (!account.data || spaces.isPending || all.isPending) return <Skeleton lines={4} />;

  const own = (spaces.data?.data ?? []).filter((space) => space.username === account.data.username).map((space) => space.name);
  const kept = localStorage.getItem(lastNamespace);
  const namespace = kept && own.includes(kept) ? kept : (own.find((one) => one !== sampleNamespace) ?? 'files');
  const [owner = account.data.username, space = namespace, name] = into?.split('/') ?? [];
  const fixed = name !== undefined;
  // A short name is better in questions, but must not add the rows to a dataset that is there.
  const taken = new Set((all.data?.pages ?? []).flatMap((page) => page.data).map((one) => `${one.username}/${one.namespace}/${one.name}`.toLowerCase()));
  const nameOf = (group: typeof files) => {
    const long = nameFor(commonName(group.map((file) => file.filename)));
    const short = shortName(long);
    return groups.length > 1 || taken.has(`${owner}/${space}/${short}`.toLowerCase()) ? long : short;
  };
  const groups = fixed || plan === 'one' ? [files] : files.map((file) => [file]);
  return (
    <>
      {files.length > 1 && !fixed && (
        <div className="mb-6 flex flex-wrap items-center gap-3">
          <span className="text-text-2">{texts.plan.label}</span>
          <Segments
            label={texts.plan.label}
            value={plan}
            options={[
              ['one', texts.plan.one],
              ['each', texts.plan.each],
            ]}
            onChange={setPlan}
          />
        </div>
      )}
      <div className="flex flex-col gap-6">
        {groups.map((group) => (
          <Target
            key={group.map((file) => file.fileId).join()}
            sessionId={session.sessionId}
            files={group}
            start={{ owner, namespace: space, dataset: name ?? nameOf(group) }}
            fixed={fixed}
            namespaces={own}
            onNamespace={(value) => localStorage.setItem(lastNamespace, value)}
            onAgain={onAgain}
          />
        ))}
      </div>
    </>
  );
}

/** `orders-2024.csv` and `orders-2025.csv` belong together; `orders.csv` and `customers.csv` do not. */
function sameKind(names: string[]): boolean {
  return new Set(names.map((name) => nameFor(name).replace(/[\d._-]+/g, ''))).size <= 1;
}

function commonName(names: string[]): string {
  const [first = ''] = names;
  if (names.length < 2) return first;
  let length = 0;
  while (length < first.length && names.every((name) => name[length] === first[length])) length += 1;
  return first.slice(0, length).replace(/[\d._\- ]+$/, '') || first;
}
