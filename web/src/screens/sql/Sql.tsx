import { Link } from '@tanstack/react-router';
import { SquareTerminal } from 'lucide-react';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';
import { Empty } from '~/ui/Empty';
import { useTitle } from '~/ui/Page';

export default function Sql() {
  useTitle(t.soon.sql.title);
  return (
    <Empty
      icon={SquareTerminal}
      title={t.soon.sql.title}
      action={
        <Link to="/data" className={buttonClass('plain')}>
          {t.soon.button}
        </Link>
      }
    >
      {t.soon.sql.text}
    </Empty>
  );
}
