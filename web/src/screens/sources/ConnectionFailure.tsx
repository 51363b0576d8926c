import { ApiError } from '~/api/errors';
import { t } from '~/texts';
import { Failure } from '~/ui/Failure';

/** What went wrong with a connection. Its owner gives the right to use it, which is not a role. */
export function ConnectionFailure({ error, className }: { error: unknown; className?: string }) {
  const isForbidden = error instanceof ApiError && error.code === 'FORBIDDEN';
  return <Failure error={error} next={isForbidden ? t.sources.share.forbidden : undefined} {...(className && { className })} />;
}
