"""Which files an upload consists of, and how it is found again after the program ended."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._signin import home, write_private

PART = 8 << 20
MOST_FILES = 100
MOST_PARTS = 10_000


@dataclass(frozen=True)
class Source:
    """A file to send."""

    name: str
    path: Path
    size: int
    changed: int

    def read(self, offset: int, size: int) -> bytes:
        """Return a part of the file. A file that became shorter is an error."""
        with self.path.open("rb") as file:
            file.seek(offset)
            part = file.read(size)
        if len(part) != size:
            raise OSError(f"{self.path} changed during the upload")
        return part


def check_name(what: str, name: str) -> None:
    """Refuse a name that the service would refuse, before anything is sent."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", name):
        raise ValueError(
            f"{name!r} cannot be the name of a {what}. A name has the letters a to z and A to Z, digits, dots, underscores and hyphens, "
            "begins with a letter or digit, and has at most 128 characters."
        )


def collect(paths: Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Return the files that the paths name: files, folders with everything below, and patterns. Hidden and empty files are left out."""
    found: list[Source] = []
    for given in paths:
        text = os.fspath(given)
        matches = sorted(glob.glob(text, recursive=True)) if not os.path.lexists(text) and glob.has_magic(text) else [text]
        for match in matches:
            found.extend(source_of(path) for path in _below(Path(match)))
    if not (found := [source for source in found if source.size > 0]):
        raise FileNotFoundError(f"no files to upload: {', '.join(os.fspath(path) for path in paths)}")
    return found


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def source_of(path: Path) -> Source:
    stat = path.stat()
    with path.open("rb"):  # check that it can be read before anything is sent
        pass
    name = "".join("_" if character < " " or character == "\x7f" else character for character in path.name)
    return Source(name, path, stat.st_size, stat.st_mtime_ns)


def sessions(sources: list[Source]) -> list[list[Source]]:
    """Split the files, in order, into groups that fit into one upload session each."""
    groups: list[list[Source]] = [[]]
    parts = 0
    for source in sources:
        needs = min(MOST_PARTS, -(-source.size // PART))
        if groups[-1] and (len(groups[-1]) == MOST_FILES or parts + needs > MOST_PARTS):
            groups.append([])
            parts = 0
        groups[-1].append(source)
        parts += needs
    return groups


class State:
    """The session of an unfinished upload, kept in a file that the command line reads as well."""

    def __init__(self, server: str, sources: list[Source]) -> None:
        lines = [server, *(f"{source.path.absolute()} {source.size} {source.changed}" for source in sources)]
        name = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()[:32]
        self._path, self._server = home() / "uploads" / f"{name}.json", server
        self._files = [source.name for source in sources]

    def session(self) -> str | None:
        try:
            kept: dict[str, Any] = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return None
        return str(kept["session"]) if kept.get("session") else None

    def keep(self, session: str, begun: str) -> None:
        write_private(self._path, {"server": self._server, "session": session, "files": self._files, "begun": begun})

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)
