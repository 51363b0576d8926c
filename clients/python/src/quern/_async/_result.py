"""The rows of a statement."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncIterator
from typing import Any

from .. import _html, _tables
from .._errors import IncompleteResult, TruncatedWarning
from .._models import Column, ReadVersion, columns_of, versions_of
from .._values import typed_rows
from ._http import AsyncHttp
from ._pieces import AsyncPieces, completed

ARROW = "application/vnd.apache.arrow.stream"


class AsyncResult:
    """The rows of a statement, complete.

    ``df()`` is a DataFrame of pandas, ``pl()`` one of polars, ``arrow()`` a table of pyarrow, ``rows()`` a list of dicts, ``scalar()`` the
    value of a result with one, ``batches()`` reads any number of rows in constant memory. ``row_count``, ``truncated``, ``query`` and
    ``versions`` say what it is.

    Speaks the Arrow capsule protocol, so polars, DuckDB and pandas take it without a copy: ``pl.DataFrame(result)``,
    ``duckdb.sql("from result")``.
    """

    query: str
    """The statement."""
    row_count: int
    """The number of rows."""
    truncated: bool
    """Whether rows are missing; only possible with ``truncate=True``."""
    versions: tuple[ReadVersion, ...]
    """The versions of the datasets that were read. ``Dataset.versions`` has the moment of each, for ``as_of``."""

    def __init__(
        self,
        query: str,
        said: dict[str, Any],
        *,
        stream: bytes | None = None,
        rows: list[dict[str, Any]] | None = None,
        pieces: AsyncPieces | None = None,
    ) -> None:
        self.query, self.row_count, self.truncated = query, int(said["count"]), bool(said["truncated"])
        self.versions = versions_of(said.get("snapshots"))
        self._stream, self._rows, self._pieces = stream, rows, pieces
        self._columns = columns_of(said.get("columns"))

    async def arrow(self) -> Any:
        """Return a ``pyarrow.Table``. Sums of integers are int64 if all values fit, otherwise decimal128(38, 0)."""
        return _tables.table(await self._contents())

    async def df(self) -> Any:
        """Return a ``pandas.DataFrame`` with Arrow types."""
        _tables.need("pandas", "pandas")
        return _tables.pandas_of(await self.arrow())

    async def pl(self) -> Any:
        """Return a ``polars.DataFrame``."""
        _tables.need("polars", "polars")
        return _tables.polars_of(await self._contents(), self._json())

    async def rows(self) -> list[dict[str, Any]]:
        """Return a list with one dict for each row. Works without any optional package, and gives the same values with and without."""
        if self._rows is not None:
            return [dict(row) for row in self._rows]
        return _tables.rows_of(await self._contents(), self._json())

    async def batches(self) -> AsyncIterator[Any]:
        """Yield a ``pyarrow.RecordBatch`` at a time. A large result is fetched piece by piece, so memory stays constant.

        All batches have the same types. Sums of integers stay decimal128(38, 0), because a later batch may have a value that does not
        fit into 64 bits.
        """
        if self._pieces is None:
            for batch in _tables.batches(self._arrow_stream()):
                yield batch
            return
        async for piece in self._pieces.one_by_one():
            for batch in _tables.batches(piece):
                yield batch

    async def scalar(self) -> Any:
        """Return the one value of a result with one row and one column."""
        rows = await self.rows()
        if len(rows) != 1 or len(rows[0]) != 1:
            raise ValueError(f"The result has {len(rows)} rows and {len(rows[0]) if rows else 0} columns, not one value.")
        return next(iter(rows[0].values()))

    async def _contents(self) -> list[bytes]:
        return [self._arrow_stream()] if self._pieces is None else await self._pieces.all()

    def _json(self) -> list[str]:
        return [column.name for column in self._columns if column.type == "json"]

    def _arrow_stream(self) -> bytes:
        if self._stream is None:
            _tables.need("pyarrow", "arrow")  # says what to install
            raise RuntimeError("A package was installed after the statement ran; run the statement again")
        return self._stream

    # sync: def __arrow_c_stream__(self, requested_schema: object = None) -> object:
    # sync:     """Give the rows to polars, DuckDB, pandas and others without a copy."""
    # sync:     return self.arrow().__arrow_c_stream__(requested_schema)

    # sync: def __iter__(self) -> Iterator[dict[str, Any]]:
    # sync:     return iter(self.rows())

    def __len__(self) -> int:
        return self.row_count

    def __repr__(self) -> str:
        return f"<Result of {self.row_count:,} rows{', truncated' if self.truncated else ''}>"

    def _repr_html_(self) -> str:
        if self._pieces is not None:  # nothing is fetched just to show it
            return _html.rows_page(self._columns, [], self.row_count)
        shown = self._rows if self._rows is not None else _tables.rows_of([self._arrow_stream()])
        return _html.rows_page(_columns_or(self._columns, shown), shown, self.row_count)


def _columns_or(columns: tuple[Column, ...], rows: list[dict[str, Any]]) -> tuple[Column, ...]:
    return columns or tuple(Column(name, "") for name in (rows[0] if rows else {}))


async def run_statement(http: AsyncHttp, body: dict[str, Any]) -> AsyncResult:
    """Run a statement and return its rows. The service keeps a result that is too large for one answer, and gives it in pieces."""
    if not body.get("truncate"):
        body = body | {"overflow": "statement"}
    if not _tables.arrow_possible():
        return await _as_json(http, body)
    if "overflow" in body:
        # Of a result in pieces. An Arrow stream would have several times as many bytes.
        body |= {"format": "parquet", "parquetVersion": 2}
    answer = await http.send("POST", "/query", body, headers={"Accept": f"{ARROW}, application/json;q=0.1"})
    if answer.status_code == 202:
        statement = await completed(http, answer.json())
        pieces = await AsyncPieces.of(http, statement["id"])
        said = {"count": pieces.rows, "truncated": False, "snapshots": statement.get("snapshots"), "columns": statement.get("columns")}
        return AsyncResult(body["query"], said, pieces=pieces)
    said = json.loads(answer.headers["X-Quern-Result"])
    arrived = _tables.rows_in(answer.content)
    # A stream that ends between two batches is a valid shorter stream.
    if arrived != said["count"]:
        raise IncompleteResult(f"The result has {said['count']} rows, but only {arrived} arrived.")
    return _told(AsyncResult(body["query"], said, stream=answer.content))


async def _as_json(http: AsyncHttp, body: dict[str, Any]) -> AsyncResult:
    answer = await http.send("POST", "/query", body)
    if answer.status_code == 202:
        statement = await completed(http, answer.json())
        said = {"count": statement["progress"]["rows"], "truncated": False, **statement}
        data = [row async for row in http.pages(f"/query/statements/{statement['id']}/rows", {"limit": 10_000})]
    else:
        found = answer.json()
        said, data = found["metadata"] | {"columns": found["columns"]}, found["data"]
    rows = typed_rows(columns_of(said["columns"]), data)
    if len(rows) != said["count"]:
        raise IncompleteResult(f"The result has {said['count']} rows, but only {len(rows)} arrived.")
    return _told(AsyncResult(body["query"], said, rows=rows))


def _told(result: AsyncResult) -> AsyncResult:
    if result.truncated:
        warnings.warn(f"The result was cut after {result.row_count} rows.", TruncatedWarning, stacklevel=4)
    return result
