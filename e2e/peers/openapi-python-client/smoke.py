"""Calls the service with the client that openapi-python-client made."""

import os
import uuid

from quern_client import AuthenticatedClient
from quern_client.api.data import list_rows
from quern_client.api.ingest import create_dataset, create_ingestion, ingest_rows
from quern_client.api.query import ask, run_query
from quern_client.api.user import get_me
from quern_client.models import (
    ErrorCode,
    ErrorResponse,
    InferDefinitionChange,
    NewIngestion,
    IngestionOptions,
    NewRows,
    QueryRequest,
    Question,
    Row,
    Run,
    RunStatus,
)
from quern_client.types import UNSET

client = AuthenticatedClient(base_url=os.environ["QUERN_URL"], token=os.environ["QUERN_TOKEN"])
namespace = os.environ["QUERN_NAMESPACE"]

username = get_me.sync(client=client).username
assert username == "ada", username

created = create_dataset.sync_detailed(namespace, "orders", client=client, body=InferDefinitionChange(data_description="Orders of the shop"))
assert created.status_code == 201, created

rows = [Row.from_dict({"region": region}) for region in ("north", "south", "west")]
assert ingest_rows.sync(namespace, "orders", client=client, body=NewRows(data=rows)).indexed == 3

seen, pages, cursor = [], 0, UNSET
while pages == 0 or cursor is not UNSET:
    page = list_rows.sync(username, namespace, "orders", client=client, limit=2, cursor=cursor)
    seen += [row["region"] for row in page.data]
    cursor = page.next_cursor
    pages += 1
assert (seen, pages) == (["north", "south", "west"], 2), (seen, pages)

run = ask.sync(client=client, body=Question(username=username, namespace=namespace, query=os.environ["QUERN_QUESTION"]))
assert isinstance(run, Run) and run.status == RunStatus.COMPLETED, run
assert run.result.response == "Two regions.", run

options = IngestionOptions.from_dict({"delimiter": ";", "types": {"region": "varchar"}})
absent = create_ingestion.sync_detailed(
    username, namespace, "orders", client=client, body=NewIngestion(session_id=uuid.uuid4(), options=options)
)
assert absent.status_code == 404, absent
assert isinstance(absent.parsed, ErrorResponse) and absent.parsed.error_code == ErrorCode.NOT_FOUND, absent

wrong = run_query.sync_detailed(
    client=client, body=QueryRequest(username=username, namespace=namespace, query="SELECT regoin FROM orders")
)
assert wrong.status_code == 422, wrong
assert isinstance(wrong.parsed, ErrorResponse) and wrong.parsed.error_code == ErrorCode.QUERY_INVALID, wrong
assert ("candidate", "region") in [(sub.code, sub.message) for sub in wrong.parsed.sub_errors], wrong

print("every call was answered as documented")
