import { Link } from '@tanstack/react-router';
import { Plug } from 'lucide-react';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { useTitle } from '~/ui/Page';

export default function Connect() {
  useTitle(t.soon.connect.title);
  return (
    <Empty
      icon={Plug}
      title={t.soon.connect.title}
      action={
        <Link to="/data" className={buttonClass('plain')}>
          {t.soon.button}
        </Link>
      }
    >
      {t.soon.connect.text}
    </Empty>
  );
}
