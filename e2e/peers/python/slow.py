"""Asks a model that takes 20 seconds, with the default timeouts of the library, at once with a stream and without."""

import asyncio
import json
import os
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import SendMessageRequest, TaskState
from google.protobuf.json_format import ParseDict

SLOW = json.dumps({'pause': 20000, 'response': 'Two regions.', 'steps': [{'instruction': 'List.', 'queries': ['SELECT region FROM orders ORDER BY region']}]})


def ask():
    message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': [{'text': SLOW}], 'metadata': {'namespace': os.environ['QUERN_NAMESPACE']}}
    return ParseDict({'message': message}, SendMessageRequest())


async def last(http, card, streaming):
    client = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)
    event = [event async for event in client.send_message(ask())][-1]
    return (event.status_update if streaming else event.task).status


async def main():
    async with httpx.AsyncClient(headers={'Authorization': 'Bearer ' + os.environ['QUERN_TOKEN']}) as http:
        assert http.timeout.read == 5
        for entry in (await http.get(os.environ['QUERN_URL'] + '/a2a')).json():
            if entry['name'] == 'assistant':
                card = await A2ACardResolver(http, entry['url']).get_agent_card()
        for status in await asyncio.gather(last(http, card, True), last(http, card, False)):
            assert status.state == TaskState.TASK_STATE_COMPLETED, status
            assert status.message.parts[0].text == 'Two regions.', status
    print('waited twice')


asyncio.run(main())
