"""Calls the service with the client that openapi-generator made."""

import os
import uuid

import quern_client
from quern_client.exceptions import NotFoundException, UnprocessableEntityException

configuration = quern_client.Configuration(host=os.environ["QUERN_URL"], access_token=os.environ["QUERN_TOKEN"])
client = quern_client.ApiClient(configuration)
data, ingest, query = quern_client.DataApi(client), quern_client.IngestApi(client), quern_client.QueryApi(client)
namespace = os.environ["QUERN_NAMESPACE"]


def refused(kind, call, *args):
    """Returns the error body of a call that must fail."""
    try:
        call(*args)
    except kind as failure:
        assert isinstance(failure.data, quern_client.ErrorResponse), failure
        return failure.data
    raise AssertionError("the call succeeded")


username = quern_client.UserApi(client).get_me().username
assert username == "ada", username

change = quern_client.InferDefinitionChange(dataDescription="Orders of the shop")
assert ingest.create_dataset_with_http_info(namespace, "orders", infer_definition_change=change).status_code == 201

rows = [{"region": region} for region in ("north", "south", "west")]
assert ingest.ingest_rows(namespace, "orders", quern_client.NewRows(data=rows)).indexed == 3

seen, pages, cursor = [], 0, None
while pages == 0 or cursor is not None:
    page = data.list_rows(username, namespace, "orders", limit=2, cursor=cursor)
    seen += [row["region"] for row in page.data]
    cursor = page.next_cursor
    pages += 1
assert (seen, pages) == (["north", "south", "west"], 2), (seen, pages)

run = query.ask(quern_client.Question(username=username, namespace=namespace, query=os.environ["QUERN_QUESTION"]))
assert run.status == quern_client.RunStatus.COMPLETED, run
assert run.result.response == "Two regions.", run

options = quern_client.IngestionOptions(delimiter=";", types={"region": "varchar"})
ingestion = quern_client.NewIngestion(sessionId=uuid.uuid4(), options=options)
absent = refused(NotFoundException, ingest.create_ingestion, username, namespace, "orders", ingestion)
assert absent.error_code == quern_client.ErrorCode.NOT_FOUND, absent

statement = quern_client.QueryRequest(username=username, namespace=namespace, query="SELECT regoin FROM orders")
wrong = refused(UnprocessableEntityException, query.run_query, statement)
assert wrong.error_code == quern_client.ErrorCode.QUERY_INVALID, wrong
assert ("candidate", "region") in [(sub.code, sub.message) for sub in wrong.sub_errors], wrong

print("every call was answered as documented")
