import { lazyRouteComponent } from '@tanstack/react-router';
import { somethingUnsaved } from '~/unsaved';

const flag = 'quern.reloaded';

/**
 * Loads a part of the page when it is needed. After an upgrade of the service the files that an open tab knows are gone: the load is
 * tried again, and then the page is loaded anew, once, unless something would be lost.
 */
export async function retried<T>(load: () => Promise<T>): Promise<T> {
  try {
    const part = await load();
    sessionStorage.removeItem(flag);
    return part;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  try {
    return await load();
  } catch (cause) {
    if (!somethingUnsaved() && sessionStorage.getItem(flag) === null) {
      sessionStorage.setItem(flag, 'yes');
      location.reload();
      return new Promise<never>(() => undefined);
    }
    throw cause;
  }
}

export function screen<T extends Record<string, unknown>>(load: () => Promise<T>) {
  return lazyRouteComponent(() => retried(load));
}
