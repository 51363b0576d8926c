// Uses the tools of Quern with the TypeScript libraries of MCP. Argument: sdk for the earlier versions of the protocol, client for
// the stateless one.
import assert from 'node:assert/strict';

const modern = process.argv[2] === 'client';
const { Client, StreamableHTTPClientTransport } = modern
  ? await import('@modelcontextprotocol/client')
  : { ...(await import('@modelcontextprotocol/sdk/client/index.js')), ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')) };

const namespace = process.env.QUERN_NAMESPACE;
const transport = new StreamableHTTPClientTransport(new URL(process.env.QUERN_URL + '/mcp'), {
  requestInit: { headers: { Authorization: `Bearer ${process.env.QUERN_TOKEN}` } },
});
const client = new Client({ name: 'peer', version: '1' }, modern ? { versionNegotiation: { mode: 'auto' } } : {});
await client.connect(transport);

const call = (name, args, options) => (modern ? client.callTool({ name, arguments: args }, options) : client.callTool({ name, arguments: args }, undefined, options));
const use = async (name, args, options) => {
  const result = await call(name, args, options);
  assert.ok(!result.isError, JSON.stringify(result));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
};

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name).sort(), ['ask', 'check_text', 'choose', 'describe_dataset', 'find_values', 'get_run', 'list_datasets', 'list_verified', 'query', 'read_rows']);

const { datasets } = await use('list_datasets', {});
assert.ok(datasets[0].dataset.startsWith(namespace));

const progress = [];
const answer = await use('ask', { namespace, question: JSON.stringify({ response: 'Done.', steps: [{ instruction: 'read', queries: ['SELECT range AS n FROM range(150)'] }] }) },
  { onprogress: (p) => progress.push(p.progress) });
assert.equal(answer.status, 'completed');
assert.ok(progress.length > 0);

const rows = [];
for (let cursor = {}; ; ) {
  const page = await use('read_rows', { runId: answer.runId, step: 0, ...cursor });
  rows.push(...page.rows);
  if (!page.nextCursor) break;
  cursor = { cursor: page.nextCursor };
}
assert.equal(rows.length, 150);

const waits = await use('ask', { namespace, question: JSON.stringify({ outcome: 'clarification', response: 'Which?', clarification: { question: 'Which?', options: ['this', 'that'] }, then: { response: 'It is <chosen>.' } }) });
assert.equal(waits.status, 'waiting');
const chosen = await use('choose', { runId: waits.runId, option: 2 });
assert.equal(chosen.response, 'It is that.');

const wrong = await call('query', { namespace, sql: 'SELECT nothing FROM orders' });
assert.ok(wrong.isError && wrong.content[0].text.startsWith('QUERY_INVALID: '), JSON.stringify(wrong));

const described = await client.readResource({ uri: 'quern://' + datasets[0].dataset });
assert.equal(JSON.parse(described.contents[0].text).dataset, datasets[0].dataset);

const stop = new AbortController();
setTimeout(() => stop.abort('enough'), 1500);
await assert.rejects(call('ask', { namespace, question: JSON.stringify({ pause: 9000, steps: [{ instruction: 'wait' }] }) }, { signal: stop.signal }));

await client.close();
console.log('used the tools over', (modern && client.getNegotiatedProtocolVersion?.()) || transport.protocolVersion || 'unknown');
process.exit(0);
