import { Link } from '@tanstack/react-router';
import { MessageSquareText } from 'lucide-react';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { useTitle } from '~/ui/Page';

export default function Ask() {
  useTitle(t.soon.ask.title);
  return (
    <Empty
      icon={MessageSquareText}
      title={t.soon.ask.title}
      action={
        <Link to="/data" className={buttonClass('plain')}>
          {t.soon.button}
        </Link>
      }
    >
      {t.soon.ask.text}
    </Empty>
  );
}
