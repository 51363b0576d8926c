import type { t } from '~/texts';

/** What the snippets are about. */
export type Here = {
  /** The address of the service, without a slash at its end. */
  service: string;
  /** The address of the API, ending with /api/v1. */
  api: string;
  mcp: string;
  a2a: string;
  /** The caller; names of others' namespaces have their owner. */
  self: string;
  owner: string;
  namespace: string;
  dataset: string | undefined;
};

type Given = { apiBase?: string; mcpUrl?: string; a2aUrl?: string };

/** The addresses as other programs reach them: those that the service names, or else those of this page. */
export function addresses(config: Given, origin: string): Pick<Here, 'service' | 'api' | 'mcp' | 'a2a'> {
  const absolute = (address: string) => new URL(address, origin).href.replace(/\/+$/, '');
  const mcp = config.mcpUrl || `${config.apiBase || '/api/v1'}/mcp`;
  // The base of the API is a path of this page. Behind another address, the one that the service names counts.
  const api = config.mcpUrl && absolute(config.mcpUrl).endsWith('/mcp') ? absolute(config.mcpUrl).slice(0, -'/mcp'.length) : absolute(config.apiBase || '/api/v1');
  return { service: new URL(api).origin, api, mcp: absolute(mcp), a2a: absolute(config.a2aUrl || `${api}/a2a`) };
}

/** Text in single quotes for a shell, whatever it contains. */
export function shell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A name in double quotes for SQL, unless it is a plain one. */
const name = (text: string) => (/^[a-z_][a-z0-9_]*$/i.test(text) ? text : `"${text.replaceAll('"', '""')}"`);

/** Its title and what to know about it are in the texts, by id. */
export type Snippet<Id extends string = string> = { id: Id; /** The file that the text belongs into. */ file?: string; text: string };

const json = (value: unknown) => JSON.stringify(value, null, 2);

export function mcpSnippets({ mcp }: Here): Snippet<keyof typeof t.connect.mcp.snippets>[] {
  return [
    {
      id: 'claude-code',
      text: `claude mcp add --transport http quern ${mcp} --header "Authorization: Bearer $QUERN_TOKEN"`,
    },
    {
      id: 'vscode',
      file: '.vscode/mcp.json',
      text: json({
        inputs: [{ type: 'promptString', id: 'quern-token', description: 'API token of Quern', password: true }],
        servers: { quern: { type: 'http', url: mcp, headers: { Authorization: 'Bearer ${input:quern-token}' } } },
      }),
    },
    {
      id: 'cursor',
      file: '~/.cursor/mcp.json',
      text: json({ mcpServers: { quern: { url: mcp, headers: { Authorization: 'Bearer ${env:QUERN_TOKEN}' } } } }),
    },
    {
      id: 'stdio',
      file: 'claude_desktop_config.json',
      text: json({ mcpServers: { quern: { command: 'quern', args: ['mcp'] } } }),
    },
    {
      id: 'curl',
      text: `curl -sS ${mcp} -H "Authorization: Bearer $QUERN_TOKEN" \\
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
  -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'`,
    },
  ];
}

export function a2aSnippets({ a2a, owner, namespace }: Here): Snippet<keyof typeof t.connect.a2a.snippets>[] {
  const body = (method: string) =>
    `{
  "jsonrpc": "2.0", "id": 1, "method": "${method}",
  "params": {"message": {"messageId": "'"$(uuidgen)"'", "role": "ROLE_USER",
    "parts": [{"text": "How many rows are there?"}],
    "metadata": {"namespace": "${owner}/${namespace}"}}}}`;
  const head = `-H "Authorization: Bearer $QUERN_TOKEN" \\
  -H 'Content-Type: application/json' -H 'A2A-Version: 1.0'`;
  return [
    { id: 'catalog', text: `curl -sS ${a2a}` },
    { id: 'stream', text: `curl -sSN ${a2a}/assistant ${head} -d '${body('SendStreamingMessage')}'` },
    { id: 'send', text: `curl -sS ${a2a}/nl2ql ${head} -d '${body('SendMessage')}'` },
  ];
}

export function restSnippets({ api, self, owner, namespace, dataset }: Here): Snippet<keyof typeof t.connect.rest.snippets>[] {
  const from = dataset ? `SELECT * FROM ${name(dataset)} LIMIT 10` : 'SHOW TABLES';
  const sent = (value: unknown) => shell(JSON.stringify(value)).replaceAll('\n', ' ');
  const head = `-H "Authorization: Bearer $QUERN_TOKEN"`;
  return [
    { id: 'me', text: `curl -sS ${api}/user/me ${head}` },
    {
      id: 'query',
      text: `curl -sS ${api}/query ${head} -H 'Content-Type: application/json' \\
  -d ${sent({ username: owner, namespace, query: from })}`,
    },
    {
      id: 'ask',
      text: `curl -sS ${api}/query/ask ${head} -H 'Content-Type: application/json' -H 'Accept: text/event-stream' \\
  -d ${sent({ username: owner, namespace, query: 'How many rows are there?' })}`,
    },
    // Rows are added to datasets of one's own.
    ...(owner === self
      ? [
          {
            id: 'load' as const,
            text: `curl -sS ${api}/ingest/${encodeURIComponent(namespace)}/${encodeURIComponent(dataset ?? 'orders')} ${head} -H 'Content-Type: application/json' \\
  -d '{"data": [{"day": "2026-11-30", "total": 19.9}]}'`,
          },
        ]
      : []),
  ];
}

export function cliSnippets({ service, self, owner, namespace, dataset }: Here): Snippet<keyof typeof t.connect.cli.snippets>[] {
  const space = owner === self ? namespace : `${owner}/${namespace}`;
  const target = `${space}/${dataset ?? 'orders'}`;
  return [
    { id: 'login', text: `quern login ${service}` },
    { id: 'ask', text: `quern ask -n ${space} 'How many rows are there?'` },
    { id: 'query', text: `quern query -n ${space} ${shell(dataset ? `SELECT * FROM ${name(dataset)} LIMIT 10` : 'SHOW TABLES')}` },
    { id: 'upload', text: `quern upload FILE ${target}` },
    { id: 'script', text: `export QUERN_SERVER=${service}\nexport QUERN_TOKEN=…\nquern query -n ${space} 'SHOW TABLES' --output csv` },
  ];
}
