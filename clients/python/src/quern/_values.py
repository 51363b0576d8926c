"""Values of JSON with the types of their columns, so that rows are the same in whichever form they arrived."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import re
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._models import Column

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_LIST = re.compile(r"(.*)\[\d*\]", re.DOTALL)
_EXACT = decimal.Context(prec=77)

Convert = Callable[[Any], Any]


def typed_rows(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of the API without their metadata. Each value has the type that it also has in a result that arrived as Arrow."""
    converts = [(column.name, converter(column.type)) for column in columns]
    if all(convert is None for _, convert in converts):
        return [{name: row.get(name) for name, _ in converts} for row in rows]
    return [{name: _applied(convert, row.get(name)) for name, convert in converts} for row in rows]


def _applied(convert: Convert | None, value: Any) -> Any:
    if convert is None or value is None:
        return value
    try:
        return convert(value)
    except ValueError:  # Python has no such value, for example a day before Christ
        return value


def converter(kind: str) -> Convert | None:
    """Return what makes a value of a column out of its JSON; None if they are the same. Structs and maps are left as they are."""
    if inner := _LIST.fullmatch(kind):
        convert = converter(inner[1])
        return convert and (lambda values: [_applied(convert, value) for value in values])
    if (found := _DECIMAL.fullmatch(kind)) and not is_whole(kind):
        unit = decimal.Decimal(1).scaleb(-int(found[2]))
        return lambda value: decimal.Decimal(str(value)).quantize(unit, context=_EXACT)
    return _CONVERTERS.get("hugeint" if is_whole(kind) else kind)


def is_whole(kind: str) -> bool:
    """Report whether a type is that of sums of integers."""
    return kind.replace(" ", "") in ("hugeint", "decimal(38,0)")


_CONVERTERS: dict[str, Convert] = {
    "bigint": int,
    "ubigint": int,
    "hugeint": int,
    "uhugeint": str,
    "double": float,
    "float": lambda value: struct.unpack("f", struct.pack("f", float(value)))[0],
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "timestamp with time zone": datetime.datetime.fromisoformat,
    "uuid": uuid.UUID,
    "blob": base64.b64decode,
    "json": lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
}
