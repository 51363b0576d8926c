"""What schemathesis is told of our service: the caller is ada, $RUN_ID and $CONVERSATION_ID are there, the namespace shop of the caller too."""
import os
import re
import uuid

import schemathesis

# Lines of JSON are text to it.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")

MADE = {"runId": os.environ["RUN_ID"], "conversationId": os.environ["CONVERSATION_ID"]}


def is_id(value):
    try:
        return str(uuid.UUID(value)) == value.lower()
    except (AttributeError, TypeError, ValueError):
        return False


def follow(case):
    """In the stateful phase the operations that create something succeed, so that there is something to go on with."""
    if case.headers and "Idempotency-Key" in case.headers:
        # With a key that was used before, the first answer comes again, also if what it created is deleted since.
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.operation.label == "POST /ingest/new/{namespace}/{datasetName}":
        case.path_parameters.update(namespace="shop", datasetName="d" + uuid.uuid4().hex)
        case.body = {"dataDescription": "made by schemathesis"}
    if case.operation.label == "POST /schema/{username}/namespaces":
        case.path_parameters["username"] = "ada"
        case.body = {"name": "n" + uuid.uuid4().hex}


@schemathesis.hook
def before_call(context, case, kwargs):
    """What fits stays what fits, so that what was made to be refused still is."""
    if case.meta is not None and case.meta.phase.name.value == "stateful":
        follow(case)

    deletes = case.method.upper() == "DELETE" and not case.path.endswith("/feedback")
    path = case.path_parameters or {}
    for name, value in path.items():
        if name in MADE and is_id(value):
            path[name] = str(uuid.uuid4()) if deletes else MADE[name]
        if name == "n" and re.fullmatch("[0-9]{1,9}", str(value)):
            path[name] = 0

    body = case.body
    if case.path != "/query/ask" or not isinstance(body, dict):
        return
    if all(isinstance(body.get(name), str) and re.fullmatch("[A-Za-z0-9]+", body[name]) for name in ("username", "namespace")):
        body["username"], body["namespace"] = "self", "shop"
        if is_id(body.get("conversationId")):
            body["conversationId"] = MADE["conversationId"]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """A stream is a text to the contract; its schema is not that of an event. Rows as CSV or lines of JSON are any text: a list that was
    to be refused is sent as the text of a list. A body that is too large is refused with 413 before its fields are checked, which the check
    does not count as a refusal."""
    if failure.title == "Schema-violating request accepted":
        return case.media_type not in ("text/csv", "application/x-ndjson") and response.status_code != 413
    return failure.title != "SSE event violates schema"
