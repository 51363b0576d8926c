"""Rows in the forms that data people use. The packages for them are optional and imported when they are needed."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Iterable, Iterator
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


def is_parquet(content: bytes) -> bool:
    """Report whether rows are a Parquet file. Otherwise they are an Arrow stream."""
    return content[:4] == b"PAR1"


def table(content: bytes) -> Any:
    """Return a pyarrow.Table of an Arrow stream or a Parquet file."""
    return _as_in_streams(_read(content))


def joined_tables(tables: list[Any]) -> Any:
    """Return a pyarrow.Table of tables that have one schema."""
    return tables[0] if len(tables) == 1 else need("pyarrow", "arrow").concat_tables(tables)


def _read(content: bytes) -> Any:
    pa = need("pyarrow", "arrow")
    try:
        if is_parquet(content):
            return need("pyarrow.parquet", "arrow").read_table(pa.BufferReader(content))
        with need("pyarrow.ipc", "arrow").open_stream(pa.py_buffer(content)) as reader:
            return reader.read_all()
    except pa.ArrowInvalid as broken:
        raise IncompleteResult(f"The result broke off: {broken}") from broken


def _as_in_streams(rows: Any) -> Any:
    """Return rows of a table or batch with the types that they have in an Arrow stream of the service: JSON is text."""
    pa = need("pyarrow", "arrow")
    for index, field in enumerate(rows.schema):
        if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name == "arrow.json":
            rows = rows.set_column(index, field.name, rows.column(index).cast(pa.string()))
    return rows


def batches(content: bytes) -> Iterator[Any]:
    """Yield the record batches of an Arrow stream or of a Parquet file."""
    if not is_parquet(content):
        yield from table(content).to_batches()
        return
    pa = need("pyarrow", "arrow")
    for batch in need("pyarrow.parquet", "arrow").ParquetFile(pa.BufferReader(content)).iter_batches():
        yield _as_in_streams(batch)


def pandas_of(arrow: Any) -> Any:
    """Return a DataFrame whose columns stay in Arrow's memory, so that integers with nulls and decimals keep their type."""
    pandas = need("pandas", "pandas")
    return arrow.to_pandas(types_mapper=pandas.ArrowDtype)


def frame(content: bytes, json: Iterable[str] = ()) -> Any:
    """Return a polars.DataFrame of an Arrow stream or a Parquet file. ``json`` names the columns of JSON, which are bytes in Parquet."""
    polars = need("polars", "polars")
    if is_parquet(content):
        return polars.read_parquet(io.BytesIO(content)).with_columns(polars.col(name).cast(polars.String) for name in json)
    return polars.read_ipc_stream(io.BytesIO(content))


def joined_frames(frames: list[Any]) -> Any:
    """Return a polars.DataFrame of DataFrames that have one schema."""
    return frames[0] if len(frames) == 1 else need("polars", "polars").concat(frames)


def any_table(stream: bytes) -> Any:
    """Return the rows of an Arrow stream as the package that is installed has them."""
    return table(stream) if installed("pyarrow") else frame(stream)


def rows_of(arrow_or_frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a pyarrow.Table or a polars.DataFrame."""
    rows: list[dict[str, Any]] = arrow_or_frame.to_pylist() if hasattr(arrow_or_frame, "to_pylist") else arrow_or_frame.to_dicts()
    return rows


def rows_in(stream: bytes) -> int:
    """Return the number of rows of an Arrow stream."""
    return len(any_table(stream))


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
