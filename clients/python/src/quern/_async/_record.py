"""Records that a model read in documents, with the place of each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .. import _html
from .._models import Column, Place, plain_text
from ._http import AsyncHttp

_NAMES = ("field", "value", "in doubt", "page", "quote")


class AsyncField:
    """A field of a record: its value, and the words of the document that it was read from.

    - ``value``: the value that was read, or that a person set, as text: ``12.50``, ``2026-03-04``; None if there is none
    - ``quote``: the words that state the value
    - ``page``: the page of the quote; None if the quote was not found
    - ``flag``: why the field is in doubt, for example ``valueNotInQuote``; None without a doubt
    - ``said``: what the model said, if the field is or was in doubt
    - ``corrected``: a person decided the value
    - ``pending``: the row does not have this value yet; ``Dataset.reload`` loads it
    """

    def __init__(self, record: AsyncRecord, name: str, wire: Mapping[str, Any]) -> None:
        self._record, self.name = record, name
        self.value: str | None = wire.get("value")
        self.quote: str = wire["quote"]
        self.page: int | None = wire.get("page")
        self.flag: str | None = wire.get("flag")
        self.said: str | None = wire.get("said")
        self.corrected: bool = wire.get("corrected", False)
        self.pending: bool = wire.get("pending", False)
        self._span: tuple[int, int] = (wire.get("from", 0), wire.get("to", 0))

    async def context(self, width: int = 60) -> Place | None:
        """Return the quote with up to ``width`` characters of the document on each side; None if it was not found."""
        if self.page is None:
            return None
        text = (await self._record.text()).get(self.page)
        if text is None:
            return None
        start, end = self._span
        return Place(self._record.file, self.page, text[max(0, start - width) : start], text[start:end], text[end : end + width])

    def __repr__(self) -> str:
        doubt = f", in doubt: {self.flag}" if self.flag else ""
        return f"<Field {self.name}: {self.value!r}{doubt}>"


class AsyncRecord:
    """A record that a model read in a document: ``record["price"]`` is a field.

    ``fields`` has those about which the model said something, or that a person corrected. ``file`` and ``page`` say where it stands,
    ``row`` is the number of the row that it became, as in ``__metadata.source``. In a notebook it shows itself as a table.
    """

    def __init__(self, http: AsyncHttp, path: str, wire: Mapping[str, Any]) -> None:
        self._http, self._path = http, f"{path}/{wire['id']}"
        self._text: dict[int, str] | None = None
        self._set(wire)

    def _set(self, wire: Mapping[str, Any]) -> None:
        self.raw = wire
        self.id: str = wire["id"]
        self.file: str = wire["file"]
        self.page: int = wire["page"]
        self.row: int | None = wire.get("row")
        self.fields: dict[str, AsyncField] = {name: AsyncField(self, name, field) for name, field in wire["fields"].items()}

    def __getitem__(self, name: str) -> AsyncField:
        try:
            return self.fields[name]
        except KeyError:
            raise KeyError(f"The model said nothing about {name!r}. The record has: {', '.join(self.fields)}.") from None

    @property
    def doubted(self) -> list[AsyncField]:
        """The fields that are in doubt."""
        return [field for field in self.fields.values() if field.flag]

    async def text(self) -> dict[int, str]:
        """Return the text of the pages that the record was read from, by their number. It is empty if the service kept none."""
        if self._text is None:
            found = await self._http.call("GET", self._path + "/text")
            self._text = {page["page"]: page["text"] for page in found["pages"]}
        return self._text

    async def correct(self, name: str, value: object) -> None:
        """Set the value of a field; None says that it has none. The field need not be one about which the model said something.

        The correction stays when the document is loaded again. The row has it after ``Dataset.reload``.
        """
        self._set(await self._http.call("PUT", self._field(name), {"value": plain_text(value)}))

    async def undo(self, name: str) -> None:
        """Remove the correction of a field: what the model read counts again."""
        self._set(await self._http.call("DELETE", self._field(name)))

    def _field(self, name: str) -> str:
        return f"{self._path}/fields/{quote(name, safe='')}"

    def __str__(self) -> str:
        lines = [f"{self.file}, page {self.page}" + (f", row {self.row}" if self.row else "")]
        for field in self.fields.values():
            doubt = f" (in doubt: {field.flag}, the model said {field.said!r})" if field.flag else ""
            lines.append(f"{field.name}: {'no value' if field.value is None else field.value}{doubt}")
        return "\n  - ".join(lines)

    def __repr__(self) -> str:
        return f"<Record {self.id} of {self.file}: {len(self.fields)} fields, {len(self.doubted)} in doubt>"

    def _repr_html_(self) -> str:
        rows = [dict(zip(_NAMES, (one.name, one.value, one.flag, one.page, one.quote), strict=True)) for one in self.fields.values()]
        return _html.notes_page(str(self).splitlines()[0], (), [Column(name, "") for name in _NAMES], rows)
