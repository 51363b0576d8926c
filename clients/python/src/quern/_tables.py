"""Rows in the forms that data people use. The packages for them are optional and imported when they are needed."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ._errors import IncompleteResult, MissingExtra
from ._models import Column


class Table(Protocol):
    """A table in memory: a DataFrame of pandas or polars, an Arrow table, a result."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        # A registry may have a stranger's package with the name of this one, so none is named.
        raise MissingExtra(
            f"This needs the package {module.partition('.')[0]}. Install it, or the extra [{extra}] of this package: "
            f"in a checkout of Quern, pip install './clients/python[{extra}]'"
        ) from missing


def arrow_possible() -> bool:
    """Report whether something that reads Arrow is installed."""
    return installed("pyarrow") or installed("polars")


def is_parquet(content: bytes) -> bool:
    """Report whether rows are a Parquet file. Otherwise they are an Arrow stream."""
    return content[:4] == b"PAR1"


def table(contents: Iterable[bytes]) -> Any:
    """Return a pyarrow.Table of Arrow streams or Parquet files that have one schema. Sums of integers are integers if they fit."""
    return _with_whole_numbers(_joined(contents))


def _joined(contents: Iterable[bytes]) -> Any:
    pa = need("pyarrow", "arrow")
    tables = [_as_in_streams(_read(content)) for content in contents]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _with_whole_numbers(rows: Any) -> Any:
    """Return a table whose sums of integers, which arrive as decimal(38,0), are int64 if all values fit. Libraries hardly calculate
    with decimals of 38 digits."""
    pa = need("pyarrow", "arrow")
    for index, field in enumerate(rows.schema):
        if field.type == pa.decimal128(38, 0):
            try:
                rows = rows.set_column(index, pa.field(field.name, pa.int64(), field.nullable), rows.column(index).cast(pa.int64()))
            except pa.ArrowInvalid:  # a value has more digits
                continue
    return rows


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
    """Yield the record batches of an Arrow stream or of a Parquet file. Every batch has the types of the statement, whatever its values."""
    if not is_parquet(content):
        yield from _joined([content]).to_batches()
        return
    pa = need("pyarrow", "arrow")
    for batch in need("pyarrow.parquet", "arrow").ParquetFile(pa.BufferReader(content)).iter_batches():
        yield _as_in_streams(batch)


def pandas_of(arrow: Any) -> Any:
    """Return a DataFrame whose columns stay in Arrow's memory, so that integers with nulls and decimals keep their type."""
    pandas = need("pandas", "pandas")
    return arrow.to_pandas(types_mapper=pandas.ArrowDtype)


def polars_of(contents: Iterable[bytes], json: Iterable[str] = ()) -> Any:
    """Return a polars.DataFrame of Arrow streams or Parquet files. ``json`` names the columns of JSON, which are bytes in Parquet."""
    polars = need("polars", "polars")
    frames = []
    for content in contents:
        if is_parquet(content):
            frames.append(polars.read_parquet(io.BytesIO(content)).with_columns(polars.col(name).cast(polars.String) for name in json))
        else:
            frames.append(polars.read_ipc_stream(io.BytesIO(content)))
    frame = polars.concat(frames)
    for name, kind in frame.schema.items():
        if kind == polars.Decimal(38, 0):
            try:
                frame = frame.with_columns(polars.col(name).cast(polars.Int64))
            except polars.exceptions.InvalidOperationError:  # a value has more digits
                continue
    return frame


