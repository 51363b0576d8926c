"""Uses the tools of Quern with the Python library of MCP: version 2 speaks the stateless protocol, version 1 the earlier ones."""

import asyncio
import contextlib
import datetime
import json
import os

ADDRESS = os.environ["QUERN_URL"] + "/mcp"
HEADERS = {"Authorization": "Bearer " + os.environ["QUERN_TOKEN"]}
NAMESPACE = os.environ["QUERN_NAMESPACE"]

try:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    @contextlib.asynccontextmanager
    async def connect():
        async with httpx2.AsyncClient(headers=HEADERS, timeout=120) as http:
            async with Client(streamable_http_client(ADDRESS, http_client=http)) as client:
                yield client, client.protocol_version

    def seconds(n):
        return n

    names = {"structured": "structured_content", "error": "is_error"}
except ImportError:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    @contextlib.asynccontextmanager
    async def connect():
        async with streamablehttp_client(ADDRESS, headers=HEADERS) as (read, write, _):
            async with ClientSession(read, write) as session:
                begun = await session.initialize()
                yield session, begun.protocolVersion

    def seconds(n):
        return datetime.timedelta(seconds=n)

    names = {"structured": "structuredContent", "error": "isError"}


async def main():
    async with connect() as (client, version):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert sorted(tools) == ["ask", "check_text", "choose", "describe_dataset", "find_values", "get_run", "list_datasets", "list_verified", "query", "read_rows"], tools

        async def use(name, arguments, **more):
            result = await client.call_tool(name, arguments, **more)
            assert not getattr(result, names["error"]), result
            value = getattr(result, names["structured"])
            assert json.loads(result.content[0].text) == value
            return value

        listed = await use("list_datasets", {})
        dataset = listed["datasets"][0]["dataset"]
        assert dataset.startswith(NAMESPACE), listed

        progress = []

        async def note(value, total, message):
            progress.append(value)

        answer = await use("ask", {"namespace": NAMESPACE, "question": json.dumps(
            {"response": "Done.", "steps": [{"instruction": "read", "queries": ["SELECT range AS n FROM range(150)"]}]})}, progress_callback=note)
        assert answer["status"] == "completed" and answer["response"] == "Done.", answer
        assert progress and progress == sorted(set(progress)), progress

        rows, cursor = [], {}
        while True:
            page = await use("read_rows", {"runId": answer["runId"], "step": 0, **cursor})
            rows += [row[0] for row in page["rows"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert rows == list(range(150)), rows

        waits = await use("ask", {"namespace": NAMESPACE, "question": json.dumps(
            {"outcome": "clarification", "response": "Which?", "clarification": {"question": "Which?", "options": ["this", "that"]}, "then": {"response": "It is <chosen>."}})})
        assert waits["status"] == "waiting", waits
        chosen = await use("choose", {"runId": waits["runId"], "option": waits["clarification"]["options"][1]["number"]})
        assert chosen["response"] == "It is that.", chosen

        wrong = await client.call_tool("query", {"namespace": NAMESPACE, "sql": "SELECT nothing FROM orders"})
        assert getattr(wrong, names["error"]) and wrong.content[0].text.startswith("QUERY_INVALID: "), wrong

        template = (await client.list_resource_templates())
        assert "quern://{owner}/{namespace}/{dataset}" in str(template), template
        described = await client.read_resource("quern://" + dataset)
        assert json.loads(described.contents[0].text)["dataset"] == dataset
        prompt = await client.get_prompt("explore", {"namespace": NAMESPACE})
        assert NAMESPACE in prompt.messages[0].content.text

        try:
            await client.call_tool("ask", {"namespace": NAMESPACE, "question": json.dumps({"pause": 9000, "steps": [{"instruction": "wait"}]})},
                                   read_timeout_seconds=seconds(2))
            raise AssertionError("the call was not cancelled")
        except AssertionError:
            raise
        except Exception as error:  # each version has its own class
            assert "time" in str(error).lower(), error

    print("used the tools over", version)


asyncio.run(main())
