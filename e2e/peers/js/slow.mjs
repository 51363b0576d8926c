// Asks a model that takes 20 seconds, with the default timeouts of the library, at once with a stream and without.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

const { QUERN_URL, QUERN_TOKEN, QUERN_NAMESPACE } = process.env;
const slow = JSON.stringify({ pause: 20000, response: 'Two regions.', steps: [{ instruction: 'List.', queries: ['SELECT region FROM orders ORDER BY region'] }] });

const entry = (await (await fetch(`${QUERN_URL}/a2a`)).json()).find((one) => one.name === 'assistant');
const card = await new DefaultAgentCardResolver().resolve(entry.agentCard, '');
const fetchImpl = (url, init) => fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${QUERN_TOKEN}` } });
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [new JsonRpcTransportFactory({ fetchImpl })] });
const client = await new ClientFactory(options).createFromAgentCard(card);
const ask = () => ({ message: { messageId: randomUUID(), role: Role.ROLE_USER, metadata: { namespace: QUERN_NAMESPACE }, parts: [{ content: { $case: 'text', value: slow } }] } });

async function streamed() {
  let last;
  for await (const event of client.sendMessageStream(ask())) last = event.payload.value;
  return last.status;
}

for (const status of await Promise.all([streamed(), client.sendMessage(ask()).then((task) => task.status)])) {
  assert.equal(status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(status.message.parts[0].content.value, 'Two regions.');
}
console.log('waited twice');
