/** What the page must know before anybody has signed in; the service sends it as /console.json. */
export type Config = {
  issuer: string;
  clientId: string;
  scope: string;
  storeOrigin: string;
  version: string;
  model: boolean;
  apiBase: string;
  mcpUrl: string;
  a2aUrl: string;
};

export async function loadConfig(): Promise<Config> {
  const response = await fetch('/console.json', { headers: { Accept: 'application/json' } });
  if (!response.ok) throw new Error(`The settings of the console could not be read (status ${response.status}).`);
  return (await response.json()) as Config;
}
