"""One dataset."""

from __future__ import annotations

import difflib
import io
import os
import warnings
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from .. import _tables, _wire
from .._errors import ColumnsAddedWarning, Conflict, DoubtsWaiting, LoadFailed, NotFound, QuernError
from .._models import (
    Deleted,
    Listing,
    Load,
    Merged,
    Parameters,
    columns_of,
    deleted_of,
    line_of,
    load_of,
    merged_of,
    names_of,
    parameters_of,
    sendable,
)
from .._progress import Reporter
from .._values import typed_rows
from ._compat import in_thread, sleep
from ._events import AsyncEvents, follow
from ._http import AsyncHttp
from ._record import AsyncRecord

Rows = _tables.Table | Iterable[Mapping[str, Any]] | Mapping[str, Any]
_MOST_BYTES = 64 << 20


class AsyncDataset:
    """A dataset: ``shop["orders"]``.

    Look at it with ``columns``, ``rows``, ``profile``, ``versions``; change rows with ``append``, ``merge``, ``delete_rows``,
    ``restore``; compare what a model read with its documents with ``records``, ``reload``; describe it with ``define``, ``set_key``,
    ``add_synonyms``; give it away with ``share`` and ``export``.
    Making this object sends nothing; a dataset that does not exist is noticed by the first call.
    """

    def __init__(self, http: AsyncHttp, username: str, namespace: str, name: str) -> None:
        self._http, self.username, self.namespace, self.name = http, username, namespace, name
        self._path = f"/data/{username}/{namespace}/{name}"
        self._known: set[str] = set()  # columns, as far as they had to be asked for
        self._shares = f"/permissions/datasets/{username}/{namespace}/{name}/shares"

    async def info(self) -> _wire.Dataset:
        """Return columns, number of rows, description and version."""
        found: _wire.Dataset = await self._http.call("GET", self._path)
        return found

    async def columns(self) -> dict[str, str]:
        """Return the names of the columns with their types."""
        return {column["name"]: column["type"] for column in (await self.info())["metadata"]["columns"]}

    async def profile(self, wait: float = 60) -> _wire.Profile:
        """Return what the columns contain: nulls, distinct values, smallest and largest, frequent values, histograms.

        The service computes it a moment after a load. The call waits for it, at most ``wait`` seconds.
        """
        pause = 0.2
        while True:
            try:
                found: _wire.Profile = await self._http.call("GET", self._path + "/profile")
                return found
            except NotFound:
                if wait <= 0:
                    raise
                await self.info()  # a dataset that does not exist has no profile to wait for
            await sleep(pause)
            wait, pause = wait - pause, min(2.0, pause * 1.5)

    async def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the first rows, or all, one dict each."""
        rows: list[dict[str, Any]] = []
        size = min(limit or 10_000, 10_000)
        async for page in self._http.whole_pages(self._path + "/rows", {"limit": size}):
            rows.extend(typed_rows(columns_of(page["columns"]), page["data"]))
            if limit is not None and len(rows) >= limit:
                break
        return rows[:limit]

    async def append(self, rows: Rows) -> int:
        """Append rows and return their number: dicts, or a table in memory. For files use ``Namespace.upload``.

        Columns that the dataset lacks are added, with a ``ColumnsAddedWarning``. In dicts, NaN, NaT and NA mean that a value is missing.
        """
        return int((await self._post(rows, {}))["indexed"])

    async def merge(self, rows: Rows, key: str | Sequence[str] | None = None, *, dry_run: bool = False) -> Merged:
        """Merge rows: a row takes the place of all rows that have the same values in the columns of ``key``; the others are added.

        ``rows`` are dicts, or a table in memory: a DataFrame, an Arrow table, a result. A row is replaced as a whole: a column that it
        lacks is null afterwards. All rows are merged, or none. With ``dry_run`` nothing changes, and ``replaced`` says how many rows
        would be replaced. For files use ``Namespace.upload`` with ``mode="merge"``.
        """
        params = {"mode": "merge", "key": line_of(names_of(key)) or None, "dryRun": "true" if dry_run else None}
        return merged_of(await self._post(rows, params))

    async def _post(self, rows: Rows, params: Mapping[str, Any]) -> Any:
        path = self._path + "/rows"
        if not is_frame(rows):
            several = sendable(cast("Iterable[Mapping[str, Any]]", [rows] if isinstance(rows, Mapping) else rows))
            added = await self._added(list(dict.fromkeys(name for row in several for name in row)))
            stored = await self._http.call("POST", path, {"data": several}, params=params)
            _tell_added(added, params)
            return stored
        file = io.BytesIO()
        names = await in_thread(lambda: _tables.write_parquet(rows, file))
        added = await self._added(names)
        if len(file.getbuffer()) > _MOST_BYTES:
            raise ValueError(f"One call sends at most {_MOST_BYTES >> 20} MiB. Use Namespace.upload, also with mode='merge'.")
        headers = {"Content-Type": "application/vnd.apache.parquet"}
        stored = (await self._http.send("POST", path, content=file.getvalue(), params=params, headers=headers)).json()
        _tell_added(added, params)
        return stored

    async def _added(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return the names that are not columns yet, each with the column that it may have been meant for."""
        given = {name.strip().casefold(): name for name in names}
        if given.keys() <= self._known:
            return {}
        known = {name.casefold(): name for name in await self.columns()}
        self._known = known.keys() | given.keys()  # afterwards the new names are columns, too
        absent = {folded: name for folded, name in given.items() if known and folded not in known}
        nearest = {name: difflib.get_close_matches(folded, known, 1, 0.8) for folded, name in absent.items()}
        return {name: known[near[0]] if near else None for name, near in nearest.items()}

    async def key(self) -> _wire.DatasetKey | None:
        """Return the key: the columns whose values identify a row. None if none was declared."""
        return (await self.info())["metadata"].get("key")

    async def set_key(self, columns: str | Sequence[str], duplicates: str = "setAside") -> _wire.DatasetKey:
        """Declare the key. Rows of a load that have no value there, or the key of another row, are left out; with
        ``duplicates="refuse"`` such a load fails. ``merge`` uses the key. Rows that violate it already are a ``Conflict``."""
        found: _wire.DatasetKey = await self._http.call(
            "PUT", self._path + "/key", {"columns": names_of(columns), "duplicates": duplicates}
        )
        return found

    async def remove_key(self) -> None:
        """Remove the key. The rows stay as they are."""
        await self._http.call("DELETE", self._path + "/key")

    async def choices(self) -> _wire.Choices:
        """Return what the service remembers of your choices about words in questions. See ``Answer.choose``."""
        found: _wire.Choices = await self._http.call("GET", self._path + "/choices")
        return found

    async def forget_choices(self) -> None:
        """Forget your choices, so that you are asked again."""
        await self._http.call("DELETE", self._path + "/choices")

    async def delete_rows(self, condition: str, parameters: Parameters | None = None, *, dry_run: bool = False) -> Deleted:
        """Delete the rows for which a condition is true. ``versions`` and ``restore`` undo it.

        The condition is what stands after WHERE. Values belong into ``parameters``, as those of ``Namespace.sql``. Rows for which the
        condition is NULL stay. With ``dry_run`` nothing is deleted; the rows are counted, and ``first_rows`` shows some.
        """
        body: dict[str, Any] = {"condition": condition, "dryRun": dry_run}
        if parameters is not None:
            body["parameters"] = parameters_of(parameters)
        return deleted_of(await self._http.call("POST", self._path + "/rows/delete", body))

    async def events(self, types: str | Sequence[str] = (), *, after: str | None = None, patience: float = 300) -> AsyncEvents:
        """Follow what happens to the dataset. See ``Client.events``."""
        about = {"username": self.username, "namespace": self.namespace, "datasetName": self.name}
        return await follow(self._http, about, types, after, patience)

    async def definition(self) -> _wire.InferDefinition:
        """Return the description of the dataset and of its columns."""
        found: _wire.InferDefinition = await self._http.call("GET", self._path + "/inferDefinition")
        return found

    async def define(self, description: str | None = None, schema: Mapping[str, Any] | None = None) -> None:
        """Change the description of the dataset, of its columns, or both."""
        change: dict[str, Any] = {"dataDescription": description, "schemaDefinition": schema}
        await self._http.call("PUT", self._path + "/inferDefinition", {key: value for key, value in change.items() if value is not None})

    async def draft_definition(self) -> _wire.InferDefinition:
        """Return a proposal made from the data. It changes nothing."""
        found: _wire.InferDefinition = await self._http.call("POST", self._path + "/inferDefinition/draft")
        return found

    async def semantics(self) -> _wire.Semantics:
        """Return roles, units and synonyms of the columns, measures and joins."""
        found: _wire.Semantics = await self._http.call("GET", self._path + "/semantics")
        return found

    async def set_semantics(self, change: Mapping[str, Any]) -> _wire.Semantics:
        """Replace everything that people said about roles, units, synonyms, measures and joins.

        What ``change`` leaves out is as the service drafts it. To change one thing, change the value of ``semantics()`` and give it back.
        A column that is changed must not keep ``"source": "drafted"``. For a synonym, ``add_synonyms`` does all this.
        """
        found: _wire.Semantics = await self._http.call("PUT", self._path + "/semantics", dict(change))
        return found

    async def add_synonyms(self, column: str, *words: str) -> _wire.Semantics:
        """Let words stand for a column in questions, for everybody. What was said before stays."""
        path, attempts = self._path + "/semantics", 5
        while True:
            answer = await self._http.send("GET", path)
            now, attempts = answer.json(), attempts - 1
            if column not in now["columns"]:
                raise ValueError(f"The dataset has no column {column!r}. It has: {', '.join(now['columns'])}.")
            said = {name: value for name, value in now["columns"][column].items() if name != "source"}
            now["columns"][column] = said | {"synonyms": list(dict.fromkeys([*said["synonyms"], *words]))}
            try:
                found: _wire.Semantics = await self._http.call("PUT", path, now, headers={"If-Match": answer.headers["ETag"]})
                return found
            except Conflict:  # somebody else changed them meanwhile
                if not attempts:
                    raise

    async def export(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write all rows to a file. The format follows the name: ``.parquet``, ``.csv``, ``.arrow`` …"""
        target = Path(path)
        format = format or target.suffix.removeprefix(".")
        half = target.with_name(target.name + ".part")
        try:
            while not await self._export_once(half, format):
                pass
            half.replace(target)
        finally:
            half.unlink(missing_ok=True)
        return target

    async def _export_once(self, half: Path, format: str) -> bool:
        """Write the file if it is ready. The service writes large files beforehand and says when to ask again."""
        async with self._http.stream("GET", self._path + "/export", params={"format": format}, headers={}) as answer:
            if answer.status_code == 202:
                await answer.aread()
                wait = int(answer.headers.get("Retry-After", "1"))
            elif answer.status_code == 303:
                async with self._http.fetch(answer.headers["Location"]) as file:
                    if file.status_code != 200:
                        raise QuernError(f"The object store refused the file with the status {file.status_code}.")
                    await _save(file, half)
                return True
            else:
                await _save(answer, half)
                return True
        await sleep(wait)
        return False

    async def versions(self) -> list[_wire.Snapshot]:
        """Return the versions of the data, the newest first."""
        return Listing([version async for version in self._http.pages(self._path + "/snapshots")])

    async def restore(self, snapshot_id: str) -> None:
        """Make an older version the current one. The newer ones stay in the list."""
        await self._http.call("POST", f"{self._path}/snapshots/{snapshot_id}/restore")

    async def shares(self) -> list[_wire.Share]:
        """Return who may read or change the dataset. ``pending`` means that the person has not signed in yet."""
        found: list[_wire.Share] = await self._http.call("GET", self._shares)
        return Listing(found)

    async def share(self, username: str, role: str = "viewer") -> None:
        """Give a person, or a group as ``@name``, the role ``viewer`` or ``editor``.

        A name that nobody has yet is accepted: the share takes effect at the first sign-in under that name. Until then ``shares`` has
        it with ``pending``.
        """
        await self._http.call("POST", self._shares, {"username": username, "role": role})

    async def unshare(self, username: str) -> None:
        """Take the role away again."""
        await self._http.call("DELETE", self._shares, {"username": username})

    async def loads(self) -> list[Load]:
        """Return the loads of files, the newest first."""
        return [load_of(load) async for load in self._http.pages(self._path + "/ingestions")]

    async def rows_set_aside(self, load: Load | str) -> list[_wire.SetAsideRow]:
        """Return the rows of a load that did not fit the columns, each with its reason."""
        load_id = load if isinstance(load, str) else load.id
        return [row async for row in self._http.pages(f"{self._path}/ingestions/{load_id}/setAside")]

    async def records(self, load: Load | str, *, flagged: bool = False) -> AsyncIterator[AsyncRecord]:
        """Iterate over the records that a model read in the documents of a load. With ``flagged`` only over those with a field in doubt."""
        path = f"{self._path}/ingestions/{load if isinstance(load, str) else load.id}/records"
        async for wire in self._http.pages(path, {"limit": 100, "flagged": "true" if flagged else None}):
            yield AsyncRecord(self._http, path, wire)

    async def reload(self, load: Load | str) -> Load:
        """Load the documents of a load again, with the corrections of their fields, and return the new load.

        Its rows replace those of the old load, in one version. The model is not asked again about what it has answered.
        """
        path = self._path + "/ingestions"
        made = await self._http.call("POST", f"{path}/{load if isinstance(load, str) else load.id}/reload")
        return await loaded(self._http, path, made, Reporter(False))

    async def rename(self, name: str) -> AsyncDataset:
        """Give the dataset another name."""
        await self._http.call("PATCH", self._path, {"name": name})
        return AsyncDataset(self._http, self.username, self.namespace, name)

    async def clear(self) -> None:
        """Remove all rows. Older versions stay and can be restored."""
        await self._http.call("POST", self._path + "/clear")

    async def delete(self) -> None:
        """Delete the dataset. It can be restored for a time."""
        await self._http.call("DELETE", self._path)

    def __repr__(self) -> str:
        return f"<Dataset {self.username}/{self.namespace}/{self.name}>"


async def loaded(http: AsyncHttp, path: str, wire: dict[str, Any], report: Reporter) -> Load:
    """Wait for the end of a load."""
    pause = 0.05
    while wire["status"] in ("queued", "running"):
        report.tell("loading", wire["progress"]["bytesDone"], wire["progress"]["bytesTotal"])
        await sleep(pause)
        pause = min(1.0, pause * 1.5)
        wire = await http.call("GET", f"{path}/{wire['id']}")
    if wire["status"] == "waiting":
        raise DoubtsWaiting(wire.get("doubts") or ())
    if wire["status"] != "completed":
        failure = wire.get("error") or {"code": "INVALID_STATE", "message": f"The load is {wire['status']}."}
        raise LoadFailed(failure["code"], failure["message"])
    return load_of(wire)


def _tell_added(added: Mapping[str, str | None], params: Mapping[str, Any]) -> None:
    if not added:
        return
    names = ", ".join(f"{name!r}" + (f" (did you mean {near!r}?)" if near else "") for name, near in added.items())
    how = "would be added" if params.get("dryRun") else "were added"
    # The caller of append or merge, not this module.
    warnings.warn(f"The dataset did not have these columns, which {how}: {names}.", ColumnsAddedWarning, stacklevel=4)


async def _save(answer: Any, path: Path) -> None:
    # A body that breaks off is a fault of the connection: it has a length or ends with a last chunk.
    with path.open("wb") as file:
        async for chunk in answer.aiter_bytes(1 << 20):
            file.write(chunk)


def is_frame(value: object) -> bool:
    """Report whether a value is a table in memory instead of the name of a file."""
    return not isinstance(value, str | os.PathLike) and _tables.is_frame(value)
