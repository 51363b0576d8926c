"""A namespace: datasets that belong together, and questions about them."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _files, _tables, _wire
from .._models import Listing, Load, Parameters, names_of, parameters_of, verified_body, when
from .._progress import Progress, Reporter
from ._answer import AsyncAnswer, AsyncStream, ask
from ._dataset import AsyncDataset, is_frame, loaded
from ._events import AsyncEvents, follow
from ._http import AsyncHttp
from ._result import AsyncResult, run_statement
from ._upload import AsyncUploader

Moment = datetime.datetime | datetime.date | str
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class AsyncNamespace:
    """A namespace: datasets that belong together, and questions about them.

    ``upload`` loads files and DataFrames, ``sql`` runs a statement, ``ask`` asks in plain language, ``namespace["orders"]`` is one
    dataset, ``datasets`` lists all. Making this object sends nothing.
    """

    def __init__(self, http: AsyncHttp, username: str, name: str) -> None:
        self._http, self.username, self.name = http, username, name

    def __getitem__(self, dataset: str) -> AsyncDataset:
        return AsyncDataset(self._http, self.username, self.name, dataset)

    async def datasets(self) -> list[_wire.DatasetItem]:
        """Return the datasets that the caller may see."""
        return Listing([one async for one in self._http.pages(f"/schema/{self.username}/{self.name}/datasets")])

    async def create(self, exposure: str | None = None) -> None:
        """Create the namespace. ``upload`` does so by itself."""
        _files.check_name("namespace", self.name)
        body = {"name": self.name} | ({"exposure": exposure} if exposure else {})
        await self._http.call("POST", f"/schema/{self.username}/namespaces", body)

    async def delete(self) -> None:
        """Delete the namespace with its datasets. It can be restored for a time."""
        await self._http.call("DELETE", f"/schema/{self.username}/namespaces/{self.name}")

    async def create_dataset(self, dataset: str, description: str | None = None, schema: Mapping[str, str] | None = None) -> AsyncDataset:
        """Create an empty dataset in a namespace of the caller, and the namespace if there is none.

        ``upload`` does so by itself. This is for documents that a model reads: the description of the dataset and of its columns must be
        known before the first of them.
        """
        _files.check_name("dataset", dataset)
        _files.check_name("namespace", self.name)
        if self.username not in ("self", (await self._http.call("GET", "/user/me"))["username"]):
            raise ValueError("Only the owner of a namespace creates datasets in it.")
        said: dict[str, Any] = {"dataDescription": description, "schemaDefinition": schema}
        await self._http.call(
            "POST", f"/ingest/new/{self.name}/{dataset}", {key: value for key, value in said.items() if value is not None}
        )
        return self[dataset]

    async def sql(
        self,
        query: str,
        parameters: Parameters | None = None,
        *,
        as_of: Moment | None = None,
        truncate: bool = False,
    ) -> AsyncResult:
        """Run a SELECT and return all its rows.

        Values belong into ``parameters``: ``$1`` stands for a value of a list, ``$name`` for one of a dict. ``as_of`` reads the
        data as they were at a moment; one without a time zone is in the time zone of this machine.
        A result of any size is complete. With ``truncate`` one that is too large for one answer is cut, with a ``TruncatedWarning``.
        """
        body: dict[str, Any] = {"username": self.username, "namespace": self.name, "query": query}
        if parameters is not None:
            body["parameters"] = parameters_of(parameters)
        if as_of is not None:
            body["asOf"] = when(as_of)
        if truncate:
            body["truncate"] = True
        return await run_statement(self._http, body)

    async def ask(
        self,
        question: str,
        *,
        datasets: Sequence[str] | None = None,
        model: str | None = None,
        provider: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        hint: str | None = None,
        time_zone: str | None = None,
        as_of: Moment | None = None,
    ) -> AsyncAnswer:
        """Ask in plain language and wait for the answer.

        If the question can be read in several ways, ``answer.clarification`` lists them; settle it with ``answer.choose(1)``.
        """
        return await ask(self._http, self._question(question, datasets, model, provider, agent, conversation, hint, time_zone, as_of))

    def ask_stream(
        self,
        question: str,
        *,
        datasets: Sequence[str] | None = None,
        model: str | None = None,
        provider: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        hint: str | None = None,
        time_zone: str | None = None,
        as_of: Moment | None = None,
        patience: float = 120,
    ) -> AsyncStream:
        """Ask and iterate over the events. A broken connection is resumed, for up to ``patience`` seconds without a sign of life."""
        body = self._question(question, datasets, model, provider, agent, conversation, hint, time_zone, as_of)
        return AsyncStream(self._http, body, None, patience)

    def _question(
        self,
        question: str,
        datasets: Sequence[str] | None,
        model: str | None,
        provider: str | None,
        agent: str | None,
        conversation: str | None,
        hint: str | None,
        time_zone: str | None,
        as_of: Moment | None,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "username": self.username,
            "namespace": self.name,
            "query": question,
            "datasets": list(datasets) if datasets else None,
            "model": model,
            "provider": provider,
            "agent": agent,
            "conversationId": conversation,
            "helperPrompt": hint,
            "timeZone": time_zone,
            "asOf": when(as_of),
        }
        return {name: value for name, value in body.items() if value is not None}

    async def upload(
        self,
        source: Any,
        dataset: str,
        *,
        mode: str = "append",
        key: str | Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        accept: Sequence[str] | str = (),
        dry_run: bool = False,
        sample: int | None = None,
        progress: Progress = False,
        at_once: int = 4,
    ) -> Load:
        """Upload files, a folder, a pattern or a DataFrame, load them into a dataset and return the load.

        ``mode`` is ``append``, ``replace`` or ``merge``. With ``merge`` a row takes the place of the rows that have the same values in
        the columns of ``key``. All files are loaded, or none. A call that was interrupted, also by the end of the
        program, continues when the same call is made again: only parts that the store lacks are sent. If something about the files
        is doubtful, nothing is loaded and ``DoubtsWaiting`` is raised. With ``dry_run`` nothing is loaded; of documents that a model is to
        read, ``sample`` then says how many parts it reads, and ``Dataset.records`` shows what it found.
        """
        what = {"mode": mode, "dryRun": dry_run, "sample": sample}
        _files.check_name("dataset", dataset)
        _files.check_name("namespace", self.name)
        if is_frame(source):
            with tempfile.TemporaryDirectory(prefix="quern-") as folder:
                path = Path(folder, dataset + ".parquet")
                _tables.write_parquet(source, str(path))
                return await self._load([path], dataset, what, key, options, accept, progress, at_once, resume=False)
        paths: Iterable[Any] = [source] if isinstance(source, str | os.PathLike) else source
        return await self._load(paths, dataset, what, key, options, accept, progress, at_once, resume=True)

    async def draft_definition(self, source: Any, dataset: str, *, progress: Progress = False) -> _wire.DraftedDefinition:
        """Let a model propose the descriptions that it needs to read rows out of documents, from a few of them. Nothing is saved.

        ``quotes`` of the proposal has the words of a document that state each field. ``create_dataset`` and ``Dataset.define`` save what
        you make of it.
        """
        _files.check_name("dataset", dataset)
        _files.check_name("namespace", self.name)
        paths: Iterable[Any] = [source] if isinstance(source, str | os.PathLike) else source
        load = await self._load(paths, dataset, {"dryRun": True, "draft": True}, None, None, (), progress, 4, resume=True)
        drafted: _wire.DraftedDefinition = (load.preview or {})["definition"]
        return drafted

    async def _load(
        self,
        paths: Iterable[Any],
        dataset: str,
        what: Mapping[str, Any],
        key: str | Sequence[str] | None,
        options: Mapping[str, Any] | None,
        accept: Sequence[str] | str,
        progress: Progress,
        at_once: int,
        resume: bool,
    ) -> Load:
        groups = _files.sessions(_files.collect(paths))
        if len(groups) > 1:
            raise ValueError(
                f"An upload has at most {_files.MOST_FILES} files and {_files.MOST_PARTS * _files.PART >> 30} GiB. "
                "Load them in several calls."
            )
        report = Reporter(progress)
        try:
            uploader = AsyncUploader(self._http, groups[0], report, at_once)
            session = await uploader.send(resume)
            body: dict[str, Any] = {"sessionId": session} | {name: value for name, value in what.items() if value is not None}
            if key:
                body["key"] = names_of(key)
            if options:
                body["options"] = dict(options)
            if accept:
                body["accept"] = [accept] if isinstance(accept, str) else list(accept)
            path = f"/data/{self.username}/{self.name}/{dataset}/ingestions"
            load = await loaded(self._http, path, await self._http.call("POST", path, body), report)
            if not what["dryRun"]:
                uploader.forget()
            return load
        finally:
            report.close()

    async def events(self, types: str | Sequence[str] = (), *, after: str | None = None, patience: float = 300) -> AsyncEvents:
        """Follow what happens in the namespace. See ``Client.events``."""
        return await follow(self._http, {"username": self.username, "namespace": self.name}, types, after, patience)

    async def verified(self) -> list[_wire.VerifiedQuestion]:
        """Return the verified questions."""
        return [one async for one in self._http.pages(f"/verified/{self.username}/{self.name}")]

    async def verify(
        self,
        question: str,
        query: str,
        wordings: Sequence[str] = (),
        *,
        parameters: Sequence[Mapping[str, Any]] = (),
        interpretation: str | None = None,
    ) -> _wire.VerifiedQuestion:
        """Keep a question and the statement that answers it.

        A word such as ``$city`` in the question and in the statement stands for a value. ``parameters`` describes each, for example
        ``{"name": "city", "type": "varchar", "column": "orders.city", "default": "Vienna"}``.
        """
        body = verified_body(question, query, wordings, parameters, interpretation)
        kept: _wire.VerifiedQuestion = await self._http.call("POST", f"/verified/{self.username}/{self.name}", body)
        return kept

    async def retire(self, verified_id: str) -> None:
        """End a verified question: its statement no longer answers."""
        await self._http.call("DELETE", f"/verified/{self.username}/{self.name}/{verified_id}")

    async def suggestions(self) -> list[_wire.Suggestion]:
        """Return questions that can be answered."""
        params = {"username": self.username, "namespace": self.name}
        found: list[_wire.Suggestion] = (await self._http.call("GET", "/query/suggestions", params=params))["data"]
        return found

    async def share(self, username: str, role: str = "viewer") -> None:
        """Give a person, or a group as ``@name``, the role ``viewer`` or ``editor`` in the whole namespace.

        A name that nobody has yet is accepted: the share takes effect at the first sign-in under that name.
        """
        path = f"/permissions/namespaces/{self.username}/{self.name}/shares"
        await self._http.call("POST", path, {"username": username, "role": role})

    async def unshare(self, username: str) -> None:
        """Take the role away again."""
        path = f"/permissions/namespaces/{self.username}/{self.name}/shares"
        await self._http.call("DELETE", path, {"username": username})

    def __repr__(self) -> str:
        return f"<Namespace {self.username}/{self.name}>"
