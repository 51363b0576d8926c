import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { ApiError, type ErrorCode } from '~/api/errors';
import { t } from '~/texts';
import { ConnectionFailure } from './ConnectionFailure';

const shown = (code: ErrorCode) => renderToStaticMarkup(<ConnectionFailure error={new ApiError({ code, message: 'Only the owner of a connection may share it.' })} />);

test('a right that is missing on a connection is not a role on a dataset', () => {
  expect(shown('FORBIDDEN')).toContain('quern connection share');
  expect(shown('FORBIDDEN')).not.toContain(t.failure.next.FORBIDDEN);
  expect(shown('CONFLICT')).toContain(t.failure.next.CONFLICT);
});
