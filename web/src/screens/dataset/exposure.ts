import type { Schemas } from '~/api/client';

type Exposure = Schemas['Exposure'];

const order: readonly Exposure[] = ['schema', 'values', 'rows'];

/** Whether models see more than before. As long as the present state is not known, everything but the least is more. */
export function widens(from: Exposure | undefined, to: Exposure): boolean {
  return order.indexOf(to) > (from ? order.indexOf(from) : 0);
}
