import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { LogOut } from 'lucide-react';
import { useState } from 'react';
import { api, take } from '~/api/client';
import { keyOf, pathOf } from '~/api/queries';
import { t } from '~/texts';
import { Button } from '~/ui/Button';
import { Dialog } from '~/ui/Dialog';
import { Failure } from '~/ui/Failure';
import { say } from '~/ui/toast';
import { ShareList } from '../sharing/ShareList';
import type { Part } from './part';

const texts = t.dataset.sharing;

export default function Sharing(part: Part) {
  return part.role === 'owner' ? (
    <div className="max-w-190">
      <ShareList of={part.at} />
    </div>
  ) : (
    <Leave {...part} />
  );
}

function Leave({ at }: Part) {
  const [open, setOpen] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const leave = useMutation({
    mutationFn: () => take(api.DELETE('/permissions/datasets/{username}/{namespace}/{datasetName}/shares/self', { params: { path: pathOf(at) } })),
    onSuccess: async () => {
      say(texts.left);
      await navigate({ to: '/data' });
      queries.removeQueries({ queryKey: keyOf(at) });
      await queries.invalidateQueries({ queryKey: ['datasets'] });
    },
  });
  return (
    <div className="max-w-120">
      <p className="mb-4 text-text-2">{texts.ownerOnly}</p>
      <Button icon={LogOut} onClick={() => setOpen(true)}>
        {texts.leave}
      </Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={texts.leave}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{t.common.cancel}</Button>
            <Button look="danger" busy={leave.isPending} onClick={() => leave.mutate()}>
              {texts.leave}
            </Button>
          </>
        }
      >
        <p className="text-text-2">{texts.leaveText}</p>
        {leave.isError && <Failure error={leave.error} className="mt-4" />}
      </Dialog>
    </div>
  );
}
