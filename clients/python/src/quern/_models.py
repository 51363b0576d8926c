"""What the service returns, as values. Fields that a newer service adds are in ``raw``."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ._errors import noted
from ._values import typed_rows

T = TypeVar("T")


@dataclass(frozen=True)
class Column:
    """A column of a result."""

    name: str
    type: str


@dataclass(frozen=True)
class ReadVersion:
    """The version of a dataset that was read."""

    dataset: str
    snapshot_id: str
    committed_at: datetime.datetime | None = None


@dataclass(frozen=True)
class Explanation:
    """What words of the question were taken for."""

    words: str
    meaning: str
    dataset: str | None = None
    column: str | None = None
    how: str | None = None


@dataclass(frozen=True)
class Option:
    """A possible reading of a question."""

    number: int
    reading: str
    query: str | None = None


@dataclass(frozen=True)
class Clarification:
    """The service asks back: choose one of the options by its number."""

    question: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Claim:
    """A figure in a text, and whether the rows confirm it."""

    text: str
    start: int
    end: int
    verified: bool
    reason: str | None = None
    calculation: str | None = None


@dataclass(frozen=True)
class Checks:
    """How many figures of the answer were found in the rows."""

    claims: int
    verified: int
    unverified: tuple[str, ...] = ()
    places: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Doubt:
    """A reason to look twice at an answer."""

    kind: str
    text: str


@dataclass(frozen=True)
class Verified:
    """The verified question whose statement answered."""

    id: str
    question: str
    author: str
    verified_at: datetime.datetime


@dataclass(frozen=True)
class Event:
    """Something that happened in a run. ``data`` depends on the type; ignore types that you do not know."""

    id: str
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Load:
    """An ingestion: files that became rows of a dataset, or a dry run of it. ``print(load)`` says what the service noticed.

    ``rows`` were loaded, ``rows_set_aside`` did not fit (``Dataset.rows_set_aside(load)`` lists them), ``doubts`` and ``warnings`` are what
    was noticed, ``preview`` has columns and first rows of a dry run, ``snapshot_id`` is the new version.
    """

    id: str
    status: str
    rows: int
    rows_set_aside: int
    warnings: tuple[str, ...] = ()
    doubts: tuple[Mapping[str, Any], ...] = ()
    """What the service noticed about the files: each has ``message``, and ``column``, ``option`` and ``suggestions`` if known."""
    snapshot_id: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def preview(self) -> Mapping[str, Any] | None:
        """Columns, types and first rows; only after a dry run."""
        return self.raw.get("preview")

    def __str__(self) -> str:
        return "\n  - ".join([self._summary(), *self._notes()])

    def _summary(self) -> str:
        if self.preview is not None:
            columns = ", ".join(f"{column['name']} {column['type']}" for column in self.preview["columns"])
            return f"Dry run: nothing was loaded. The columns would be: {columns}"
        return f"{_counted(self.rows)}, {self.rows_set_aside:,} set aside"

    def _notes(self) -> list[str]:
        return [*self.warnings, *(noted(doubt) for doubt in self.doubts)]

    def _repr_html_(self) -> str:
        from ._html import notes_page

        preview = self.preview or {}
        return notes_page(self._summary(), self._notes(), columns_of(preview.get("columns")), preview.get("rows") or ())


@dataclass(frozen=True)
class Merged:
    """Rows that were merged into a dataset, or would be."""

    rows: int
    """The number of new rows."""
    replaced: int | None
    """How many rows they would take the place of. Only a dry run counts them; otherwise it is None."""
    snapshot_id: str | None
    """The version with the rows; None if nothing changed."""
    dry_run: bool

    def __str__(self) -> str:
        if not self.dry_run:
            return f"Merged {_counted(self.rows)}"
        return f"Dry run: {_counted(self.rows)} would be merged, and take the place of {self.replaced:,}"


@dataclass(frozen=True)
class Deleted:
    """Rows that were deleted from a dataset, or would be."""

    rows: int
    """The number of rows."""
    first_rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    """Up to 20 of them; only after a dry run."""
    snapshot_id: str | None
    """The version without the rows; None if nothing changed."""
    dry_run: bool

    def __str__(self) -> str:
        return f"Dry run: {_counted(self.rows)} would be deleted" if self.dry_run else f"Deleted {_counted(self.rows)}"

    def _repr_html_(self) -> str:
        from ._html import notes_page

        columns = [Column(name, "") for name in (self.first_rows[0] if self.first_rows else {})]
        return notes_page(str(self), (), columns, self.first_rows)


@dataclass(frozen=True)
class Notice:
    """Something that happened to a dataset, a namespace or a run. ``data`` depends on the type; ignore types that you do not know."""

    id: str
    type: str
    timestamp: datetime.datetime
    data: Mapping[str, Any]
    position: str
    """Where to go on: ``events(after=position)`` begins with what happened next."""


@dataclass(frozen=True)
class CheckedText:
    """A text whose figures were compared with rows."""

    text: str
    claims: tuple[Claim, ...]
    verified: int
    unverified: int
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        missing = [f"{claim.text}: {claim.reason or 'not found in the rows'}" for claim in self.claims if not claim.verified]
        return "\n  - ".join([f"{self.verified} of {len(self.claims)} figures confirmed", *missing])

    def _repr_html_(self) -> str:
        from ._html import checked_page

        return checked_page(self)


@dataclass(frozen=True)
class Place:
    """Where a field was read: the quote, as the document has it, with the text around it."""

    file: str
    page: int
    before: str
    quote: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}, page {self.page}: {self.before}[{self.quote}]{self.after}"

    def _repr_html_(self) -> str:
        from ._html import place_page

        return place_page(self)


class Listing(list[T]):
    """A list of dicts. In a notebook it shows itself as a table."""

    def _repr_html_(self) -> str:
        from ._html import notes_page, rows_page

        if not self:
            return notes_page("The list is empty.", (), (), ())
        rows = [{name: value for name, value in dict(one).items() if not isinstance(value, dict | list)} for one in self]  # type: ignore[call-overload]
        names = dict.fromkeys(name for row in rows for name in row)
        return rows_page([Column(name, "") for name in names], rows, len(rows))


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def moment(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text) if text else None


def columns_of(wire: Any) -> tuple[Column, ...]:
    return tuple(Column(column["name"], column["type"]) for column in wire or ())


def versions_of(wire: Any) -> tuple[ReadVersion, ...]:
    return tuple(ReadVersion(one["dataset"], one["snapshotId"], moment(one.get("committedAt"))) for one in wire or ())


def explanations_of(wire: Any) -> tuple[Explanation, ...]:
    return tuple(Explanation(one["words"], one["as"], one.get("dataset"), one.get("column"), one.get("how")) for one in wire or ())


def clarification_of(wire: Any) -> Clarification | None:
    if not wire:
        return None
    options = tuple(Option(one["number"], one["interpretation"], one.get("query")) for one in wire["options"])
    return Clarification(wire["question"], options)


def claim_of(wire: Any) -> Claim:
    return Claim(wire["claim"], wire["start"], wire["end"], wire["verified"], wire.get("reason"), wire.get("calculation"))


def checks_of(wire: Any) -> Checks | None:
    if not wire:
        return None
    places = tuple(claim_of(place) for place in wire.get("places") or ())
    return Checks(wire["claims"], wire["verified"], tuple(wire["unverified"]), places)


def doubts_of(wire: Any) -> tuple[Doubt, ...]:
    return tuple(Doubt(one["kind"], one["text"]) for one in wire or ())


def verified_of(wire: Any) -> Verified | None:
    if not wire:
        return None
    at = moment(wire["verifiedAt"])
    assert at is not None
    return Verified(wire["id"], wire["question"], wire["author"], at)


def load_of(wire: Any) -> Load:
    progress = wire["progress"]
    return Load(
        wire["id"],
        wire["status"],
        progress["rowsDone"],
        progress["rowsSetAside"],
        tuple(wire.get("warnings") or ()),
        tuple(wire.get("doubts") or (wire.get("preview") or {}).get("doubts") or ()),
        wire.get("snapshotId"),
        wire,
    )


def checked_of(wire: Any) -> CheckedText:
    claims = tuple(claim_of(claim) for claim in wire["claims"])
    return CheckedText(wire["text"], claims, wire["verified"], wire["unverified"], wire)


def merged_of(wire: Any) -> Merged:
    return Merged(wire["indexed"], wire.get("replaced"), wire.get("snapshotId"), bool(wire.get("dryRun")))


def deleted_of(wire: Any) -> Deleted:
    first = typed_rows(columns_of(wire.get("columns")), wire.get("data") or ())
    return Deleted(wire["rowCount"], tuple(first), wire.get("snapshotId"), wire["dryRun"])


def notice_of(wire: Any, position: str) -> Notice:
    return Notice(wire["id"], wire["type"], datetime.datetime.fromisoformat(wire["timestamp"]), wire["data"], position)


def verified_body(
    question: str | None,
    query: str | None,
    wordings: Sequence[str],
    parameters: Sequence[Mapping[str, Any]],
    interpretation: str | None,
) -> dict[str, Any]:
    """Return the fields of a verified question that were given."""
    body = {
        "question": question,
        "query": query,
        "wordings": list(wordings),
        "parameters": [dict(one) for one in parameters],
        "interpretation": interpretation,
    }
    return {name: value for name, value in body.items() if value}


Parameters = Sequence[Any] | Mapping[str, Any]


def parameters_of(values: Parameters) -> list[Any] | dict[str, Any]:
    """Return the values of parameters with the types that they have in Python, where JSON has no type for them."""
    if isinstance(values, Mapping):
        return {name: _typed(str(name), value) for name, value in values.items()}
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"Parameters are a list, for $1, or a dict, for $name: write [{values!r}].")
    return [_typed(str(number), value) for number, value in enumerate(values, 1)]


def _typed(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple | set | frozenset) or type(value).__name__ in ("ndarray", "Series"):
        some = ", ".join(f"${name}_{number}" for number in (1, 2, 3)) if not name.isdecimal() else "$1, $2, $3"
        raise TypeError(f"The parameter ${name} is a list, but a parameter is one value. Write a parameter for each: IN ({some}).")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"The parameter ${name} is {value}. Use None for a missing value, and IS NULL to find one.")
    if isinstance(value, datetime.datetime):
        return {"type": "timestamp", "value": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"type": "date", "value": value.isoformat()}
    if isinstance(value, datetime.time):
        return {"type": "time", "value": value.isoformat()}
    if isinstance(value, decimal.Decimal) and value.is_finite():
        text = format(value, "f")
        whole, _, fraction = text.lstrip("-").partition(".")
        digits = max(1, len(whole.lstrip("0")) + len(fraction))
        return {"type": f"decimal({digits},{len(fraction)})", "value": text}
    return value


def sendable(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that JSON can have. NaN, NaT and NA of pandas mean that a value is missing."""
    return [{str(name): _sendable(number, name, value) for name, value in row.items()} for number, row in enumerate(rows)]


def plain_text(value: Any) -> str | None:
    """Return a value as the service writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, int | float) and math.isfinite(value):
        return str(value)
    raise TypeError(f"The value of a field is a text, a number, a date or None, not {value!r}.")


def _sendable(number: int, name: object, value: Any) -> Any:
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, float) and not math.isfinite(value):  # also numpy.float64
        if math.isnan(value):
            return None
        raise ValueError(f"Row {number}, column {name!r}: rows in dicts cannot have {value}. Send a DataFrame or an Arrow table.")
    return value


def names_of(names: str | Sequence[str] | None) -> list[str]:
    """Return one name or several as a list."""
    return [names] if isinstance(names, str) else list(names or ())


def line_of(names: Sequence[str]) -> str:
    """Return names as a parameter of a request: as a line of CSV, because a name may have a comma."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def when(value: datetime.datetime | datetime.date | str | None) -> str | None:
    """Return a moment as the API takes it. A date is its first moment, a moment without a zone is local."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError as refused:
            raise ValueError(
                f"as_of is a moment such as '2026-11-01' or '2026-11-01T09:30:00Z', not {value!r}. "
                "Dataset.versions() has the moment of each version in committedAt."
            ) from refused
    elif not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.astimezone()).isoformat()
