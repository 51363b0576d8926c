"""Shows progress: a bar if tqdm is installed, or whatever the caller does with the numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ._tables import installed

Progress = bool | Callable[[str, int, int], None]
"""``True`` for a bar, or a function that is called with a phase, what is done, and the total (0 if unknown)."""


class Reporter:
    """Passes progress on. Calls never overlap."""

    def __init__(self, wanted: Progress) -> None:
        self._call = wanted if callable(wanted) else None
        self._bar_wanted = wanted is True
        self._bar: Any = None
        self._phase = ""

    def tell(self, phase: str, done: int, total: int) -> None:
        if self._call:
            self._call(phase, done, total)
        elif self._bar_wanted and installed("tqdm"):
            self._show(phase, done, total)
        elif self._bar_wanted and phase != self._phase:
            print(f"{phase} …", flush=True)
        self._phase = phase

    def _show(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self.close()
            self._bar = importlib.import_module("tqdm.auto").tqdm(total=total, desc=phase, unit="B", unit_scale=True)
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
