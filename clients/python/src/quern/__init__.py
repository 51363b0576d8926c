"""Quern: upload files, run SQL, ask questions, and see the query and the rows behind every answer.

import quern

q = quern.connect()                       # the sign-in of `quern login`, or QUERN_SERVER and QUERN_TOKEN
shop = q.namespace("shop")
shop.upload("orders.csv", "orders")
shop.sql("SELECT region, sum(total) AS total FROM orders GROUP BY region").df()
shop.ask("Which region had the highest total?")
"""

from ._async._answer import AsyncAnswer, AsyncStep, AsyncStream
from ._async._client import AsyncClient
from ._async._dataset import AsyncDataset
from ._async._events import AsyncEvents
from ._async._namespace import AsyncNamespace
from ._async._record import AsyncField, AsyncRecord
from ._async._result import AsyncResult
from ._errors import (
    BadRequest,
    ColumnsAddedWarning,
    Conflict,
    ConnectionFailed,
    DoubtsWaiting,
    Forbidden,
    IncompleteResult,
    Internal,
    InvalidState,
    LimitExceeded,
    LoadFailed,
    MissingExtra,
    NotFound,
    NotSignedIn,
    QuernError,
    QueryInvalid,
    RateLimited,
    RunFailed,
    ServiceError,
    Timeout,
    TruncatedWarning,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from ._models import (
    CheckedText,
    Checks,
    Claim,
    Clarification,
    Column,
    Deleted,
    Doubt,
    Event,
    Explanation,
    Load,
    Merged,
    Notice,
    Option,
    Place,
    ReadVersion,
    Verified,
)
from ._sync._answer import Answer, Step, Stream
from ._sync._client import Client
from ._sync._dataset import Dataset
from ._sync._events import Events
from ._sync._namespace import Namespace
from ._sync._record import Field, Record
from ._sync._result import Result
from ._version import VERSION as __version__


def connect(
    server: str | None = None,
    token: str | None = None,
    *,
    timeout: float = 70,
    retries: int = 2,
    verify: bool | str = True,
) -> Client:
    """Connect to a Quern server: ``quern.connect().namespace("shop")`` leads to everything else.

    Without ``token`` the environment variable QUERN_TOKEN is used, then the sign-in of ``quern login``. Without ``server`` it is
    QUERN_SERVER, then the server of the last sign-in. ``timeout`` is in seconds, ``retries`` the number of repetitions that are safe and
    may help. ``verify`` is the file of a certificate authority, or False for none. For asyncio, use ``AsyncClient``.
    """
    return Client(server, token, timeout=timeout, retries=retries, verify=verify)


__all__ = [
    "Answer",
    "AsyncAnswer",
    "AsyncClient",
    "AsyncDataset",
    "AsyncEvents",
    "AsyncField",
    "AsyncNamespace",
    "AsyncRecord",
    "AsyncResult",
    "AsyncStep",
    "AsyncStream",
    "BadRequest",
    "CheckedText",
    "Checks",
    "Claim",
    "Clarification",
    "Client",
    "Column",
    "ColumnsAddedWarning",
    "Conflict",
    "ConnectionFailed",
    "Dataset",
    "Deleted",
    "Doubt",
    "DoubtsWaiting",
    "Event",
    "Events",
    "Explanation",
    "Field",
    "Forbidden",
    "IncompleteResult",
    "Internal",
    "InvalidState",
    "LimitExceeded",
    "Load",
    "LoadFailed",
    "Merged",
    "MissingExtra",
    "Namespace",
    "NotFound",
    "NotSignedIn",
    "Notice",
    "Option",
    "Place",
    "QuernError",
    "QueryInvalid",
    "RateLimited",
    "ReadVersion",
    "Record",
    "Result",
    "RunFailed",
    "ServiceError",
    "Step",
    "Stream",
    "Timeout",
    "TruncatedWarning",
    "Unauthorized",
    "Unavailable",
    "ValidationFailed",
    "Verified",
    "__version__",
    "connect",
]
