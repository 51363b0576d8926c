"""What the service returns, as values. Fields that a newer service adds are in ``raw``."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._values import typed_rows


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


def _noted(doubt: Mapping[str, Any]) -> str:
    column = f"{doubt['column']}: " if doubt.get("column") else ""
    option = f" (option {doubt['option']})" if doubt.get("option") else ""
    return f"{column}{doubt['message']}{option}"


@dataclass(frozen=True)
class Load:
    """An ingestion: files that became rows of a dataset, or a dry run of it."""

    id: str
    status: str
    rows: int
    rows_set_aside: int
    warnings: tuple[str, ...] = ()
    doubts: tuple[Mapping[str, Any], ...] = ()
    snapshot_id: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def preview(self) -> Mapping[str, Any] | None:
        """Columns, types and first rows; only after a dry run."""
        return self.raw.get("preview")

    def __str__(self) -> str:
        notes = [*self.warnings, *(_noted(doubt) for doubt in self.doubts)]
        return f"{self.rows:,} rows, {self.rows_set_aside:,} set aside" + "".join(f"\n  - {note}" for note in notes)


@dataclass(frozen=True)
class Merged:
    """Rows that were merged into a dataset, or would be."""

    rows: int
    """The number of new rows."""
    replaced: int | None
    """How many rows they would take the place of; only after a dry run."""
    snapshot_id: str | None
    """The version with the rows; None if nothing changed."""
    dry_run: bool


@dataclass(frozen=True)
class Deleted:
    """Rows that were deleted from a dataset, or would be."""

    rows: int
    """The number of rows."""
    first_rows: tuple[Mapping[str, Any], ...]
    """Up to 20 of them; only after a dry run."""
    snapshot_id: str | None
    """The version without the rows; None if nothing changed."""
    dry_run: bool


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
        tuple(wire.get("doubts") or ()),
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


Parameters = Sequence[Any] | Mapping[str, Any]


def parameters_of(values: Parameters) -> list[Any] | dict[str, Any]:
    """Return the values of parameters with the types that they have in Python, where JSON has no type for them."""
    if isinstance(values, Mapping):
        return {name: _typed(value) for name, value in values.items()}
    return [_typed(value) for value in values]


def _typed(value: Any) -> Any:
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
        value = datetime.datetime.fromisoformat(value)
    elif not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.astimezone()).isoformat()
