"""Requests with retries. The only module that knows httpx2."""

from __future__ import annotations

import json
import platform
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2

from .._errors import ConnectionFailed, QuernError, ServiceError, fault_of
from .._signin import Tokens
from .._version import VERSION
from ._compat import in_thread, sleep

_AGAIN = {429, 502, 503}
_LONGEST_WAIT = 60.0
_AT_WORK = 600.0  # seconds to wait for the outcome of an earlier attempt that is still at work
_ARRIVED_NEVER = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class AsyncHttp:
    """Sends requests to one server, and parts of files to its object store."""

    def __init__(self, server: str, tokens: Tokens, *, timeout: float, retries: int, verify: bool | str) -> None:
        self.server, self._tokens, self._retries = server, tokens, retries
        agent = f"quern-python/{VERSION} Python/{platform.python_version()}"
        limits = httpx2.Limits(max_connections=32)
        # The read timeout must be longer than the 15 seconds between the signs of life in a stream.
        times = httpx2.Timeout(timeout, connect=10)
        self._api = httpx2.AsyncClient(
            base_url=server + "/api/v1",
            timeout=times,
            limits=limits,
            headers={"User-Agent": agent},
            verify=_trust(verify),
        )
        # The store gets a client of its own: a token must never go to another host.
        self._store = httpx2.AsyncClient(timeout=times, limits=limits, headers={"User-Agent": agent}, verify=_trust(verify))

    async def close(self) -> None:
        await self._api.aclose()
        await self._store.aclose()

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the JSON of the answer; None if it has no content."""
        answer = await self.send(method, path, body, params=params, headers=headers)
        return answer.json() if answer.content else None

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx2.Response:
        """Send a request, again if that is safe and may help, and return the whole answer."""
        sent = {"Accept": "application/json"} | dict(headers or {})
        if method == "POST":
            # One key for all attempts: what the service has done already is not done again.
            sent.setdefault("Idempotency-Key", str(uuid.uuid4()))
        if body is not None:
            content = json.dumps(body, default=_plain, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        attempt, waited = 0, 0.0
        while True:
            sent["Authorization"] = "Bearer " + await in_thread(self._tokens.current)
            wait: float | None = None
            at_work = False
            try:
                answer = await self._api.request(method, path, params=_given(params), headers=sent, content=content)
            except httpx2.TransportError as failed:
                if attempt >= self._retries or not _may_repeat(method, path, failed):
                    raise ConnectionFailed(self._told(method, path, failed)) from failed
            else:
                if answer.status_code < 400:
                    return answer
                fault = _fault(answer)
                # IN_PROGRESS: the service received an earlier attempt and still works on it. Wait for its outcome.
                at_work = fault.code == "IN_PROGRESS" and attempt > 0 and waited < _AT_WORK
                if not at_work and (answer.status_code not in _AGAIN or attempt >= self._retries):
                    raise fault
                wait = _retry_after(answer)
                if wait is not None and wait > _LONGEST_WAIT:
                    raise fault  # a limit of the day, for example
            wait = wait if wait is not None else _pause(attempt)
            await sleep(wait)
            attempt, waited = attempt + (0 if at_work else 1), waited + wait

    async def pages(self, path: str, params: Mapping[str, Any] | None = None) -> AsyncIterator[Any]:
        """Return the items of a list, page after page."""
        async for page in self.whole_pages(path, params):
            for item in page["data"]:
                yield item

    async def whole_pages(self, path: str, params: Mapping[str, Any] | None = None) -> AsyncIterator[Any]:
        """Return the pages of a list."""
        cursor: str | None = None
        while True:
            page = await self.call("GET", path, params={**(params or {}), "cursor": cursor})
            yield page
            cursor = page.get("nextCursor")
            if not cursor:
                return

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str],
    ) -> AsyncIterator[httpx2.Response]:
        """Open an answer that is read while it arrives. Not repeated: the caller knows where to go on."""
        sent = dict(headers) | {"Authorization": "Bearer " + await in_thread(self._tokens.current)}
        content = None
        if body is not None:
            content = json.dumps(body, default=_plain, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        try:
            async with self._api.stream(method, path, params=_given(params), headers=sent, content=content) as answer:
                if answer.status_code >= 400:
                    await answer.aread()
                    raise _fault(answer)
                yield answer
        except httpx2.TransportError as failed:
            raise ConnectionFailed(self._told(method, path, failed)) from failed

    def _told(self, method: str, path: str, failed: Exception) -> str:
        if not isinstance(failed, _ARRIVED_NEVER):
            return f"{method} {self.server}/api/v1{path}: {_said(failed)}"
        return (
            f"The service at {self.server} cannot be reached: {_said(failed)}. Is it running, and is this its address? "
            "The address is that of connect(server), of QUERN_SERVER, or of the last `quern login`."
        )

    async def events(self, answer: httpx2.Response) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """Return the events of a stream. A completed run can be larger than the usual limit of an event."""
        async for event in httpx2.EventSource(answer, max_event_size=None):
            yield event

    async def follow(
        self, path: str, params: Mapping[str, Any] | None, after: str | None, patience: float
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """Return the events of a stream after the given one, each once. A stream that breaks is opened again where it broke.

        An id that arrives without an event only marks a position, so its data is empty. ``patience`` is the longest silence in seconds.
        """
        failures, waited, opened = 0, 0.0, False
        while True:
            sent = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            broken: QuernError = ConnectionFailed("The stream of events ended again and again.")
            try:
                async with self.stream("GET", path, params=params, headers=sent) as answer, aclosing(self.events(answer)) as events:
                    opened = True
                    async for event in events:
                        waited = 0.0
                        if not event.id.isdecimal() or (after and int(event.id) <= int(after)):
                            continue
                        failures, after = 0, event.id
                        yield event
            except ConnectionFailed as failed:
                broken = failed
            except ServiceError as refused:
                # After a break the service may still count the old stream, so a 429 is temporary.
                if refused.status not in _AGAIN or (refused.status == 429 and not opened):
                    raise
                broken = refused
            if waited >= patience:
                raise broken
            failures += 1
            pause = min(4.0, 0.2 * 2 ** min(failures, 6))
            waited += pause
            await sleep(pause)

    async def put(self, url: str, content: bytes) -> tuple[int, str]:
        """Send a part of a file to the store and return the status and the ETag."""
        try:
            answer = await self._store.put(url, content=content)
        except httpx2.TransportError as failed:
            raise ConnectionFailed(f"The object store could not be reached: {_said(failed)}") from failed
        return answer.status_code, str(answer.headers.get("ETag", ""))

    @asynccontextmanager
    async def fetch(self, url: str) -> AsyncIterator[httpx2.Response]:
        """Open a file of the store."""
        try:
            async with self._store.stream("GET", url) as answer:
                yield answer
        except httpx2.TransportError as failed:
            raise ConnectionFailed(f"The object store could not be reached: {_said(failed)}") from failed


def _trust(verify: bool | str) -> Any:
    if isinstance(verify, str):
        return httpx2.create_ssl_context(verify=verify)
    return verify


def _may_repeat(method: str, path: str, failed: Exception) -> bool:
    # A repeated POST has the same Idempotency-Key, or repeats what is the same a second time, except these.
    acts_again = method == "PATCH" or (method == "POST" and path.endswith(("/clear", "/restore")))
    return isinstance(failed, _ARRIVED_NEVER) or not acts_again


def _pause(attempt: int) -> float:
    return float(min(8.0, 0.5 * 2**attempt) * (0.5 + random.random() / 2))


def _retry_after(answer: httpx2.Response) -> float | None:
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isdigit() else None


def _fault(answer: httpx2.Response) -> ServiceError:
    try:
        body = answer.json()
    except ValueError:
        body = None
    return fault_of(answer.status_code, body, answer.headers.get("X-Request-Id"))


def _said(failed: Exception) -> str:
    return str(failed) or type(failed).__name__


def _given(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {name: value for name, value in params.items() if value is not None} if params else None


def _plain(value: Any) -> Any:
    """Return what JSON has no type for: dates, decimals and UUIDs as text, values of NumPy as those of Python."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, bytes | bytearray | set):
        raise TypeError(f"a value of the type {type(value).__name__} cannot be sent")
    return str(value)
