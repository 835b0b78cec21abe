"""A real HTTP server that answers as one function says: for dialects that `faulty` does not speak."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    """A request as it arrived."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fields(self) -> list[tuple[str, str]]:
        return parse_qsl(self.body.decode(), keep_blank_values=True, strict_parsing=True)


class Answer(NamedTuple):
    """A reply: its status, JSON or bytes, and headers."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Dialect:
    """Serves `answer(asked)`, which gives an `Answer`, or what is its content; every request is in `log`."""

    def __init__(self, answer: Callable[[Asked], Any]):
        self.log: list[Asked] = []
        self.broken: list[BaseException] = []
        dialect = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def _answer(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                url = urlsplit(self.path)
                query = parse_qsl(url.query, keep_blank_values=True)
                asked = Asked(method, url.path, query, dict(self.headers), body)
                dialect.log.append(asked)
                try:
                    found = answer(asked)
                except BaseException as error:
                    dialect.broken.append(error)
                    found = Answer("the test's own server failed", 500)
                self._send(found if isinstance(found, Answer) else Answer(found))

            def _send(self, found: Answer) -> None:
                content = found.content if isinstance(found.content, bytes) else json.dumps(found.content).encode()
                self.send_response(found.status)
                for name, value in found.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Dialect:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self.broken:
            raise AssertionError("the server itself failed") from self.broken[0]
