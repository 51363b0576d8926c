"""What happens when something breaks off: the network, the store, the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import httpx2
import pytest
from service import Service

import quern


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on to the service, and does what the test wants with the answer."""

    protocol_version = "HTTP/1.1"
    target: ClassVar[str]
    wanted: ClassVar[list[str]]
    seen: ClassVar[list[tuple[str, str | None]]]

    def do_GET(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.seen.append((f"{self.command} {self.path}", self.headers.get("Idempotency-Key")))
        do = self.wanted.pop(0) if self.wanted else "pass"
        if do == "refuse":
            self.send_response(503)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "accept-encoding")}
        answer = httpx2.request(self.command, self.target + self.path, headers=headers, content=body, timeout=60)
        if do == "lose":  # the service did its work, and the answer is lost
            self.close_connection = True
            return
        content = answer.content
        if do == "shorter":  # a valid stream with fewer batches: the schema, and the end
            content = _without_batches(content)
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() in ("content-type", "x-quern-result", "x-request-id", "retry-after"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if do == "cut" else content)
        if do == "cut":
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def _without_batches(stream: bytes) -> bytes:
    import io

    import pyarrow as pa

    schema = pa.ipc.open_stream(stream).schema
    empty = io.BytesIO()
    with pa.ipc.new_stream(empty, schema):
        pass
    return empty.getvalue()


@pytest.fixture
def proxy(service: Service) -> Iterator[type[Proxy]]:
    class Own(Proxy):
        target, wanted, seen = service.url, [], []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    Own.address = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Own
    server.shutdown()
    server.server_close()


def test_a_shorter_result_is_an_error(shop: quern.Namespace, proxy: type[Proxy], ada_token: str) -> None:
    with quern.connect(proxy.address, ada_token) as q:  # type: ignore[attr-defined]
        through = q.namespace("shop")
        proxy.wanted[:] = ["shorter"]
        with pytest.raises(quern.IncompleteResult, match="1000 rows, but only 0"):
            through.sql("FROM orders")
        proxy.wanted[:] = ["cut", "cut", "cut"]
        with pytest.raises(quern.ConnectionFailed):
            through.sql("FROM orders")
        proxy.wanted[:] = ["cut"]  # reading again is safe
        assert len(through.sql("FROM orders")) == 1000


def test_a_lost_answer_is_asked_again_with_the_same_key(shop: quern.Namespace, proxy: type[Proxy], ada_token: str) -> None:
    shop.sql("SELECT 1").scalar()
    with quern.connect(proxy.address, ada_token) as q:  # type: ignore[attr-defined]
        through = q.namespace("ada/shop")
        proxy.wanted[:] = ["pass"]
        through["lost"]  # sends nothing
        assert proxy.seen == []
        shop.upload(_frame(3), "lost")
        proxy.wanted[:] = ["pass", "lose", "refuse"]  # the columns are asked for first
        assert through["lost"].append([{"n": 99}]) == 1
        keys = [key for request, key in proxy.seen if request.startswith("POST")]
        assert len(keys) == 3 and len(set(keys)) == 1 and keys[0]
        assert shop.sql("SELECT count(*) FROM lost WHERE n = 99").scalar() == 1


def test_an_upload_goes_on_after_the_program_was_killed(
    shop: quern.Namespace, service: Service, ada_token: str, tmp_path: Path, own_home: Path
) -> None:
    # 1 GiB with QUERN_TEST_LONG, 96 MiB otherwise.
    size = (1 << 30) if os.environ.get("QUERN_TEST_LONG") else 96 << 20
    path = tmp_path / "large.csv"
    line = b"123456789,abcdefghijklmnopqrstuvwxyz,2026-01-02\n"
    with path.open("wb") as file:
        file.write(b"id,text,day\n")
        for _ in range(size // (len(line) * 10_000)):
            file.write(line * 10_000)
    rows = (path.stat().st_size - 12) // len(line)
    program = (
        "import quern, sys\n"
        f"shop = quern.connect({service.url!r}).namespace('shop')\n"
        f"shop.upload({str(path)!r}, 'large', progress=lambda phase, done, total: print(phase, done, flush=True), at_once=1)\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], env=os.environ | {"QUERN_TOKEN": ada_token}, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    for said in started.stdout:
        phase, done = said.split()
        assert phase == "uploading", "the upload was finished before it could be killed"
        if int(done) > size // 3:
            started.send_signal(signal.SIGKILL)
            break
    started.wait()
    first: list[int] = []
    load = shop.upload(path, "large", progress=lambda phase, done, total: first.append(done))
    assert first[0] >= size // 3, "parts that were stored were sent again"
    assert load.rows == rows
    assert not list((own_home / "uploads").glob("*.json"))


def test_nothing_waits_for_ever(ada_token: str) -> None:
    began = time.monotonic()
    with pytest.raises(quern.ConnectionFailed), quern.connect("http://127.0.0.1:9", ada_token) as q:
        list(q.events_of("0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70", patience=1))
    assert time.monotonic() - began < 10


def _frame(rows: int) -> object:
    import polars

    return polars.DataFrame({"n": list(range(rows))})
