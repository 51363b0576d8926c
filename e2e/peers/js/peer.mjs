// Talks to the agents with the JavaScript library, and fails if anything is not as it should be.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { TaskState, Role } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors';

const { QUERN_URL, QUERN_TOKEN, QUERN_NAMESPACE } = process.env;

const oneStep = JSON.stringify({ response: 'Two regions.', steps: [{ instruction: 'List.', queries: ['SELECT region FROM orders ORDER BY region'] }] });
const waiting = JSON.stringify({ pause: 600000, steps: [{ instruction: 'Wait.' }] });

// What the card asks for: a token for each scheme that it requires.
async function headersFor(card) {
  const headers = {};
  for (const requirement of card.securityRequirements) {
    for (const name of Object.keys(requirement.schemes)) {
      const scheme = card.securitySchemes[name].scheme;
      assert.equal(scheme.$case, 'httpAuthSecurityScheme');
      headers.Authorization = `${scheme.value.scheme} ${QUERN_TOKEN}`;
    }
  }
  return headers;
}

async function connect(entry) {
  const card = await new DefaultAgentCardResolver().resolve(entry.agentCard, '');
  assert.equal(card.name, entry.name);
  const headers = await headersFor(card);
  assert.equal(headers.Authorization, `Bearer ${QUERN_TOKEN}`);
  const fetchImpl = (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } });
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [new JsonRpcTransportFactory({ fetchImpl })] }));
  return factory.createFromAgentCard(card);
}

const ask = (text, more = {}, message = {}) => ({
  tenant: '', metadata: undefined, configuration: undefined, ...more,
  message: {
    messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER, extensions: [], referenceTaskIds: [],
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }], metadata: { namespace: QUERN_NAMESPACE }, ...message,
  },
});

const immediately = { configuration: { acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig: undefined } };
const name = (event) => event.payload.$case === 'artifactUpdate' ? event.payload.value.artifact.name : event.payload.$case;

const rowsOf = (artifacts) => artifacts.flatMap((a) => a.parts).filter((p) => p.content.$case === 'data').map((p) => p.content.value.rows).find(Boolean);

const orders = {
  nl2ql: ['statusUpdate', 'generated-query', 'result-data', 'statusUpdate'],
  assistant: ['task', 'statusUpdate', 'statusUpdate', 'statusUpdate', 'step-0', 'answer', 'statusUpdate'],
};

async function talk(entry) {
  const client = await connect(entry);

  const extended = await client.getAgentCard();
  assert.ok(extended.skills[0].examples.length > 0);

  const task = await client.sendMessage(ask(oneStep));
  assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(task.status.message.parts[0].content.value, 'Two regions.');
  assert.deepEqual(rowsOf(task.artifacts), [{ region: 'north', __metadata: { score: 1 } }, { region: 'south', __metadata: { score: 1 } }]);

  const seen = [];
  const artifacts = [];
  for await (const event of client.sendMessageStream(ask(oneStep, {}, { contextId: task.contextId }))) {
    seen.push(name(event));
    if (event.payload.$case === 'artifactUpdate') artifacts.push(event.payload.value.artifact);
  }
  assert.deepEqual(seen, orders[entry.name]);
  assert.equal(rowsOf(artifacts)[0].__metadata.score, 1);

  const got = await client.getTask({ tenant: '', id: task.id });
  assert.deepEqual(got, task);

  const listed = await client.listTasks({ tenant: '', contextId: task.contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '', statusTimestampAfter: undefined });
  assert.equal(listed.totalSize, 2);
  assert.ok(listed.tasks.some((t) => t.id === task.id));

  const running = await client.sendMessage(ask(waiting, immediately));
  assert.equal(running.status.state, TaskState.TASK_STATE_SUBMITTED);
  const heard = [];
  for await (const event of client.resubscribeTask({ tenant: '', id: running.id })) {
    heard.push(event.payload.$case);
    if (heard.length === 1) {
      assert.equal(event.payload.value.id, running.id);
      const cancelled = await client.cancelTask({ tenant: '', id: running.id, metadata: undefined });
      assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
    }
  }
  assert.equal(heard[0], 'task');
  assert.equal(heard.at(-1), 'statusUpdate');

  await assert.rejects(client.getTask({ tenant: '', id: randomUUID() }), TaskNotFoundError);
  await assert.rejects(client.cancelTask({ tenant: '', id: task.id, metadata: undefined }), TaskNotCancelableError);
  await assert.rejects(client.sendMessage(ask(oneStep, {}, { taskId: task.id })), UnsupportedOperationError);
  await assert.rejects(client.resubscribeTask({ tenant: '', id: task.id }).next(), UnsupportedOperationError);
  await assert.rejects(client.sendMessageStream(ask(oneStep, {}, { taskId: randomUUID() })).next(), TaskNotFoundError);

  // The service refuses to connect to this address.
  const push = { tenant: '', id: 'x', taskId: task.id, url: 'https://localhost/none', token: 't', authentication: undefined };
  await client.createTaskPushNotificationConfig(push);
  const which = { tenant: '', taskId: task.id, id: 'x' };
  assert.equal((await client.getTaskPushNotificationConfig(which)).url, push.url);
  assert.equal((await client.listTaskPushNotificationConfig({ tenant: '', taskId: task.id, pageSize: 0, pageToken: '' })).configs.length, 1);
  await client.deleteTaskPushNotificationConfig(which);
  await assert.rejects(client.getTaskPushNotificationConfig(which), TaskNotFoundError);
}

const catalog = await (await fetch(`${QUERN_URL}/a2a`)).json();
for (const entry of catalog) {
  await talk(entry);
}
console.log(`talked to ${catalog.map((entry) => entry.name).join(' and ')}`);
