import { createContext, use } from 'react';
import type { Config } from '~/config';

export const ConfigContext = createContext<Config | null>(null);

/** The settings of the page. */
export function useConfig(): Config {
  const config = use(ConfigContext);
  if (!config) throw new Error('the settings are used before the page has started');
  return config;
}
