"""The connection to a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from .. import _signin, _wire
from .._models import CheckedText, checked_of
from ._answer import AsyncAnswer, AsyncStream, ended
from ._events import AsyncEvents, follow
from ._http import AsyncHttp
from ._namespace import AsyncNamespace


class AsyncClient:
    """A connection to a Quern server.

    ``namespace("shop")`` leads to everything else: uploads, SQL, questions, datasets. ``check`` compares the figures of a text with
    rows, ``search`` finds datasets, ``events`` tells what happens.

    Without ``token`` the environment variable QUERN_TOKEN is used, then the sign-in of ``quern login``. Without ``server`` it is
    QUERN_SERVER, then the server of the last sign-in. ``verify`` is the file of a certificate authority, or False for none.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 70,
        retries: int = 2,
        verify: bool | str = True,
    ) -> None:
        self.server, tokens = _signin.find(server, token)
        self._http = AsyncHttp(self.server, tokens, timeout=timeout, retries=retries, verify=verify)
        self._me: _wire.Me | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def me(self) -> _wire.Me:
        """Return who the caller is."""
        if self._me is None:
            self._me = await self._http.call("GET", "/user/me")
        return self._me

    async def namespace(self, name: str) -> AsyncNamespace:
        """Return a namespace: ``shop`` is the caller's own, ``bob/shop`` that of another."""
        username, slash, last = name.rpartition("/")
        return AsyncNamespace(self._http, username if slash else (await self.me())["username"], last)

    async def namespaces(self) -> list[_wire.NamespaceItem]:
        """Return the namespaces that the caller may see, also those of others."""
        return [one async for one in self._http.pages("/schema/namespaces/all")]

    async def search(self, text: str) -> list[_wire.DatasetItem]:
        """Return the datasets that match, by name, column, description or value."""
        return [one async for one in self._http.pages("/schema/datasets/all", {"q": text})]

    async def models(self) -> list[_wire.Model]:
        """Return the language models that questions can be sent to."""
        found: list[_wire.Model] = (await self._http.call("GET", "/query/models"))["data"]
        return found

    async def usage(self) -> _wire.Usage:
        """Return what the caller used today, and the limits."""
        found: _wire.Usage = await self._http.call("GET", "/user/usage")
        return found

    async def check(
        self,
        text: str,
        *,
        answers: Sequence[AsyncAnswer | str] = (),
        statements: Sequence[Mapping[str, Any]] = (),
        question: str | None = None,
    ) -> CheckedText:
        """Compare the figures of a text with the rows of answers and statements."""
        body: dict[str, Any] = {"text": text}
        if answers:
            body["runs"] = [one if isinstance(one, str) else one.id for one in answers]
        if statements:
            body["statements"] = [dict(one) for one in statements]
        if question:
            body["question"] = question
        return checked_of(await self._http.call("POST", "/query/check", body))

    async def runs(self) -> list[_wire.RunItem]:
        """Return the questions that the caller asked, the newest first."""
        return [one async for one in self._http.pages("/query/runs")]

    async def answer(self, run_id: str) -> AsyncAnswer:
        """Return the answer of a run, and wait for its end if necessary."""
        return await ended(self._http, await self._http.call("GET", f"/query/runs/{run_id}"))

    async def events(self, types: str | Sequence[str] = (), *, after: str | None = None, patience: float = 300) -> AsyncEvents:
        """Follow what happens to the caller's datasets, namespaces and runs, and to what others share with the caller.

        The iteration has no end. It begins with what happens after this call, and may include the second before it; with ``after`` it
        begins after that position. ``types`` selects some types, for example ``"dataset.loaded"``. A connection that breaks is made
        again, for up to ``patience`` seconds; each event is returned once, and none is left out.
        """
        return await follow(self._http, {}, types, after, patience)

    def events_of(self, run_id: str, *, patience: float = 120) -> AsyncStream:
        """Iterate over the events of a run from its start."""
        return AsyncStream(self._http, None, run_id, patience)

    async def conversations(self) -> list[_wire.ConversationItem]:
        """Return the caller's conversations."""
        return [one async for one in self._http.pages("/query/conversations")]

    async def version(self) -> _wire.Version:
        """Return the version of the service."""
        found: _wire.Version = await self._http.call("GET", "/version")
        return found

    def __repr__(self) -> str:
        return f"<Client of {self.server}>"
