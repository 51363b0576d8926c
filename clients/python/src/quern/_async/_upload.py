"""Uploads: parts sent in parallel, found again after the program ended."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass, field
from typing import Any

from .._errors import ConnectionFailed, InvalidState, NotFound, QuernError
from .._files import Source, State
from .._progress import Reporter
from ._compat import for_each, in_thread, sleep
from ._http import AsyncHttp

_ATTEMPTS = 6


@dataclass
class _File:
    source: Source
    id: str
    upload_id: str
    key: str
    part_size: int
    urls: dict[int, str] = field(default_factory=dict)
    etags: dict[int, str] = field(default_factory=dict)
    completed: bool = False

    def span(self, number: int) -> tuple[int, int]:
        offset = (number - 1) * self.part_size
        return offset, min(self.part_size, self.source.size - offset)

    def part(self, number: int) -> bytes:
        return self.source.read(*self.span(number))

    def missing(self) -> list[int]:
        count = -(-self.source.size // self.part_size)
        return [] if self.completed else [number for number in range(1, count + 1) if number not in self.etags]


class AsyncUploader:
    """Sends the files of one session."""

    def __init__(self, http: AsyncHttp, sources: list[Source], report: Reporter, at_once: int) -> None:
        self._http, self._sources, self._report, self._at_once = http, sources, report, at_once
        self._state = State(http.server, sources)
        self._session = ""
        self._files: list[_File] = []
        self._done = 0

    async def send(self, resume: bool = True) -> str:
        """Send what the store does not have yet, and return the id of the session."""
        session = self._state.session() if resume else None
        if session is None or not await self._resume(session):
            await self._prepare()
            if resume:
                self._state.keep(self._session, datetime.datetime.now(datetime.UTC).isoformat())
        total = sum(source.size for source in self._sources)
        self._report.tell("uploading", self._done, total)
        for file in self._files:

            async def deliver(number: int, file: _File = file) -> None:
                await self._put(file, number)
                self._done += file.span(number)[1]
                self._report.tell("uploading", self._done, total)

            await for_each(file.missing(), deliver, self._at_once)
            await self._finish(file)
        return self._session

    def forget(self) -> None:
        """Remove what a later call would need to resume."""
        self._state.forget()

    async def _prepare(self) -> None:
        wanted = [{"filename": source.name, "size": source.size} for source in self._sources]
        prepared = await self._http.call("POST", "/file-upload/prepare", {"filesToUpload": wanted})
        self._session = prepared["sessionId"]
        for source, wire in zip(self._sources, prepared["files"], strict=True):
            urls = {number: one["url"] for number, one in enumerate(wire["presignedUrls"], 1)}
            self._files.append(_File(source, wire["fileId"], wire["uploadId"], wire["key"], wire["partSize"], urls))

    async def _resume(self, session: str) -> bool:
        try:
            found = await self._http.call("GET", f"/file-upload/{session}")
        except NotFound:
            return False
        there = [(wire["filename"], wire["size"]) for wire in found["files"]]
        if found["sessionStatus"] == "aborted" or there != [(source.name, source.size) for source in self._sources]:
            return False
        self._session = session
        for source, wire in zip(self._sources, found["files"], strict=True):
            file = _File(source, wire["fileId"], wire["uploadId"], wire["key"], wire["partSize"])
            file.completed = wire["fileStatus"] == "completed"
            for part in wire["parts"]:
                if await in_thread(lambda file=file, part=part: _holds(file, part)):  # type: ignore[misc]
                    file.etags[part["partNumber"]] = part["etag"]
            self._done += source.size if file.completed else sum(file.span(number)[1] for number in file.etags)
            self._files.append(file)
        return True

    async def _put(self, file: _File, number: int) -> None:
        content = await in_thread(lambda: file.part(number))
        for attempt in range(_ATTEMPTS):
            if number not in file.urls:
                await self._renew(file, number)
            try:
                status, etag = await self._http.put(file.urls[number], content)
            except ConnectionFailed:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                if status == 200 and etag:
                    file.etags[number] = etag
                    return
                if status == 403:  # the address has expired
                    del file.urls[number]
                elif status < 500 and status != 429:
                    raise QuernError(f"The object store refused a part of {file.source.name} with the status {status}.")
            await sleep(min(8.0, 0.5 * 2**attempt))
        raise ConnectionFailed(f"A part of {file.source.name} could not be stored after {_ATTEMPTS} attempts.")

    async def _renew(self, file: _File, number: int) -> None:
        """Get addresses for this part and the next ones, which will need them soon."""
        numbers = [one for one in file.missing() if one >= number and one not in file.urls][:100]
        path = f"/file-upload/{self._session}/files/{file.id}/urls"
        renewed = await self._http.call("POST", path, {"partNumbers": numbers or [number]})
        file.urls.update({one["partNumber"]: one["url"] for one in renewed["presignedUrls"]})

    async def _finish(self, file: _File) -> None:
        if file.completed:
            return
        parts = [{"partNumber": number, "etag": file.etags[number]} for number in sorted(file.etags)]
        body: dict[str, Any] = {"uploadId": file.upload_id, "key": file.key, "parts": parts}
        try:
            await self._http.call("POST", f"/file-upload/{self._session}/files/{file.id}/finish", body)
        except InvalidState as refused:
            self._state.forget()
            raise InvalidState(refused.code, f"{refused.message} Run the upload again: it starts anew.", refused.status) from refused
        file.completed = True


def _holds(file: _File, part: dict[str, Any]) -> bool:
    """Report whether the store has the part as it is in the file. A store may list a part whose sending was cut off."""
    if part["size"] != file.span(part["partNumber"])[1]:
        return False
    digest = hashlib.md5(file.part(part["partNumber"]), usedforsecurity=False).hexdigest()
    return bool(part["etag"].strip('"') == digest)
