"""Answers to questions, with what stands behind them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from .. import _html, _tables
from .._errors import RunFailed, in_python
from .._models import (
    Checks,
    Clarification,
    Column,
    Doubt,
    Event,
    Explanation,
    Option,
    ReadVersion,
    Verified,
    checks_of,
    clarification_of,
    columns_of,
    doubts_of,
    explanations_of,
    verified_body,
    verified_of,
    versions_of,
)
from .._values import typed_rows
from ._http import AsyncHttp

_SEE_TABLE = "listed in the table of the answer"  # the text leaves the rows to what shows it
_LAST = {"runCompleted", "runCancelled", "runFailed", "runWaiting"}


class AsyncStep:
    """A statement behind an answer, and its rows.

    ``query`` is the statement, ``columns`` has names and types, ``row_count`` the number of rows, ``first_rows`` the first of them.
    ``rows()``, ``df()``, ``pl()`` and ``arrow()`` give all that the run kept; ``truncated`` says that the statement has more.
    """

    def __init__(self, http: AsyncHttp, run_id: str, wire: dict[str, Any]) -> None:
        self._http, self._run_id = http, run_id
        self.index: int = wire["index"]
        self.instruction: str = wire["instruction"]
        self.query: str = wire["query"]
        self.columns: tuple[Column, ...] = columns_of(wire["columns"])
        self.row_count: int = wire["rowCount"]
        self.truncated: bool = wire["truncated"]
        self.basis: str | None = wire.get("basis")
        self.doubts: tuple[Doubt, ...] = doubts_of(wire.get("doubts"))
        self.first_rows: list[dict[str, Any]] = typed_rows(self.columns, wire["data"])

    async def rows(self) -> list[dict[str, Any]]:
        """Return all rows that the run kept, one dict each."""
        if len(self.first_rows) >= self.row_count:
            return list(self.first_rows)
        path = f"/query/runs/{self._run_id}/steps/{self.index}/rows"
        return typed_rows(self.columns, [row async for row in self._http.pages(path)])

    async def arrow(self) -> Any:
        """Return the rows as a ``pyarrow.Table``."""
        return _tables.arrow_of(self.columns, await self.rows())

    async def df(self) -> Any:
        """Return the rows as a ``pandas.DataFrame`` with Arrow types, as ``Result.df`` does."""
        _tables.need("pandas", "pandas")
        return _tables.pandas_of(await self.arrow())

    async def pl(self) -> Any:
        """Return the rows as a ``polars.DataFrame``."""
        polars = _tables.need("polars", "polars")
        if _tables.installed("pyarrow"):
            return polars.DataFrame(await self.arrow())
        return polars.DataFrame(await self.rows(), schema=[column.name for column in self.columns], infer_schema_length=None)

    def __repr__(self) -> str:
        return f"<Step {self.index}: {self.row_count:,} rows of {self.query!r}>"


class AsyncAnswer:
    """An answer: how the service understood the question, the text, the checked figures, the statements and their rows.

    In a notebook it shows itself; ``print`` shows the text. Its attributes:

    - ``ok``: the question was answered, and no figure is in doubt
    - ``outcome``: ``answer``, ``answer_unverified``, ``no_data``, ``clarification``, ``not_permitted``, ``refused`` or ``withheld``
    - ``response``: the text
    - ``reading``: how the service understood the question
    - ``explained``: how the service understood each word
    - ``steps``: the statements with their rows, for example ``steps[0].df()``
    - ``query``: the last statement
    - ``clarification``: the possible readings, if the question has several; ``choose`` takes one of them
    - ``checks``: how many figures of the text were found in the rows; None if the service made the text from the rows
    - ``doubts``: reasons why the answer may be wrong
    - ``basis``: what produced the statement, for example ``rules``
    - ``verified``: the verified question whose statement answered, or None
    - ``versions``: the versions of the datasets that were read
    - ``question``, ``id``, ``conversation_id``, ``status``
    - ``raw``: the whole response of the service
    """

    def __init__(self, http: AsyncHttp, run: dict[str, Any]) -> None:
        self._http, self.raw = http, run
        result = run.get("result") or {}
        self.id: str = run["runId"]
        self.conversation_id: str = run["conversationId"]
        self.question: str = run["question"]
        self.status: str = run["status"]
        self.outcome: str = result.get("outcome", "")
        """``answer``, ``answer_unverified``, ``no_data``, ``clarification``, ``not_permitted``, ``refused`` or ``withheld``."""
        self.response: str = result.get("response", "")
        if self.outcome == "refused":
            self.response = in_python(self.response)
        self.reading: str = result.get("interpretation", "")
        """What the question was taken for."""
        self.basis: str | None = result.get("basis")
        self.explained: tuple[Explanation, ...] = explanations_of(result.get("explained"))
        self.steps: list[AsyncStep] = [AsyncStep(http, self.id, step) for step in result.get("steps") or ()]
        self.checks: Checks | None = checks_of(result.get("checks"))
        self.clarification: Clarification | None = clarification_of(result.get("clarification"))
        self.doubts: tuple[Doubt, ...] = doubts_of(result.get("doubts"))
        self.verified: Verified | None = verified_of(result.get("verified"))
        self.versions: tuple[ReadVersion, ...] = versions_of(result.get("asOf"))

    @property
    def ok(self) -> bool:
        """Whether the question was answered and no figure is in doubt.

        Figures of a text that a model wrote were all found in the rows. Without a model the text is made from the rows, and ``checks``
        is None. Whether the question was understood as it was meant, ``reading`` and ``query`` say.
        """
        return self.outcome == "answer"

    @property
    def query(self) -> str | None:
        """The last statement behind the answer."""
        return self.steps[-1].query if self.steps else None

    async def choose(self, option: int | Option) -> AsyncAnswer:
        """Settle a clarification with the number of an option, and return the answer.

        The service remembers for you what the option says about the words of the question, and does not ask about them again.
        ``Dataset.choices`` lists what is remembered, ``Dataset.forget_choices`` forgets it.
        """
        number = option if isinstance(option, int) else option.number
        run = await self._http.call("POST", f"/query/runs/{self.id}/choose", {"option": number}, headers=_WAIT)
        return await ended(self._http, run)

    async def follow_up(self, question: str) -> AsyncAnswer:
        """Ask the next question of the same conversation.

        The question is taken together with the last one of the conversation, also if another answer than this one was the last. To
        ask about the same answer again, ask with ``Namespace.ask`` first, which begins a new conversation.
        """
        run = self.raw
        body = {
            "username": run["username"],
            "namespace": run["namespace"],
            "query": question,
            "conversationId": self.conversation_id,
            "agent": run["agent"],
        }
        return await ended(self._http, await self._http.call("POST", "/query/ask", body, headers=_WAIT))

    async def rate(self, thumbs_up: bool, comment: str | None = None) -> None:
        """Say whether the answer helped. A second rating replaces the first."""
        body = {"thumbsUp": thumbs_up} | ({"comment": comment} if comment else {})
        await self._http.call("POST", f"/query/runs/{self.id}/feedback", body)

    async def withdraw_rating(self) -> None:
        """Remove the rating."""
        await self._http.call("DELETE", f"/query/runs/{self.id}/feedback")

    async def verify(
        self,
        question: str | None = None,
        wordings: Sequence[str] = (),
        *,
        parameters: Sequence[Mapping[str, Any]] = (),
        interpretation: str | None = None,
    ) -> dict[str, Any]:
        """Keep the question and its statement as verified: from now on the statement answers it, without a model.

        A question of another wording replaces that of the run. For parameters, see ``Namespace.verify``; the statement of an answer
        rarely has any.
        """
        body = {"runId": self.id, **verified_body(question, None, wordings, parameters, interpretation)}
        path = f"/verified/{self.raw['username']}/{self.raw['namespace']}"
        kept: dict[str, Any] = await self._http.call("POST", path, body)
        return kept

    async def cancel(self) -> None:
        """Stop the run if it has not ended."""
        await self._http.call("POST", f"/query/runs/{self.id}/cancel")

    async def delete(self) -> None:
        """Remove the run and what it kept."""
        await self._http.call("DELETE", f"/query/runs/{self.id}")

    def __str__(self) -> str:
        if self.clarification:
            options = "".join(f"\n  {option.number}. {option.reading}" for option in self.clarification.options)
            return self.clarification.question + options
        if _SEE_TABLE in self.response and self.steps:
            last = self.steps[-1]
            return f"{self.response}\n\n{_html.text_table(last.columns, last.first_rows, last.row_count)}"
        return self.response

    def __repr__(self) -> str:
        return f"<Answer {self.outcome}: {self.question!r}>"

    def _repr_markdown_(self) -> str:
        return _html.answer_markdown(self)

    def _repr_html_(self) -> str:
        return _html.answer_page(self)


class AsyncStream:
    """The events of a run, as they happen. A broken connection is resumed after the last event that arrived."""

    def __init__(self, http: AsyncHttp, body: dict[str, Any] | None, run_id: str | None, patience: float) -> None:
        self._http, self._body, self._patience = http, body, patience
        self.run_id = run_id
        """Known after the first event."""
        self._last_id: str | None = None
        self._ended = False

    async def __aiter__(self) -> AsyncGenerator[Event]:
        if self.run_id is None:
            # The run is created first. So a broken connection can never create a second one.
            run = await self._http.call("POST", "/query/ask", self._body, headers={"Prefer": "respond-async"})
            self.run_id = run["runId"]
        if self._ended:
            return
        path = f"/query/runs/{self.run_id}/events"
        async with aclosing(self._http.follow(path, None, self._last_id, self._patience)) as events:
            async for event in events:
                if not event.data:
                    continue
                self._last_id = event.id
                self._ended = event.event in _LAST
                yield Event(event.id, event.event, _data(event.json()))
                if self._ended:
                    return

    async def answer(self) -> AsyncAnswer:
        """Return the answer, after the rest of the events."""
        async for _ in self:
            pass
        return AsyncAnswer(self._http, _unless_failed(await self._http.call("GET", f"/query/runs/{self.run_id}")))


_WAIT = {"Prefer": "wait=50"}


async def ended(http: AsyncHttp, run: dict[str, Any]) -> AsyncAnswer:
    """Wait until the run has ended or asks back."""
    if run["status"] == "running":
        return await AsyncStream(http, None, run["runId"], patience=120).answer()
    return AsyncAnswer(http, _unless_failed(run))


async def ask(http: AsyncHttp, body: dict[str, Any]) -> AsyncAnswer:
    """Ask and wait for the answer."""
    return await ended(http, await http.call("POST", "/query/ask", body, headers=_WAIT))


def _unless_failed(run: dict[str, Any]) -> dict[str, Any]:
    if run["status"] == "failed":
        failure = run.get("error") or {"code": "INTERNAL", "message": "The run failed."}
        raise RunFailed(failure["code"], in_python(failure["message"]))
    return run


def _data(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
