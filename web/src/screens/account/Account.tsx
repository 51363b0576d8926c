import { Link } from '@tanstack/react-router';
import { UserRound } from 'lucide-react';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { useTitle } from '~/ui/Page';

export default function Account() {
  useTitle(t.soon.account.title);
  return (
    <Empty
      icon={UserRound}
      title={t.soon.account.title}
      action={
        <Link to="/data" className={buttonClass('plain')}>
          {t.soon.button}
        </Link>
      }
    >
      {t.soon.account.text}
    </Empty>
  );
}
