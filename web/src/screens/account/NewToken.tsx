import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Check, Copy as CopyIcon, KeyRound, X } from 'lucide-react';
import { useEffect, useId, useRef, useState } from 'react';
import { api, newKey, take } from '~/api/client';
import { ApiError } from '~/api/errors';
import { datasets, me, namespaces } from '~/api/queries';
import { formatDay } from '~/format/time';
import { t } from '~/texts';
import { Button, IconButton } from '~/ui/Button';
import { Copy } from '~/ui/Copy';
import { cx } from '~/ui/cx';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { useUnsaved } from '~/unsaved';
import { type Created, expiryOf, type Target, targetText, tokens } from './tokens';

const text = t.account.newToken;
const lifetimes = ['7', '30', '90', '365', 'date'] as const;

/** Asks for a token and shows its value, which nobody can see again. */
export function NewToken({ open, onClose, suggestion = '' }: { open: boolean; onClose: () => void; suggestion?: string }) {
  const [created, setCreated] = useState<Created>();
  const close = () => {
    setCreated(undefined);
    onClose();
  };
  if (!open) return null;
  return created ? <Value token={created} onClose={close} /> : <Form suggestion={suggestion} onClose={close} onCreated={setCreated} />;
}

function Form({ suggestion, onClose, onCreated }: { suggestion: string; onClose: () => void; onCreated: (token: Created) => void }) {
  const client = useQueryClient();
  const form = useId();
  const key = useRef(newKey());
  const [name, setName] = useState(suggestion);
  const [role, setRole] = useState<'viewer' | 'editor' | 'owner'>('viewer');
  const [life, setLife] = useState<(typeof lifetimes)[number]>('90');
  const [date, setDate] = useState(() => new Date(Date.now() + 90 * 86_400_000).toISOString().slice(0, 10));
  const [limited, setLimited] = useState(false);
  const [targets, setTargets] = useState<Target[]>([]);
  const [asked, setAsked] = useState(false);
  const expiresAt = expiryOf(life, date);
  const create = useMutation({
    mutationFn: () =>
      take(
        api.POST('/user/tokens', {
          params: { header: { 'Idempotency-Key': key.current } },
          body: { name: name.trim(), role, expiresAt: expiresAt ?? null, accessRestrictedTo: limited ? targets : [] },
        }),
      ),
    onSuccess: (token) => {
      onCreated(token);
      void client.invalidateQueries({ queryKey: tokens.queryKey });
    },
    onError: () => {
      // Another try with other values is another intention.
      key.current = newKey();
    },
  });
  const error = create.error instanceof ApiError ? create.error : undefined;
  const faults = {
    name: asked && name.trim() === '' ? text.nameMissing : error?.field('name'),
    expiry: asked && !expiresAt ? text.datePast : error?.field('expiresAt'),
    targets: asked && limited && targets.length === 0 ? text.onlyMissing : error?.subErrors.find(({ code }) => code.startsWith('accessRestrictedTo'))?.message,
    role: error?.field('role'),
  };
  const send = () => {
    setAsked(true);
    if (name.trim() === '' || !expiresAt || (limited && targets.length === 0) || create.isPending) return;
    create.mutate();
  };
  const known = Object.values(faults).some(Boolean);
  return (
    <Dialog
      open
      onClose={onClose}
      title={text.title}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={create.isPending}>
            {text.create}
          </Button>
        </>
      }
    >
      <form
        id={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        className="flex flex-col gap-4"
      >
        <p className="text-text-2">{text.lead}</p>
        <Field label={text.name} help={text.nameHelp} fault={faults.name}>
          {(field) => <Input {...field} autoFocus value={name} maxLength={100} placeholder={text.namePlaceholder} autoComplete="off" onChange={(event) => setName(event.target.value)} />}
        </Field>
        <fieldset>
          <legend className="mb-1 font-medium">{text.role}</legend>
          <div className="flex flex-col gap-2">
            {(['viewer', 'editor', 'owner'] as const).map((one) => (
              <Choice key={one} name={`${form}-role`} checked={role === one} disabled={one === 'owner' && limited} onChange={() => setRole(one)} title={text.roles[one][0]} text={text.roles[one][1]} />
            ))}
          </div>
          {faults.role && <p className="mt-1 text-xs text-danger">{faults.role}</p>}
        </fieldset>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={text.expires} fault={life === 'date' ? undefined : faults.expiry}>
            {(field) => (
              <Select {...field} value={life} onChange={(event) => setLife(event.target.value as typeof life)}>
                {lifetimes.map((one) => (
                  <option key={one} value={one}>
                    {text.lifetimes[one]}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          {life === 'date' ? (
            <Field label={text.date} fault={faults.expiry}>
              {(field) => <Input {...field} type="date" value={date} onChange={(event) => setDate(event.target.value)} />}
            </Field>
          ) : (
            expiresAt && <p className="self-end pb-1.5 text-text-3">{text.until(formatDay(expiresAt))}</p>
          )}
        </div>
        <fieldset>
          <legend className="mb-1 font-medium">{text.sees}</legend>
          <div className="flex flex-col gap-2">
            <Choice name={`${form}-sees`} checked={!limited} onChange={() => setLimited(false)} title={text.all[0]} text={text.all[1]} />
            <Choice
              name={`${form}-sees`}
              checked={limited}
              onChange={() => {
                setLimited(true);
                if (role === 'owner') setRole('editor');
              }}
              title={text.only[0]}
              text={text.only[1]}
            />
          </div>
          {limited && <Targets targets={targets} fault={faults.targets} onChange={setTargets} />}
        </fieldset>
        {create.isError && !known && <Failure error={create.error} />}
      </form>
    </Dialog>
  );
}

function Choice({ name, checked, disabled = false, onChange, title, text: said }: { name: string; checked: boolean; disabled?: boolean; onChange: () => void; title: string; text: string }) {
  return (
    <label
      className={cx(
        'flex items-start gap-3 rounded-md border px-3 py-2 transition-colors duration-120',
        checked ? 'border-accent bg-accent-soft' : 'border-control hover:bg-hover',
        disabled && 'pointer-events-none opacity-50',
        'has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-info',
      )}
    >
      <input type="radio" name={name} checked={checked} disabled={disabled} onChange={onChange} className="mt-1 accent-accent focus-visible:outline-none" />
      <span>
        <span className="block font-medium">{title}</span>
        <span className="block text-sm text-text-2">{said}</span>
      </span>
    </label>
  );
}

/** The namespaces and datasets that a token is limited to. */
function Targets({ targets, fault, onChange }: { targets: Target[]; fault: string | undefined; onChange: (targets: Target[]) => void }) {
  const self = useQuery(me).data?.username ?? '';
  const spaces = useQuery(namespaces);
  const list = useInfiniteQuery(datasets(''));
  const options: Target[] = [
    ...(spaces.data?.data ?? []).map(({ username, name }) => ({ username, namespace: name })),
    ...(list.data?.pages ?? []).flatMap((page) => page.data).map(({ username, namespace, name }) => ({ username, namespace, dataset: name })),
  ];
  const chosen = new Set(targets.map((target) => targetText(target, self)));
  const left = options.map((target) => ({ target, text: targetText(target, self) })).filter((one) => !chosen.has(one.text));
  return (
    <div className="mt-2">
      <Field label={text.add} hideLabel fault={fault}>
        {(field) => (
          <Select
            {...field}
            value=""
            onChange={(event) => {
              const found = left.find((one) => one.text === event.target.value);
              if (found) onChange([...targets, found.target]);
            }}
          >
            <option value="">{text.add}</option>
            {left
              .toSorted((a, b) => a.text.localeCompare(b.text))
              .map((one) => (
                <option key={one.text} value={one.text}>
                  {one.target.dataset ? one.text : text.whole(one.text)}
                </option>
              ))}
          </Select>
        )}
      </Field>
      {targets.length > 0 && (
        <ul className="mt-2 flex flex-wrap gap-2">
          {targets.map((target) => {
            const name = targetText(target, self);
            return (
              <li key={name} className="flex h-7 max-w-full items-center rounded-sm bg-sunken pl-2 text-sm">
                <span className="truncate">{target.dataset ? name : text.whole(name)}</span>
                <IconButton icon={X} label={text.remove(name)} className="size-7" onClick={() => onChange(targets.filter((one) => one !== target))} />
              </li>
            );
          })}
        </ul>
      )}
    </div>
  );
}

/** The value, once. It closes only on purpose as long as it was not copied. */
function Value({ token, onClose }: { token: Created; onClose: () => void }) {
  const [copied, setCopied] = useState(false);
  const [sure, setSure] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useUnsaved(!copied);
  useEffect(() => button.current?.focus(), []);
  const line = `export QUERN_TOKEN=${token.token}`;
  const leave = () => {
    if (copied || sure) onClose();
    else setSure(true);
  };
  return (
    <Dialog
      open
      onClose={leave}
      title={text.created(token.name)}
      footer={
        <Button look={copied ? 'primary' : sure ? 'danger' : 'plain'} onClick={leave}>
          {copied ? text.done : sure ? text.closeAnyway : t.common.close}
        </Button>
      }
    >
      <p className="mb-4 flex items-start gap-2 rounded-md bg-warn-soft px-3 py-2 text-warn" role={sure && !copied ? 'alert' : undefined}>
        <KeyRound size={16} strokeWidth={1.75} aria-hidden className="mt-0.5 shrink-0" />
        {sure && !copied ? text.notCopied : text.once}
      </p>
      <div className="flex flex-wrap items-center gap-2 rounded-md border border-line bg-sunken p-3">
        <code className="mono min-w-0 grow basis-60 [overflow-wrap:anywhere]" data-testid="token">
          {token.token}
        </code>
        <Button
          ref={button}
          look="primary"
          icon={copied ? Check : CopyIcon}
          onClick={() => {
            void navigator.clipboard.writeText(token.token).then(() => setCopied(true));
          }}
        >
          {copied ? t.common.copied : t.common.copy}
        </Button>
      </div>
      <p className="mt-4 mb-1 text-text-2">{text.shell}</p>
      <div className="flex items-center gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
        <code className="mono min-w-0 grow truncate">{line}</code>
        <span onClickCapture={() => setCopied(true)}>
          <Copy text={line} />
        </span>
      </div>
    </Dialog>
  );
}
