import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Bot, Braces, ExternalLink, KeyRound, type LucideIcon, Plug, SquareTerminal } from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react';
import { datasets, me } from '~/api/queries';
import { useConfig } from '~/configContext';
import { NewToken } from '~/screens/account/NewToken';
import { t } from '~/texts';
import { Button, buttonClass } from '~/ui/Button';
import { Copy } from '~/ui/Copy';
import { cx } from '~/ui/cx';
import { Failure } from '~/ui/Failure';
import { Field, Select } from '~/ui/Field';
import { Page } from '~/ui/Page';
import { a2aSnippets, addresses, cliSnippets, type Here, mcpSnippets, restSnippets, type Snippet } from './snippets';

const text = t.connect;

export default function Connect() {
  const config = useConfig();
  const account = useQuery(me);
  const list = useInfiniteQuery(datasets(''));
  const [chosen, setChosen] = useState<string>();
  const [creating, setCreating] = useState(false);
  const self = account.data?.username ?? '';
  const all = (list.data?.pages ?? []).flatMap((page) => page.data);
  const spaces = [...new Set(all.map(({ username, namespace }) => `${username}/${namespace}`))].toSorted((a, b) => Number(!a.startsWith(`${self}/`)) - Number(!b.startsWith(`${self}/`)) || a.localeCompare(b));
  const first = all[0];
  const space = chosen ?? (first ? `${first.username}/${first.namespace}` : `${self}/shop`);
  const [owner = self, namespace = 'shop'] = space.split('/');
  const here: Here = {
    ...addresses(config, location.origin),
    self,
    owner,
    namespace,
    dataset: all.find((item) => item.username === owner && item.namespace === namespace)?.name,
  };
  return (
    <Page title={text.title} lead={text.lead} wide>
      {[account, list].map((one, index) => one.isError && <Failure key={index} error={one.error} onRetry={() => void one.refetch()} className="mb-6" />)}
      <section className="mb-6 flex flex-wrap items-center gap-x-6 gap-y-4 rounded-md border border-line bg-surface p-4 sm:p-6">
        <span aria-hidden className="hidden size-11 shrink-0 items-center justify-center rounded-lg bg-accent-soft text-accent sm:flex">
          <KeyRound size={20} strokeWidth={1.75} />
        </span>
        <div className="min-w-0 grow basis-80">
          <h2 className="text-lg">{text.step}</h2>
          <p className="text-text-2 text-pretty">
            {text.stepText} {text.tokenHint}
          </p>
        </div>
        <div className="flex flex-wrap gap-2">
          <Button look="primary" onClick={() => setCreating(true)}>
            {text.create}
          </Button>
          <Link to="/account" className={buttonClass('plain')}>
            {text.manage}
          </Link>
        </div>
      </section>
      {spaces.length > 1 && (
        <Field label={text.namespace} className="mb-4 max-w-70">
          {(field) => (
            <Select {...field} value={space} onChange={(event) => setChosen(event.target.value)}>
              {spaces.map((one) => (
                <option key={one} value={one}>
                  {one.startsWith(`${self}/`) ? one.slice(self.length + 1) : one}
                </option>
              ))}
            </Select>
          )}
        </Field>
      )}
      <div className="grid grid-cols-1 gap-6 xl:grid-cols-2">
        <Card icon={Plug} title={text.mcp.title} lead={text.mcp.text} address={here.mcp} note={text.sees}>
          <Snippets label={text.hosts} all={mcpSnippets(here)} words={text.mcp.snippets} />
        </Card>
        <Card icon={Bot} title={text.a2a.title} lead={text.a2a.text} address={here.a2a}>
          <Snippets label={text.examples} all={a2aSnippets(here)} words={text.a2a.snippets} />
        </Card>
        <Card
          icon={Braces}
          title={text.rest.title}
          lead={text.rest.text}
          address={here.api}
          links={
            <>
              <Outside href={`${here.api}/docs`}>{text.rest.docs}</Outside>
              <Outside href={`${here.api}/openapi.json`}>{text.rest.contract}</Outside>
            </>
          }
        >
          <Snippets label={text.examples} all={restSnippets(here)} words={text.rest.snippets} />
        </Card>
        <Card icon={SquareTerminal} title={text.cli.title} lead={text.cli.text}>
          <Snippets label={text.examples} all={cliSnippets(here)} words={text.cli.snippets} />
        </Card>
      </div>
      <NewToken open={creating} onClose={() => setCreating(false)} />
    </Page>
  );
}

