"""A small chart of a result, as SVG without script."""

from __future__ import annotations

import datetime
import decimal
import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._models import Column

_NUMBERS = re.compile(r"^(u?(tiny|small|big|huge)?int(eger)?|double|float|real|decimal|numeric)", re.IGNORECASE)
_MOMENTS = re.compile(r"^(date|timestamp|time)", re.IGNORECASE)
_ACCENT = "#4a90d9"  # readable on white and on black
_WIDTH, _BAR, _LABEL, _MOST_BARS, _MOST_POINTS = 640, 22, 180, 20, 2000


def is_numeric(column: Column, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Report whether the values of a column are numbers."""
    if column.type:
        return bool(_NUMBERS.match(column.type))
    values = [row.get(column.name) for row in rows[:20] if row.get(column.name) is not None]
    return bool(values) and all(isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool) for value in values)


def svg(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a chart if the result has one text or time column, one column of numbers and a fitting number of rows; otherwise nothing."""
    measures = [column for column in columns if is_numeric(column, rows)]
    others = [column for column in columns if not is_numeric(column, rows)]
    if len(measures) != 1 or len(others) != 1 or len(rows) < 2:
        return ""
    points = [(row.get(others[0].name), _number(row.get(measures[0].name))) for row in rows]
    known = [(name, value) for name, value in points if name is not None and value is not None]
    title = f"{measures[0].name} by {others[0].name}"
    if _MOMENTS.match(others[0].type):
        return _line([(_moment(str(name)), str(name), value) for name, value in known], title)
    return _bars([(str(name), value) for name, value in known], title)


def _bars(points: list[tuple[str, float]], title: str) -> str:
    if not 2 <= len(points) <= _MOST_BARS:
        return ""
    low, high = min(0.0, *(value for _, value in points)), max(0.0, *(value for _, value in points))
    scale = (_WIDTH - _LABEL - 90) / ((high - low) or 1)
    zero = _LABEL + -low * scale
    shapes = []
    for row, (name, value) in enumerate(points):
        top = row * _BAR
        width = abs(value) * scale
        left = zero if value >= 0 else zero - width
        shapes.append(
            f'<text x="{_LABEL - 8}" y="{top + 15}" text-anchor="end">{_short(name)}</text>'
            f'<rect x="{left:.1f}" y="{top + 3}" width="{max(width, 0.5):.1f}" height="{_BAR - 6}" fill="{_ACCENT}" rx="1"/>'
            f'<text x="{max(left + width, zero) + 6:.1f}" y="{top + 15}">{_figure(value)}</text>'
        )
    return _frame("".join(shapes), len(points) * _BAR + 4, title)


def _line(points: list[tuple[float, str, float]], title: str) -> str:
    if not 2 <= len(points) <= _MOST_POINTS:
        return ""
    points = sorted(points)
    first, last = points[0][0], points[-1][0]
    low, high = min(0.0, *(value for _, _, value in points)), max(value for _, _, value in points)
    height, left, top = 180, 80, 10

    def place(at: float, value: float) -> str:
        x = left + (at - first) / ((last - first) or 1) * (_WIDTH - left - 20)
        return f"{x:.1f},{top + (high - value) / ((high - low) or 1) * height:.1f}"

    path = " ".join(place(at, value) for at, _, value in points)
    axis = (
        f'<text x="{left - 8}" y="{top + 5}" text-anchor="end">{_figure(high)}</text>'
        f'<text x="{left - 8}" y="{top + height + 4}" text-anchor="end">{_figure(low)}</text>'
        f'<text x="{left}" y="{top + height + 22}">{_short(points[0][1])}</text>'
        f'<text x="{_WIDTH - 20}" y="{top + height + 22}" text-anchor="end">{_short(points[-1][1])}</text>'
        f'<line x1="{left}" y1="{top + height}" x2="{_WIDTH - 20}" y2="{top + height}" stroke="currentColor" opacity=".3"/>'
    )
    return _frame(axis + f'<polyline points="{path}" fill="none" stroke="{_ACCENT}" stroke-width="2"/>', top + height + 30, title)


def _frame(shapes: str, height: int, title: str) -> str:
    label = html.escape(title, quote=True)
    return (
        f'<svg role="img" aria-label="{label}" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'font-size="12" font-family="system-ui,sans-serif" fill="currentColor"><title>{label}</title>{shapes}</svg>'
    )


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _moment(text: str) -> float:
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=datetime.UTC)).timestamp()


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _short(text: str) -> str:
    return html.escape(text if len(text) <= 26 else text[:25] + "…", quote=True)
