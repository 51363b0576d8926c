import type { Schemas } from '~/api/client';
import type { Ref } from '~/api/queries';

/** What every tab of a dataset gets. */
export type Part = { at: Ref; metadata: Schemas['DatasetMetadata']; role: Schemas['Role'] };