function Outside({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} target="_blank" rel="noreferrer" className="inline-flex items-center gap-1 text-accent underline decoration-accent/40 underline-offset-2 hover:decoration-current">
      {children}
      <ExternalLink size={12} strokeWidth={1.75} aria-hidden />
    </a>
  );
}

function Card({ icon: Icon, title, lead, address, links, note, children }: { icon: LucideIcon; title: string; lead: string; address?: string; links?: ReactNode; note?: string; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="row-span-2 grid min-w-0 grid-cols-1 grid-rows-subgrid gap-0 overflow-hidden rounded-md border border-line bg-surface">
      <div className="p-4 sm:p-6">
        <div className="flex items-center gap-2">
          <Icon size={20} strokeWidth={1.75} aria-hidden className="text-accent" />
          <h2 id={id} className="text-lg">
            {title}
          </h2>
          {links && <div className="ml-auto flex gap-4 text-sm">{links}</div>}
        </div>
        <p className="mt-1 text-text-2 text-pretty">
          {lead.split('`').map((piece, index) => (index % 2 === 1 ? <code key={index} className="mono text-text">{piece}</code> : piece))}
        </p>
        {address && (
          <div className="mt-3 flex items-center gap-2 rounded-md bg-sunken py-1 pr-1 pl-3">
            <span className="sr-only">{text.address}</span>
            <code tabIndex={0} className="fades mono min-w-0 grow overflow-x-auto whitespace-nowrap">{address}</code>
            <Copy text={address} label={text.copy(title)} />
          </div>
        )}
        {note && <p className="mt-3 text-sm text-text-3">{note}</p>}
      </div>
      {children}
    </section>
  );
}

/** Snippets behind tabs; the arrow keys move between them. */
function Snippets<Id extends string>({ label, all, words }: { label: string; all: Snippet<Id>[]; words: Record<Id, string[]> }) {
  const id = useId();
  const [chosen, setChosen] = useState(all[0]?.id);
  const list = useRef<HTMLDivElement>(null);
  const shown = all.find((one) => one.id === chosen) ?? all[0];
  const keys = (event: KeyboardEvent) => {
    const now = all.findIndex((one) => one.id === shown?.id);
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = all[(to + all.length) % all.length];
    setChosen(next?.id);
    list.current?.querySelector<HTMLElement>(`[data-id="${next?.id}"]`)?.focus();
  };
  if (!shown) return null;
  const [title = '', note = ''] = words[shown.id];
  return (
    <div className="border-t border-line">
      <div ref={list} role="tablist" aria-label={label} onKeyDown={keys} className="fades flex overflow-x-auto border-b border-line px-2 sm:px-4">
        {all.map((one) => (
          <button
            key={one.id}
            type="button"
            role="tab"
            id={`${id}-${one.id}`}
            data-id={one.id}
            aria-selected={one.id === shown.id}
            aria-controls={`${id}-panel`}
            tabIndex={one.id === shown.id ? 0 : -1}
            onClick={() => setChosen(one.id)}
            className={cx(
              '-mb-px h-10 shrink-0 border-b-2 px-2 whitespace-nowrap transition-colors duration-120 focus-visible:-outline-offset-2 pointer-coarse:h-11',
              one.id === shown.id ? 'border-accent font-medium text-text' : 'border-transparent text-text-2 hover:text-text',
            )}
          >
            {words[one.id][0]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${shown.id}`} className="p-4 sm:px-6">
        <p className="mb-2 text-sm text-text-2">{note}</p>
        <div className="overflow-hidden rounded-md border border-line bg-canvas">
          <div className="flex items-center justify-between gap-2 border-b border-line py-0.5 pr-0.5 pl-3">
            <span className="mono min-w-0 truncate text-text-3">{shown.file ?? text.terminal}</span>
            <Copy text={shown.text} label={text.copy(title)} />
          </div>
          <pre tabIndex={0} aria-label={title} className="mono max-h-80 overflow-auto p-3 leading-5 whitespace-pre-wrap [overflow-wrap:anywhere] focus-visible:-outline-offset-2">
            {shown.text}
          </pre>
        </div>
      </div>
    </div>
  );
}
