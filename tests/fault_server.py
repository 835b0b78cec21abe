"""A real HTTP server that answers by a function, speaks every protocol, and fails on purpose."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

# Faults after which asking again gives the labels of a healthy server, in every protocol.
RECOVERABLE = ("drop", "stall", "429", "429 date", "500", "503", "truncated", "cut", "nan", "few", "many")
# Every kind of failure that passes: before and after rows were read, before and after their answer.
PASSING = (*RECOVERABLE, "unread", "reset", "reset after", "garbage")
# What to tell ectype of this server's own protocol, the only one here with an id for every row.
TEMPLATE = {
    "request": {"rows": "$rows", "ids": "$ids"},
    "rows": "lists",
    "answer": "answers",
    "label": "label",
    "id": "id",
}


class Refused(Exception):
    """What `decide` may raise: the fault to meet, such as "400", for the sake of a row."""


class Seen(NamedTuple):
    """A request as it arrived: `rows` as lists, `fault` what was done to it."""

    at: float
    path: str
    headers: dict[str, str]
    document: Any
    rows: list[list[Any]]
    fault: str | None


class FaultyServer:
    """Answers `decide(rows)`, rows being an array or a data frame; a share of requests meets one of the faults.

    `plan` says what to do with the first requests, in their order: a fault, or None to answer them. A fault is one of
    those below, or a status, perhaps with its Retry-After. Which protocol is spoken follows from the request, so that
    `url` serves for all of them, with /v2/models/NAME at its end for v2. `tls`: speak TLS.

    >>> with FaultyServer(lambda rows: rows[:, 0] > 0) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        decide: Callable[[Any], Any],
        faults: Iterable[str] = RECOVERABLE,
        share: float = 0.1,
        seed: int = 0,
        plan: Iterable[str | None] = (),
        tls: ssl.SSLContext | None = None,
    ):
        self.decide, self.faults, self.share, self.plan = decide, tuple(faults), share, list(plan)
        self.log: list[Seen] = []
        self.broken: list[BaseException | None] = []
        self.under_way = self.peak = 0
        self.closing = threading.Event()
        self.lock, self._random = threading.Lock(), random.Random(seed)
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.faulty = self
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"
        if tls is not None:
            # Shaken by the thread of each connection: one that fails there must not stop who accepts the others.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def __enter__(self) -> FaultyServer:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()
        if self.broken:
            raise AssertionError("the server itself failed") from self.broken[0]

    @property
    def asked(self) -> int:
        """The rows that came in, as often as they came."""
        return sum(len(seen.rows) for seen in self.log)

    def fault(self) -> str | None:
        """What to do with the next request; to be called under the lock."""
        if self.plan:
            return self.plan.pop(0)
        return self._random.choice(self.faults) if self._random.random() < self.share else None


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 64
    faulty: FaultyServer

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        for connection in self.connections:
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong here; clients that give up are what this server is for."""
        error = sys.exception()
        if not isinstance(error, (ConnectionError, ssl.SSLError)):
            self.faulty.broken.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or every answer would wait 40 ms between its headers and its body
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        faulty = self.server.faulty
        with faulty.lock:
            fault = faulty.fault()
        if fault == "unread":  # refused before its rows arrive
            self.close_connection = True
            faulty.log.append(Seen(time.monotonic(), self.path, dict(self.headers), None, [], fault))
            self._refuse("500")
            return
        body = self.rfile.read(length := int(self.headers["Content-Length"]))
        if len(body) < length:
            raise ConnectionAbortedError("the client is gone")  # killed while it sent
        with faulty.lock:
            talk = _understood(self.headers["Content-Type"], body)
            faulty.log.append(
                Seen(time.monotonic(), self.path, dict(self.headers), talk.document, talk.listed(), fault)
            )
            faulty.under_way += 1
            faulty.peak = max(faulty.peak, faulty.under_way)
        try:
            self._answer(talk, fault)
        finally:
            with faulty.lock:
                faulty.under_way -= 1

    def _answer(self, talk: _Talk, fault: str | None) -> None:
        labels: list[Any] = []
        try:
            labels = np.asarray(self.server.faulty.decide(talk.rows)).tolist()
        except Refused as refused:
            fault = str(refused)
        if fault in ("drop", "stall", "reset"):
            if fault == "stall":
                self.server.faulty.closing.wait()
            self._hang_up(reset=fault == "reset")
        elif fault is not None and fault.split()[0].isdigit():
            self._refuse(*fault.split(maxsplit=1))
        else:
            self._send(fault, talk.answer(*_damaged(fault, labels, talk.ids)))
            if fault == "reset after":
                self._hang_up(reset=True)

    def _hang_up(self, reset: bool) -> None:
        """Close the connection: in order, or at once, with what was sent perhaps not read yet."""
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _refuse(self, status: str, extra: str = "0") -> None:
        """A status, with Retry-After and Location; `echo` as its extra repeats the token, `long` says a lot."""
        token = self.headers.get("Authorization", "")
        text = {"echo": f"refused {token} " * 40, "long": "refused " * 50_000}.get(extra, "refused")
        self.send_response(int(status))
        self.send_header("Retry-After", formatdate(usegmt=True) if extra == "date" else extra)
        self.send_header("Location", f"http://elsewhere.test/model?key=secret&t={token}")
        self._body(text.encode())

    def _send(self, fault: str | None, body: bytes) -> None:
        whole = body
        if fault in ("truncated", "cut"):
            body = body[: len(body) // 2]
        if fault in ("huge", "gzip"):
            body = whole = b" " * 300_000 + body
        if fault == "garbage":
            body = whole = f"<html>welcome {self.headers.get('Authorization')}".encode()
        if fault == "bad head":
            self.wfile.write(f"HTTP/1.1 200 OK\r\n{self.headers.get('Authorization')}\r\n\r\n".encode())
            self.close_connection = True
            return
        if fault == "drip head":
            self._drip(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Long: " + b"a" * 10_000)
            return
        self.send_response(200)
        if fault == "gzip":
            body = whole = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        if fault == "drip":
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self._drip(b" " * 100_000)
        else:
            self._body(body, len(whole) if fault == "cut" else len(body))
            self.close_connection = fault == "cut"

    def _body(self, body: bytes, length: int | None = None) -> None:
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, data: bytes) -> None:
        self.close_connection = True
        self.wfile.flush()
        for byte in data:
            self.wfile.write(bytes([byte]))
            if self.server.faulty.closing.wait(0.01):
                return


def _damaged(fault: str | None, labels: list[Any], ids: list[Any]) -> tuple[list[Any], list[Any]]:
    """Labels and their ids with this fault in them."""
    if fault == "nan":
        return [float("nan"), *labels[1:]], ids
    if fault == "null":
        return [None, *labels[1:]], ids
    if fault == "few":
        return labels[1:], ids[1:]
    if fault == "many":
        return [*labels, labels[0]], [*ids, *ids[:1]]
    if fault == "shuffled":
        return labels[::-1], ids[::-1]
    if fault == "strange ids":
        return labels, [f"another-{identity}" for identity in ids]
    if fault == "one id twice":
        return labels, [*ids[:-1], ids[0]]
    return labels, ids


class _Talk(NamedTuple):
    """A request understood: what it holds, and how to answer it."""

    document: Any
    rows: np.ndarray | pd.DataFrame
    ids: list[Any]
    answer: Callable[[list[Any], list[Any]], bytes]

    def listed(self) -> list[list[Any]]:
        return pd.DataFrame(self.rows).astype(object).to_numpy().tolist()


def _understood(content_type: str, body: bytes) -> _Talk:
    if content_type == "text/csv":
        return _csv(body.decode())
    document = json.loads(body, parse_constant=_no_json)
    if "instances" in document:
        rows = document["instances"]
        frame = isinstance(rows[0], dict)
        return _Talk(document, pd.DataFrame(rows) if frame else _array(rows), [], _predictions)
    if "id" in document:
        return _v2(document)
    if "dataframe_split" in document:
        return _Talk(document, pd.DataFrame(**document["dataframe_split"]), [], _predictions)
    if "inputs" in document:
        return _Talk(document, _array(document["inputs"]), [], _predictions)
    if "data" in document:
        names, rows = document["data"].get("names"), document["data"]["ndarray"]
        table = _array(rows) if names is None else pd.DataFrame(rows, columns=names)
        return _Talk(document, table, [], lambda labels, _: json.dumps({"data": {"ndarray": labels}}).encode())
    if "rows" not in document:  # one row by itself
        one = pd.DataFrame([document])
        return _Talk(document, one, [], lambda labels, _: json.dumps({"result": {"label": labels[0]}}).encode())
    rows = document["rows"]
    table = pd.DataFrame(rows) if isinstance(rows[0], dict) else _array(rows)
    return _Talk(document, table, document["ids"], _elements)


def _no_json(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _array(rows: list[list[Any]]) -> np.ndarray | pd.DataFrame:
    """Rows as an array, or, if some of them hold words, as a data frame."""
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        return pd.DataFrame(rows)


def _predictions(labels: list[Any], _: list[Any]) -> bytes:
    return json.dumps({"predictions": labels}).encode()


def _elements(labels: list[Any], ids: list[Any]) -> bytes:
    pairs = zip(labels, ids, strict=True)
    return json.dumps({"answers": [{"label": label, "id": identity} for label, identity in pairs]}).encode()


def _v2(document: Any) -> _Talk:
    def answer(labels: list[Any], ids: list[Any]) -> bytes:
        output = {"name": "predict", "datatype": "INT64", "shape": [len(labels)], "data": labels}
        return json.dumps({"model_name": "m", "id": ids[0] if ids else document["id"], "outputs": [output]}).encode()

    tensors = document["inputs"]
    if document.get("parameters", {}).get("content_type") == "pd":
        rows: Any = pd.DataFrame({tensor["name"]: tensor["data"] for tensor in tensors})
    else:
        rows = np.array(tensors[0]["data"], dtype=np.float64).reshape(tensors[0]["shape"])
    return _Talk(document, rows, [document["id"]] * len(rows), answer)


def _csv(text: str) -> _Talk:
    def answer(labels: list[Any], _: list[Any]) -> bytes:
        written = io.StringIO()
        csv.writer(written).writerows([label] for label in labels)
        return written.getvalue().encode()

    lines = list(csv.reader(io.StringIO(text)))
    try:
        return _Talk(text, np.array([[float(field or "nan") for field in line] for line in lines]), [], answer)
    except ValueError:  # under a header
        return _Talk(text, pd.read_csv(io.StringIO(text)), [], answer)
