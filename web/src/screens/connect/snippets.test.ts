import { describe, expect, it } from 'vitest';
import { a2aSnippets, addresses, cliSnippets, type Here, mcpSnippets, restSnippets, shell } from './snippets';

const here: Here = {
  ...addresses({ apiBase: '/api/v1', mcpUrl: 'https://quern.example.org/api/v1/mcp', a2aUrl: 'https://quern.example.org/api/v1/a2a' }, 'http://127.0.0.1:8080'),
  self: 'ada',
  owner: 'ada',
  namespace: 'shop',
  dataset: 'orders-2026',
};

describe('addresses', () => {
  it('are those that the service names', () => {
    expect(here).toMatchObject({ service: 'https://quern.example.org', api: 'https://quern.example.org/api/v1', mcp: 'https://quern.example.org/api/v1/mcp', a2a: 'https://quern.example.org/api/v1/a2a' });
  });
  it('are those of the page if it names none', () => {
    expect(addresses({}, 'http://127.0.0.1:8080')).toEqual({ service: 'http://127.0.0.1:8080', api: 'http://127.0.0.1:8080/api/v1', mcp: 'http://127.0.0.1:8080/api/v1/mcp', a2a: 'http://127.0.0.1:8080/api/v1/a2a' });
    expect(addresses({ mcpUrl: '', a2aUrl: '/x/' }, 'http://h').a2a).toBe('http://h/x');
  });
});

describe('snippets', () => {
  const all = [...mcpSnippets(here), ...a2aSnippets(here), ...restSnippets(here), ...cliSnippets(here)];
  it('have the address of the service and no other', () => {
    for (const { text } of all) expect([...text.matchAll(/https?:\/\/[^/\s"]+/g)].every(([address]) => address === 'https://quern.example.org')).toBe(true);
  });
  it('have JSON where JSON is', () => {
    for (const { file, text } of all) if (file?.endsWith('.json')) expect(() => JSON.parse(text)).not.toThrow();
  });
  it('quote names', () => {
    expect(restSnippets(here).find(({ id }) => id === 'query')?.text).toContain(String.raw`FROM \"orders-2026\" LIMIT 10`);
    expect(cliSnippets({ ...here, owner: 'bob' }).find(({ id }) => id === 'ask')?.text).toContain('-n bob/shop ');
    expect(shell(`it's`)).toBe(`'it'\\''s'`);
  });
  it('leave out what cannot be done with the data of others', () => {
    expect(restSnippets({ ...here, owner: 'bob' }).map(({ id }) => id)).not.toContain('load');
  });
});
