"""Asks a question with several interpretations in a host that asks its user, who chooses, declines, or chooses what is not there."""

import asyncio
import json
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

NAMESPACE = os.environ["QUERN_NAMESPACE"]
SCRIPT = json.dumps({"outcome": "clarification", "response": "Which?", "clarification": {"question": "Which?", "options": ["this", "that"]},
                     "then": {"response": "It is <chosen>."}})


async def ask(reply):
    asked = []

    async def user(context, params):
        asked.append(params.message)
        field = params.requested_schema["properties"]["option"] if isinstance(params.requested_schema, dict) else params.requested_schema.properties["option"]
        assert "that" in str(field), field
        return reply

    headers = {"Authorization": "Bearer " + os.environ["QUERN_TOKEN"]}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
        async with Client(streamable_http_client(os.environ["QUERN_URL"] + "/mcp", http_client=http), elicitation_callback=user) as client:
            result = await client.call_tool("ask", {"namespace": NAMESPACE, "question": SCRIPT})
    assert asked == ["Which?"], asked
    return result


async def main():
    chosen = (await ask(ElicitResult(action="accept", content={"option": "2"}))).structured_content
    assert chosen["status"] == "completed" and chosen["response"] == "It is that.", chosen

    for action in "decline", "cancel":
        waits = (await ask(ElicitResult(action=action))).structured_content
        assert waits["status"] == "waiting" and len(waits["clarification"]["options"]) == 2, waits

    wrong = await ask(ElicitResult(action="accept", content={"option": "9"}))
    assert wrong.is_error and wrong.content[0].text.startswith("VALIDATION_FAILED"), wrong
    print("asked the user")


asyncio.run(main())
