"""Results of any size: files on the object store, one after another."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from typing import Any

from .._errors import ConnectionFailed, IncompleteResult, fault_of
from ._compat import for_each, sleep
from ._http import AsyncHttp

_ATTEMPTS = 5
_AT_ONCE = 4


async def completed(http: AsyncHttp, statement: dict[str, Any]) -> dict[str, Any]:
    """Wait until the service has run a statement."""
    began = time.monotonic()
    while statement["status"] in ("queued", "running"):
        await sleep(min(1.0, max(0.03, (time.monotonic() - began) / 20)))  # waits a twentieth longer than it takes
        statement = await http.call("GET", f"/query/statements/{statement['id']}")
    if statement["status"] != "completed":
        error = statement.get("error") or {"code": "INVALID_STATE", "message": f"The statement is {statement['status']}."}
        told = {"error_code": error["code"], "message": error["message"], "sub_errors": error.get("subErrors")}
        raise fault_of(0, told, None)
    return statement


class AsyncPieces:
    """The pieces of a result. Each address works for a minute, so it is asked for when it is needed."""

    def __init__(self, http: AsyncHttp, statement_id: str, pieces: list[dict[str, Any]]) -> None:
        self._http, self._path, self._pieces = http, f"/query/statements/{statement_id}/pieces", pieces
        self.rows = sum(int(piece["rows"]) for piece in pieces)

    @classmethod
    async def of(cls, http: AsyncHttp, statement_id: str) -> AsyncPieces:
        """Return the pieces of a completed statement."""
        listed = await http.call("GET", f"/query/statements/{statement_id}/pieces")
        return cls(http, statement_id, listed["data"])

    async def all(self) -> list[bytes]:
        """Fetch all pieces, several at once."""
        fetched: dict[int, bytes] = {}

        async def fetch(piece: dict[str, Any]) -> None:
            fetched[piece["number"]] = await self._fetch(piece)

        await for_each(self._pieces, fetch, _AT_ONCE)
        return [fetched[piece["number"]] for piece in self._pieces]

    async def one_by_one(self) -> AsyncIterator[bytes]:
        """Fetch a piece when the one before was used."""
        for piece in self._pieces:
            yield await self._fetch(piece)

    async def _fetch(self, piece: dict[str, Any]) -> bytes:
        for attempt in range(_ATTEMPTS):
            given = await self._http.send("GET", f"{self._path}/{piece['number']}")
            try:
                async with self._http.fetch(given.headers["Location"]) as answer:
                    content = await answer.aread()
                    if answer.status_code == 200 and hashlib.sha256(content).hexdigest() == piece["sha256"]:
                        return bytes(content)
            except ConnectionFailed:
                if attempt == _ATTEMPTS - 1:
                    raise
            await sleep(min(4.0, 0.2 * 2**attempt))
        raise IncompleteResult(f"Piece {piece['number']} of the result could not be fetched whole in {_ATTEMPTS} attempts.")
