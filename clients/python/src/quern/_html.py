"""How answers and rows show themselves in a notebook: HTML without script, and every value escaped."""

from __future__ import annotations

import decimal
import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from . import _chart
from ._models import CheckedText, Checks, Clarification, Column, Doubt, Explanation, Place, ReadVersion, Verified

SHOWN = 10
_LONGEST = 200
_PRINTED = 20

# Colours are taken from the notebook, or are half transparent, so that light and dark themes both work.
_STYLE = """<style>
.quern{font:14px/1.5 system-ui,sans-serif;max-width:56em;color:inherit}
.quern .question{font-weight:600;margin:.2em 0}
.quern .answer{font-size:16px;margin:.4em 0}
.quern .quiet{opacity:.7;font-size:13px;margin:.2em 0}
.quern abbr{text-decoration:underline dotted;cursor:help}
.quern mark{background:rgba(224,160,0,.3);color:inherit;border-radius:2px;padding:0 2px}
.quern .note{border-left:3px solid rgba(224,160,0,.9);padding:.1em .7em;margin:.5em 0}
.quern .scroll{overflow-x:auto}
.quern table{border-collapse:collapse;font-size:13px;margin:.4em 0}
.quern th,.quern td{padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.3);text-align:left;white-space:nowrap}
.quern th{font-weight:600}
.quern .n{text-align:right;font-variant-numeric:tabular-nums}
.quern pre{background:rgba(128,128,128,.12);padding:.6em .8em;border-radius:4px;overflow-x:auto;white-space:pre-wrap;margin:.4em 0}
.quern summary{cursor:pointer;font-size:13px}
.quern svg{max-width:100%;height:auto}
</style>"""

_OUTCOMES = {
    "answer_unverified": "Some figures of this answer were not found in the rows. They are marked.",
    "not_permitted": "You may not read what this needs.",
    "withheld": "The answer is withheld because you may no longer read all of its data.",
}

_KINDS = {"rows": "rows", "column": "column", "value": "value", "measure": "figure", "period": "period", "unused": "not understood"}


class ShownStep(Protocol):
    query: str
    columns: tuple[Column, ...]
    row_count: int
    first_rows: list[dict[str, Any]]


class ShownAnswer(Protocol):
    question: str
    response: str
    outcome: str
    reading: str
    explained: tuple[Explanation, ...]
    checks: Checks | None
    clarification: Clarification | None
    doubts: tuple[Doubt, ...]
    verified: Verified | None
    versions: tuple[ReadVersion, ...]

    @property
    def steps(self) -> Sequence[ShownStep]: ...


def answer_page(answer: ShownAnswer) -> str:
    """Return an answer as HTML."""
    parts = [_STYLE, '<div class="quern">']
    parts.append(f'<p class="question">{_question(answer.question, answer.explained)}</p>')
    if answer.reading:
        parts.append(f'<p class="quiet">{_emphasis(_text(answer.reading))}</p>')
    if answer.clarification:
        options = "".join(f'<li value="{one.number}">{_emphasis(_text(one.reading))}</li>' for one in answer.clarification.options)
        parts.append(f'<p class="answer">{_text(answer.clarification.question)}</p><ol>{options}</ol>')
        parts.append('<p class="quiet">Choose with <code>.choose(1)</code>.</p>')
    elif answer.response:
        parts.append(f'<p class="answer">{_marked(answer.response, answer.checks)}</p>')
    if answer.outcome in _OUTCOMES:
        parts.append(f'<p class="note">{_OUTCOMES[answer.outcome]}</p>')
    parts.extend(f'<p class="note">{_text(doubt.text)}</p>' for doubt in answer.doubts)
    for step in answer.steps:
        parts.append(_chart.svg(step.columns, step.first_rows) if step.row_count <= len(step.first_rows) else "")
        parts.append(_grid(step.columns, step.first_rows, step.row_count))
        parts.append(f"<details><summary>Query</summary><pre>{_text(step.query)}</pre></details>")
    if answer.verified:
        parts.append(f'<p class="quiet">Verified by {_text(answer.verified.author)} on {answer.verified.verified_at:%Y-%m-%d}.</p>')
    if answer.versions:
        said = ", ".join(
            f"{_text(one.dataset)}" + (f" of {one.committed_at:%Y-%m-%d %H:%M} UTC" if one.committed_at else "") for one in answer.versions
        )
        parts.append(f'<p class="quiet">Data: {said}</p>')
    return "".join([*parts, "</div>"])


def rows_page(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], count: int) -> str:
    """Return the first rows of a result as HTML."""
    return f'{_STYLE}<div class="quern">{_grid(columns, rows, count)}</div>'


