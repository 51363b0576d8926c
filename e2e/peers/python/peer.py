"""Talks to the agents with the Python library, and fails if anything is not as it should be."""

import asyncio
import json
import os
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest, TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, ParseDict

URL, TOKEN, NAMESPACE = os.environ['QUERN_URL'], os.environ['QUERN_TOKEN'], os.environ['QUERN_NAMESPACE']

ONE_STEP = json.dumps({'response': 'Two regions.', 'steps': [{'instruction': 'List.', 'queries': ['SELECT region FROM orders ORDER BY region']}]})
WAITING = json.dumps({'pause': 600000, 'steps': [{'instruction': 'Wait.'}]})

ORDERS = {
    'nl2ql': ['status_update', 'generated-query', 'result-data', 'status_update'],
    'assistant': ['task', 'status_update', 'status_update', 'status_update', 'step-0', 'answer', 'status_update'],
}


def ask(text, configuration=None, **more):
    message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': [{'text': text}], 'metadata': {'namespace': NAMESPACE}, **more}
    return ParseDict({'message': message, 'configuration': configuration or {}}, SendMessageRequest())


def name(event):
    kind = event.WhichOneof('payload')
    return event.artifact_update.artifact.name if kind == 'artifact_update' else kind


def rows(artifacts):
    for artifact in artifacts:
        for part in artifact.parts:
            data = MessageToDict(part).get('data')
            if data and 'rows' in data:
                return data['rows']
    return None


async def refused(call, error):
    try:
        await call
    except error:
        return
    raise AssertionError(f'it was not refused with {error.__name__}')


async def everything(events):
    return [event async for event in events]


async def talk(http, entry):
    card = await A2ACardResolver(http, entry['url']).get_agent_card()
    assert card.name == entry['name']

    # What the card asks for: a token for each scheme that it requires.
    for requirement in card.security_requirements:
        for scheme in requirement.schemes:
            declared = card.security_schemes[scheme].http_auth_security_scheme
            http.headers['Authorization'] = f'{declared.scheme} {TOKEN}'
    assert http.headers['Authorization'] == f'Bearer {TOKEN}'

    client = ClientFactory(ClientConfig(httpx_client=http, streaming=True)).create(card)
    plain = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)

    extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    assert list(extended.skills[0].examples)

    [answer] = await everything(plain.send_message(ask(ONE_STEP)))
    task = answer.task
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert task.status.message.parts[0].text == 'Two regions.'
    assert rows(task.artifacts) == [{'region': region, '__metadata': {'score': 1.0}} for region in ('north', 'south')]

    events = await everything(client.send_message(ask(ONE_STEP, contextId=task.context_id)))
    assert [name(event) for event in events] == ORDERS[entry['name']], [name(event) for event in events]
    assert rows(event.artifact_update.artifact for event in events if event.WhichOneof('payload') == 'artifact_update')[0]['__metadata'] == {'score': 1.0}

    assert await client.get_task(GetTaskRequest(id=task.id)) == task
    listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
    assert listed.total_size == 2 and task.id in [one.id for one in listed.tasks]

    [answer] = await everything(plain.send_message(ask(WAITING, {'returnImmediately': True})))
    running = answer.task
    assert running.status.state == TaskState.TASK_STATE_SUBMITTED
    heard = []
    async for event in client.subscribe(SubscribeToTaskRequest(id=running.id)):
        heard.append(name(event))
        if len(heard) == 1:
            cancelled = await client.cancel_task(CancelTaskRequest(id=running.id))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
    assert heard[0] == 'task' and heard[-1] == 'status_update', heard

    await refused(client.get_task(GetTaskRequest(id=str(uuid.uuid4()))), TaskNotFoundError)
    await refused(client.cancel_task(CancelTaskRequest(id=task.id)), TaskNotCancelableError)
    await refused(everything(plain.send_message(ask(ONE_STEP, taskId=task.id))), UnsupportedOperationError)
    await refused(everything(client.send_message(ask(ONE_STEP, taskId=task.id))), UnsupportedOperationError)
    await refused(everything(client.subscribe(SubscribeToTaskRequest(id=task.id))), UnsupportedOperationError)


async def main():
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        catalog = (await http.get(f'{URL}/a2a')).json()
        for entry in catalog:
            await talk(http, entry)
    print('talked to', ' and '.join(entry['name'] for entry in catalog))


asyncio.run(main())