def rows_of(contents: Iterable[bytes], json: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return one dict for each row. Sums of integers are int, however large."""
    if installed("pyarrow"):
        pa, arrow = need("pyarrow", "arrow"), table(contents)
        rows: list[dict[str, Any]] = arrow.to_pylist(maps_as_pydicts="lossy")
        large = [field.name for field in arrow.schema if field.type == pa.decimal128(38, 0)]
    else:
        polars, frame = need("polars", "polars"), polars_of(contents, json)
        rows = frame.to_dicts()
        large = [name for name, kind in frame.schema.items() if kind == polars.Decimal(38, 0)]
    for name in large:
        for row in rows:
            row[name] = None if row[name] is None else int(row[name])
    return rows


def arrow_of(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a pyarrow.Table of rows that arrived as JSON, with the types that a statement gives."""
    pa = need("pyarrow", "arrow")
    arrays = []
    for column in columns:
        values = [row[column.name] for row in rows]
        try:
            arrays.append(pa.array(values, _arrow_type(column.type)))
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # a value that Python has no type for is text
            arrays.append(pa.array([None if value is None else str(value) for value in values], pa.string()))
    return _with_whole_numbers(pa.table(arrays, names=[column.name for column in columns]))


def _arrow_type(kind: str) -> Any:
    """Return the type of a column; None for structs and maps, whose types are those of their values."""
    pa = need("pyarrow", "arrow")
    if kind.endswith("[]"):
        inner = _arrow_type(kind.removesuffix("[]"))
        return inner and pa.list_(inner)
    if kind.startswith("decimal("):
        precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if kind.startswith(("struct(", "map(")) or kind.endswith("]"):
        return None
    found: Callable[[], Any] = {
        "boolean": pa.bool_,
        "tinyint": pa.int8,
        "smallint": pa.int16,
        "integer": pa.int32,
        "bigint": pa.int64,
        "utinyint": pa.uint8,
        "usmallint": pa.uint16,
        "uinteger": pa.uint32,
        "ubigint": pa.uint64,
        "hugeint": lambda: pa.decimal128(38, 0),
        "float": pa.float32,
        "double": pa.float64,
        "date": pa.date32,
        "time": lambda: pa.time64("us"),
        "timestamp": lambda: pa.timestamp("us"),
        "timestamp with time zone": lambda: pa.timestamp("us", "UTC"),
        "uuid": pa.uuid,
        "blob": pa.binary,
    }.get(kind, pa.string)
    return found()


def rows_in(stream: bytes) -> int:
    """Return the number of rows of an Arrow stream."""
    return int(_read(stream).num_rows) if installed("pyarrow") else int(polars_of([stream]).height)


def is_frame(value: Any) -> bool:
    """Report whether a value is a table in memory: pandas, polars, pyarrow, or anything with the Arrow capsule protocol."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "write_parquet") or hasattr(value, "to_parquet")


def write_parquet(frame: Any, path: str | io.BytesIO) -> list[str]:
    """Write a table to a Parquet file on the disk or in memory, and return the names of its columns."""
    if hasattr(frame, "to_frame") and not hasattr(frame, "columns"):  # a Series
        frame = frame.to_frame()
    if hasattr(frame, "write_parquet"):  # polars
        frame.write_parquet(path)
        return list(frame.columns)
    pa, parquet = need("pyarrow", "arrow"), need("pyarrow.parquet", "arrow")
    try:
        if hasattr(frame, "to_parquet"):  # pandas
            frame = pa.Table.from_pandas(_with_index(frame), preserve_index=False)
        rows = pa.table(frame)
        parquet.write_table(rows, path)
        return list(rows.column_names)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as refused:
        said = ". ".join(str(part).rstrip(".") for part in reversed(refused.args))
        raise ValueError(
            f"The table cannot be sent: {said}. All values of a column must have one type: convert the column before, "
            "for example with df[column] = df[column].astype(str)."
        ) from refused


def _with_index(frame: Any) -> Any:
    """Return a DataFrame of pandas whose index is among its columns. An index of integers without a name only numbers the rows."""
    index, kinds = frame.index, need("pandas.api.types", "pandas")
    numbers = index.nlevels == 1 and index.name is None and (len(index) == 0 or kinds.is_integer_dtype(index.dtype))
    names = ["_".join(str(part) for part in name) if isinstance(name, tuple) else str(name) for name in frame.columns]
    frame = frame.set_axis(names, axis="columns")
    if numbers:
        return frame
    if twice := [name for name in index.names if name in names]:
        raise ValueError(
            f"The index {twice[0]!r} has the name of a column. Rename it with rename_axis, or leave it out with reset_index(drop=True)."
        )
    return frame.reset_index()