def notes_page(summary: str, notes: Sequence[str], columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what a load or deletion says, with the first rows, as HTML."""
    said = "".join(f'<p class="note">{_text(note)}</p>' for note in notes)
    return f'{_STYLE}<div class="quern"><p class="answer">{_text(summary)}</p>{said}{_grid(columns, rows, 0)}</div>'


def checked_page(checked: CheckedText) -> str:
    """Return a text whose figures were checked as HTML."""
    said = f"{checked.verified} of {len(checked.claims)} figures confirmed by the rows"
    marked = _marked(checked.text, Checks(len(checked.claims), checked.verified, places=checked.claims))
    return f'{_STYLE}<div class="quern"><p class="answer">{marked}</p><p class="quiet">{said}</p></div>'


def place_page(place: Place) -> str:
    """Return a quote in its surroundings as HTML."""
    text = f"{_text(place.before)}<mark>{_text(place.quote)}</mark>{_text(place.after)}"
    return f'{_STYLE}<div class="quern"><p class="quiet">{_text(place.file)}, page {place.page}</p><pre>{text}</pre></div>'


def text_table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], count: int) -> str:
    """Return the first rows as text, for a terminal."""
    cells = [[column.name for column in columns]]
    cells.extend([_cell(row.get(column.name)) for column in columns] for row in rows[:_PRINTED])
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    numeric = [_chart.is_numeric(column, rows) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    ]
    if count > _PRINTED:
        lines.append(f"… {count:,} rows, of which {min(len(rows), _PRINTED)} are shown")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= 60 else text[:59] + "…"


def answer_markdown(answer: ShownAnswer) -> str:
    """Return an answer as Markdown, for what shows no HTML."""
    lines = [f"*{_plain(answer.reading)}*"] if answer.reading else []
    if answer.clarification:
        lines.append(_plain(answer.clarification.question))
        lines.extend(f"{one.number}. {_plain(one.reading)}" for one in answer.clarification.options)
    else:
        lines.append(_plain(answer.response))
    lines.extend(f"> {_plain(doubt.text)}" for doubt in answer.doubts)
    for step in answer.steps:
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", step.query)), default=0))
        lines.append(f"{fence}sql\n{step.query}\n{fence}")
    return "\n\n".join(lines)


def _grid(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], count: int) -> str:
    if not columns:
        return ""
    numeric = {column.name for column in columns if _chart.is_numeric(column, rows)}

    def cell(tag: str, name: str, value: str) -> str:
        kind = ' class="n"' if name in numeric else ""
        return f"<{tag}{kind}>{value}</{tag}>"

    head = "".join(cell("th", column.name, _text(column.name)) for column in columns)
    body = "".join(
        "<tr>" + "".join(cell("td", column.name, _value(row.get(column.name), column.type)) for column in columns) + "</tr>"
        for row in rows[:SHOWN]
    )
    more = f'<p class="quiet">{count:,} rows, {min(SHOWN, len(rows))} shown</p>' if count > SHOWN else ""
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'


def _value(value: Any, type: str) -> str:
    if value is None:
        return '<span style="opacity:.5">null</span>'
    text = str(value)
    if isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool):
        scale = re.fullmatch(r"decimal\(\d+, ?(\d+)\)", type, re.IGNORECASE)
        text = f"{value:,.{scale[1]}f}" if scale else f"{value:,}"
    return _text(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")


def _marked(text: str, checks: Checks | None) -> str:
    """Return the text with a mark on each figure that was not found in the rows."""
    parts: list[str] = []
    end = 0
    for place in sorted(checks.places if checks else (), key=lambda place: place.start):
        if place.verified or place.start < end:
            continue
        parts.append(_text(text[end : place.start]))
        parts.append(f'<mark title="not found in the rows">{_text(text[place.start : place.end])}</mark>')
        end = place.end
    marked = "".join([*parts, _text(text[end:])])
    # The rows below show what a table in the text shows.
    lines = [line for line in marked.split("\n") if not line.startswith("|")]
    return re.sub(r"(<br>)+$", "", re.sub(r"`([^`<>]+)`", r"<code>\1</code>", "<br>".join(lines)))


def _question(question: str, explained: Sequence[Explanation]) -> str:
    """Return the question with the explanation of its words, which show when the pointer is over them."""
    parts: list[str] = []
    end = 0
    for one in explained:
        start = question.find(one.words, end)
        if start < 0:  # words of the reading, or words that occurred before
            continue
        meaning = " ".join(filter(None, [_KINDS.get(one.meaning, one.meaning), one.column, f"of {one.dataset}" if one.dataset else ""]))
        if one.how:
            meaning += f" ({one.how})"
        parts.append(_text(question[end:start]))
        parts.append(f'<abbr title="{_text(meaning)}">{_text(one.words)}</abbr>')
        end = start + len(one.words)
    return "".join([*parts, _text(question[end:])])


def _emphasis(escaped: str) -> str:
    return re.sub(r"\*([^*<>]+)\*", r"<em>\1</em>", escaped)


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`_\[\]<>#|!])", r"\\\1", text)
