import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api, take } from '~/api/client';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { Field, Input, Select } from '~/ui/Field';
import { say } from '~/ui/toast';
import { type Kind, limits } from './queries';

const texts = t.operation.form;
type Whom = keyof typeof texts.whoms;

export function NewLimit({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const form = useId();
  const [whom, setWhom] = useState<Whom>('everyone');
  const [name, setName] = useState('');
  const [kind, setKind] = useState<Kind>('questions');
  const [amount, setAmount] = useState('');
  const [tried, setTried] = useState(false);
  const noName = whom !== 'everyone' && name.trim() === '';
  const noNumber = amount.trim() !== '' && !/^\d{1,15}$/.test(amount.trim());
  const noAmount = amount.trim() === '' && whom === 'everyone';
  const set = useMutation({
    mutationFn: () =>
      take(api.PUT('/operator/limits', { body: { kind, ...(whom !== 'everyone' && { [whom]: name.trim() }), ...(amount.trim() !== '' && { amount: Number(amount) }) } })),
    onSuccess: async () => {
      onClose();
      say(texts.saved);
      await queries.invalidateQueries({ queryKey: limits.queryKey });
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={texts.title}
      footer={
        <>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button look="primary" type="submit" form={form} busy={set.isPending}>
            {texts.save}
          </Button>
        </>
      }
    >
      <form
        id={form}
        noValidate
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (!noName && !noNumber && !noAmount) set.mutate();
        }}
      >
        <Field label={texts.whom}>
          {(field) => (
            <Select {...field} value={whom} onChange={(event) => setWhom(event.target.value as Whom)}>
              {Object.entries(texts.whoms).map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {whom !== 'everyone' && (
          <Field label={texts[whom]} help={whom === 'group' ? texts.groupHelp : undefined} fault={tried && noName ? texts.missing : undefined}>
            {(field) => <Input {...field} value={name} spellCheck={false} autoComplete="off" onChange={(event) => setName(event.target.value)} />}
          </Field>
        )}
        <Field label={texts.kind}>
          {(field) => (
            <Select {...field} value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
              {Object.entries(t.account.kinds).map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field
          label={texts.amount}
          help={`${texts.units[kind]}${whom === 'everyone' ? '' : ` ${texts.unlimited}`}`}
          fault={tried && noNumber ? texts.notANumber : tried && noAmount ? texts.missing : undefined}
        >
          {(field) => <Input {...field} value={amount} inputMode="numeric" autoComplete="off" onChange={(event) => setAmount(event.target.value)} />}
        </Field>
        {set.isError && <Failure error={set.error} />}
      </form>
    </Dialog>
  );
}
