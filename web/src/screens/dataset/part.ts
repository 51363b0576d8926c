import type { Schemas } from '~/api/client';
import type { Ref } from '~/api/queries';

/** What every tab of a dataset gets. The rows of a table that is attached are changed only in its own catalog. */
export type Part = { at: Ref; metadata: Schemas['DatasetMetadata']; role: Schemas['Role']; attached: boolean };
