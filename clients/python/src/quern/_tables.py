"""Rows in the forms that data people use. The packages for them are optional and imported when they are needed."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Iterable
from typing import Any, Protocol

from ._errors import IncompleteResult, MissingExtra


class Table(Protocol):
    """A table in memory: a DataFrame of pandas or polars, an Arrow table, a result."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise MissingExtra(f"This needs {module}. Install it with: pip install 'quern[{extra}]'") from missing


def arrow_possible() -> bool:
    """Report whether something that reads Arrow is installed."""
    return installed("pyarrow") or installed("polars")


def table(streams: Iterable[bytes]) -> Any:
    """Return a pyarrow.Table of Arrow streams that have one schema."""
    pa = need("pyarrow", "arrow")
    ipc = need("pyarrow.ipc", "arrow")
    tables = []
    for stream in streams:
        try:
            with ipc.open_stream(pa.py_buffer(stream)) as reader:
                tables.append(reader.read_all())
        except pa.ArrowInvalid as broken:
            raise IncompleteResult(f"The result broke off: {broken}") from broken
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def batches(stream: bytes) -> list[Any]:
    """Return the record batches of an Arrow stream."""
    return list(table([stream]).to_batches())


def pandas_of(arrow: Any) -> Any:
    """Return a DataFrame whose columns stay in Arrow's memory, so that integers with nulls and decimals keep their type."""
    pandas = need("pandas", "pandas")
    return arrow.to_pandas(types_mapper=pandas.ArrowDtype)


def polars_of(streams: list[bytes]) -> Any:
    polars = need("polars", "polars")
    return polars.concat([polars.read_ipc_stream(io.BytesIO(stream)) for stream in streams])


def rows_of(streams: list[bytes]) -> list[dict[str, Any]]:
    if installed("pyarrow"):
        rows: list[dict[str, Any]] = table(streams).to_pylist()
        return rows
    dicts: list[dict[str, Any]] = polars_of(streams).to_dicts()
    return dicts


def rows_in(streams: Iterable[bytes]) -> int:
    """Return the number of rows of Arrow streams."""
    streams = list(streams)
    return int(table(streams).num_rows) if installed("pyarrow") else int(polars_of(streams).height)


def is_frame(value: Any) -> bool:
    """Report whether a value is a table in memory: pandas, polars, pyarrow, or anything with the Arrow capsule protocol."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "write_parquet") or hasattr(value, "to_parquet")


def write_parquet(frame: Any, path: str | io.BytesIO) -> None:
    """Write a table to a Parquet file on the disk or in memory."""
    if hasattr(frame, "write_parquet"):  # polars
        frame.write_parquet(path)
    elif hasattr(frame, "to_parquet"):  # pandas
        frame.to_parquet(path, index=False)
    else:
        pa, parquet = need("pyarrow", "arrow"), need("pyarrow.parquet", "arrow")
        parquet.write_table(pa.table(frame), path)
