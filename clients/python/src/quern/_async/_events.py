"""What happens to datasets, namespaces and runs."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from .._models import Notice, names_of, notice_of
from ._http import AsyncHttp


class AsyncEvents:
    """The events of what the caller may see, as they happen, without an end.

    A connection that breaks is made again. An iteration that was left goes on where it was. To go on in another process, keep the
    ``position`` of the last event that was handled.
    """

    position: str
    """Where the next iteration begins."""

    def __init__(self, http: AsyncHttp, params: Mapping[str, str | None], position: str, patience: float) -> None:
        self._http, self._params, self.position, self._patience = http, params, position, patience

    async def __aiter__(self) -> AsyncGenerator[Notice]:
        async with aclosing(self._http.follow("/events", self._params, self.position, self._patience)) as events:
            async for event in events:
                self.position = event.id
                if event.data:
                    yield notice_of(json.loads(event.data), event.id)


async def follow(http: AsyncHttp, about: Mapping[str, str], types: str | Sequence[str], after: str | None, patience: float) -> AsyncEvents:
    """Return the events after a position, or from now on."""
    params = {**about, "types": ",".join(names_of(types)) or None}
    if after is None:
        # What happens between this call and the first iteration must not be missed.
        after = (await http.call("GET", "/events", params=params))["lastEventId"]
    return AsyncEvents(http, params, after, patience)
