"""The faults that calls raise. Every fault of the service is a class of its own, found by its code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


class QuernError(Exception):
    """The base of everything that this package raises."""


class ConnectionFailed(QuernError):
    """The service could not be reached, or the connection broke."""


class NotSignedIn(QuernError):
    """There is no token: neither an argument, nor QUERN_TOKEN, nor a sign-in of `quern login`."""


class IncompleteResult(QuernError):
    """A result broke off on its way. The rows that arrived are not all rows, so none are returned."""


class MissingExtra(QuernError):
    """The call needs an optional package that is not installed."""


class ServiceError(QuernError):
    """The service refused a request."""

    code: str
    """One of the codes of the API, for example ``NOT_FOUND``."""
    status: int
    """The HTTP status."""
    request_id: str | None
    """Identifies the request in the log of the service."""
    details: tuple[tuple[str, str], ...]
    """Pairs of a field or reason, and a message."""

    def __init__(
        self,
        code: str,
        message: str,
        status: int = 0,
        details: Sequence[tuple[str, str]] = (),
        request_id: str | None = None,
    ) -> None:
        said = "".join(f"\n  {name}: {text}" for name, text in details)
        super().__init__(message + said)
        self.code, self.message, self.status = code, message, status
        self.details, self.request_id = tuple(details), request_id

    def _detail(self, name: str) -> list[str]:
        return [text for code, text in self.details if code == name]


class BadRequest(ServiceError):
    """The request could not be read."""


class Unauthorized(ServiceError):
    """The token is missing, wrong or expired."""


class Forbidden(ServiceError):
    """The caller may see the thing, but not do this."""


class NotFound(ServiceError):
    """The thing does not exist, or the caller may not see it."""


class Conflict(ServiceError):
    """The thing exists already, or is in a state that does not allow this."""


class ValidationFailed(ServiceError):
    """A value is not allowed; ``details`` names the fields."""


class InvalidState(ServiceError):
    """The thing is not in a state in which this is possible."""


class QueryInvalid(ServiceError):
    """The statement cannot be run."""

    @property
    def position(self) -> tuple[int, int] | None:
        """Where in the statement: line and column, both counted from 1."""
        numbers = [int(number) for text in self._detail("position") for number in re.findall(r"\d+", text)]
        return (numbers[0], numbers[1]) if len(numbers) == 2 else None

    @property
    def candidates(self) -> list[str]:
        """Names that may have been meant."""
        return self._detail("candidate")


class LimitExceeded(ServiceError):
    """A limit of the service; the message says which one."""


class RateLimited(ServiceError):
    """Too many requests, also after the retries."""


class Timeout(ServiceError):
    """The statement or request took too long for the service."""


class Unavailable(ServiceError):
    """The service, or something that it needs, is down, also after the retries."""


class Internal(ServiceError):
    """A fault of the service."""


class RunFailed(ServiceError):
    """The question could not be answered because of a fault."""


class LoadFailed(ServiceError):
    """The files could not be loaded. Nothing of them was loaded."""


def noted(doubt: Mapping[str, Any]) -> str:
    """Return what a doubt about files says: the column, the message, and the option that settles it."""
    column = f"{doubt['column']}: " if doubt.get("column") else ""
    option = f" (option {doubt['option']})" if doubt.get("option") else ""
    return f"{column}{doubt['message']}{option}"


class DoubtsWaiting(QuernError):
    """The load waits because something about the files is doubtful. Nothing has been loaded.

    ``doubts`` says what. Call again with ``accept=[…codes…]``, or ``accept="all"``, to load anyway.
    """

    def __init__(self, doubts: Sequence[Mapping[str, Any]]) -> None:
        self.doubts = list(doubts)
        codes = sorted({str(doubt["code"]) for doubt in doubts if doubt.get("code")})
        lines = "".join(f"\n  - {noted(doubt)}" for doubt in doubts)
        super().__init__(f"The load waits for a decision. To load anyway, pass accept={codes!r}.{lines}")


class ColumnsAddedWarning(UserWarning):
    """Rows that were appended or merged have columns that the dataset did not have before, which may be a typing error."""


class TruncatedWarning(UserWarning):
    """The result has fewer rows than the statement gives, because the caller allowed it with ``truncate=True``."""


_BY_CODE: dict[str, type[ServiceError]] = {
    "BAD_REQUEST": BadRequest,
    "UNAUTHORIZED": Unauthorized,
    "FORBIDDEN": Forbidden,
    "NOT_FOUND": NotFound,
    "CONFLICT": Conflict,
    "IN_PROGRESS": Conflict,
    "PRECONDITION_FAILED": Conflict,
    "VALIDATION_FAILED": ValidationFailed,
    "INVALID_STATE": InvalidState,
    "RUN_NOT_COMPLETED": InvalidState,
    "QUERY_INVALID": QueryInvalid,
    "LIMIT_EXCEEDED": LimitExceeded,
    "PAYLOAD_TOO_LARGE": LimitExceeded,
    "RATE_LIMITED": RateLimited,
    "TIMEOUT": Timeout,
    "UNAVAILABLE": Unavailable,
    "UPSTREAM_UNAVAILABLE": Unavailable,
    "INTERNAL": Internal,
}


# Messages of the service name requests and commands. These are the calls that do the same.
_CALLS = [
    (r", and so does quern [a-z ]+", ""),
    (r"`quern query`, or `POST /query`", "`Namespace.sql()`"),
    (r"POST /schema/[^ ]+/namespaces or quern namespace create", "Namespace.create()"),
    (r"GET /schema/([^ /]+/namespaces|namespaces/all)", "Client.namespaces()"),
    (r"GET /schema/datasets/all", "Client.search()"),
    (r"GET /schema/[^ ]+/datasets\b", "Namespace.datasets()"),
    (r"GET /user/me", "Client.me()"),
    (r"GET /data/[^ ]+/ingestions", "Dataset.loads()"),
    (r"GET /data/[^ ]+/snapshots", "Dataset.versions()"),
    (r"GET /data/[^ ]+/export", "Dataset.export()"),
    (r"POST /data/[^ ]+/rows with mode=merge and a key", "Dataset.merge()"),
    (r"POST /data/[^ ]+/rows/delete", "Dataset.delete_rows()"),
    (r"POST /data/[^ ]+/clear", "Dataset.clear()"),
    (r"PUT /data/[^ ]+/inferDefinition", "Dataset.define()"),
    (r"DELETE /data/\{username\}/\{namespace\}/\{datasetName\}", "Dataset.delete()"),
    (r"POST /ingest/new/[^ ]+", "Namespace.upload()"),
    (r"POST /permissions/…", "Dataset.share() or Namespace.share()"),
    (r"DELETE /permissions/…/shares", "Dataset.unshare() or Namespace.unshare()"),
    (r"GET /query/runs/[^ ]+", "Client.answer()"),
    (r"GET /query/runs", "Client.runs()"),
    (r"POST /query/runs/[^ ]+/feedback", "Answer.rate()"),
    (r"POST /query/ask", "Namespace.ask()"),
    (r"GET /query/conversations", "Client.conversations()"),
    (r"GET /verified/[^ ]+", "Namespace.verified()"),
]


def in_python(message: str) -> str:
    """Return a message of the service with the calls of this package instead of requests and commands."""
    for pattern, call in _CALLS:
        message = re.sub(pattern, call, message)
    return message


def fault_of(status: int, body: Any, request_id: str | None) -> ServiceError:
    """Return the fault that an answer of the service describes. A proxy may have answered instead of it."""
    if not isinstance(body, Mapping) or "error_code" not in body:
        return ServiceError("UNKNOWN", f"The answer has the status {status} and is not from Quern.", status, (), request_id)
    code, message = str(body["error_code"]), in_python(str(body.get("message", "")))
    details = [(str(sub.get("code", "")), in_python(str(sub.get("message", "")))) for sub in body.get("sub_errors") or ()]
    return _BY_CODE.get(code, ServiceError)(code, message, status, details, request_id)
