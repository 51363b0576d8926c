import { Link } from '@tanstack/react-router';
import { Upload } from 'lucide-react';
import type { Ref } from '~/api/queries';
import { t } from '~/texts';
import { buttonClass } from '~/ui/Button';

/** Leads to the upload into a dataset. It is not for viewers. */
export function AddRows({ to, look = 'primary' }: { to: Ref; look?: 'primary' | 'plain' }) {
  return (
    <Link to="/upload" search={{ into: `${to.owner}/${to.namespace}/${to.dataset}` }} className={buttonClass(look)}>
      <Upload size={16} strokeWidth={1.75} aria-hidden />
      {t.dataset.add}
    </Link>
  );
}
