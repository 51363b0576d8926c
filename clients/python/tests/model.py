"""A language model that reads offers out of documents, and makes known mistakes."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_OFFER = re.compile(r"([A-Za-z].*) costs (\S+ EUR), (\d+) in stock")
_PAGE = re.compile(r"=====\S* page (\d+)$")


class Model(ThreadingHTTPServer):
    """Lines such as ``Bolt M6 costs 1.20 EUR, 40 in stock`` become records. The price of a Bolt M8 is wrong."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Answer(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += 1
        text = said["messages"][-1]["content"]
        drafts = "You propose the columns" in said["messages"][0]["content"]
        content = json.dumps(_proposal(text) if drafts else {"records": _records(text)})
        body = json.dumps(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": said["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _proposal(text: str) -> dict[str, Any]:
    offers = _OFFER.findall(text)
    quotes = {"item": offers[0][0], "price": offers[0][1], "stock": f"{offers[0][2]} in stock", "colour": "painted"}
    fields = [{"name": name, "description": f"the {name}", "quote": quote} for name, quote in quotes.items()]
    return {"about": "One offer", "fields": fields}


def _records(text: str) -> list[dict[str, Any]]:
    records, page = [], 0
    for line in text.splitlines():
        if begins := _PAGE.match(line):
            page = int(begins[1])
        elif offer := _OFFER.search(line):
            item, price, stock = offer.groups()
            said = {"item": item, "price": "1.80 EUR" if item.endswith("M8") else price, "stock": stock}
            records.append(
                {name: {"value": value, "quote": offer[0], "page": page} for name, value in said.items()} | {"unit/size ?": None}
            )
    return records
