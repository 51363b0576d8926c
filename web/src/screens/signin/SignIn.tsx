import { useSearch } from '@tanstack/react-router';
import { LogIn } from 'lucide-react';
import { useState } from 'react';
import { auth, local } from '~/auth/auth';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Mark } from '~/ui/Mark';
import { useTitle } from '~/ui/Page';

export function SignIn() {
  const { returnTo, reason } = useSearch({ from: '/signin' });
  const [state, setState] = useState<'ready' | 'going' | 'unreachable'>('ready');
  useTitle(t.signIn.button);
  const go = () => {
    setState('going');
    auth()
      .signIn(local(returnTo))
      .catch(() => setState('unreachable'));
  };
  const reasons = t.signIn.reasons;
  const told = reason && (reason === 'other' || !(reason in reasons) ? reasons.other(reason) : (reasons[reason as keyof typeof reasons] as string));
  return (
    <main className="flex min-h-full flex-col items-center justify-center px-6 py-12">
      <div className="appear w-full max-w-90">
        <div className="mb-8 flex items-center gap-3">
          <Mark size={36} />
          <span className="text-xl font-semibold tracking-tight">{t.product}</span>
        </div>
        <h1 className="text-2xl tracking-tight">{t.signIn.title}</h1>
        <p className="mt-2 text-lg text-text-2 text-pretty">{t.signIn.lead}</p>
        {told && (
          <p role="status" className="mt-6 rounded-md border border-line bg-info-soft px-4 py-3 text-info">
            {told}
          </p>
        )}
        {state === 'unreachable' && (
          <div role="alert" className="mt-6 rounded-md border border-danger/30 bg-danger-soft px-4 py-3">
            <p className="font-medium text-danger">{t.signIn.unreachable}</p>
            <p className="mt-1 text-text-2">{t.signIn.unreachableNext}</p>
          </div>
        )}
        <Button look="primary" icon={LogIn} busy={state === 'going'} onClick={go} autoFocus className="mt-8 h-11 w-full text-lg">
          {state === 'going' ? t.signIn.going : t.signIn.button}
        </Button>
      </div>
    </main>
  );
}
