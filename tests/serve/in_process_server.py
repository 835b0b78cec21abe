"""Copies to serve, a server for them in this process, and raw clients, for tests."""

import queue
import re
import signal
import socket
import threading
from contextlib import contextmanager, suppress

import httpx2
import numpy as np

from ectype.certificate.certificate import Certificate
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import NO_LIMITS, fit
from ectype.runs.result import Record, Result
from ectype.serve import ServeSettings
from ectype.serve._app import Service
from ectype.serve._inference import InferenceModel
from ectype.serve._server import Server, UvicornConfig, bind_socket
from ectype.space import Encoding

# One for all tests, since making one takes long; it keeps no connection.
HTTP = httpx2.Client(limits=httpx2.Limits(max_keepalive_connections=0), timeout=20)


def copied(space, rows, codes, classes, family="tree", limits=NO_LIMITS):
    X = Encoding(space)(space.read(rows, "rows"))
    return CopyClassifier(fit(family, X, codes, len(classes), limits, seed=0), np.array(classes), space)


def saved(copy, path):
    history = [Record(0, 600, 600, 0, 0.0, 0.1, 0.1, None, 0.0, 1, 0.1)]
    proof = Certificate(0.98, 0.97, 0.95, 2000)
    settings = {"method": "one-shot", "original": "loans"}
    return Result(copy, proof, history, copy.space, settings, {"training": 600}, "budget", 1.0, 1.0).save(path)


def tensor(name, data, datatype, shape=None):
    return {"name": name, "shape": shape or [len(data), 1], "datatype": datatype, "data": data}


def drawn(model, n=40, seed=3):
    """Rows of a space without gaps that our client cannot write in V2."""
    space = model.copy.space
    rows = space.sample(n, np.random.default_rng(seed))
    for j, column in enumerate(space.columns):
        if column.missing and (column.kind == "boolean" or column.name == "gappy names"):
            rows[:, j] = np.nan_to_num(rows[:, j])
    return space.present(rows).drop(columns="both", errors="ignore") if space.frame else rows


class Running:
    """A server on a thread of its own; `stop` stops it, as often as one likes."""

    def __init__(self, copy, settings, **parts):
        proof = Certificate(0.98, 0.97, 0.95, 2000)
        self.service = Service(InferenceModel(copy, "m", "1", settings.max_rows), proof, settings=settings, **parts)
        started = queue.SimpleQueue()
        self._server = Server(UvicornConfig(self.service, settings), lambda address, _: started.put(address))
        self._thread = threading.Thread(target=self._server.run, args=([bind_socket(settings.address)],))
        self._thread.start()
        self.port = started.get(timeout=30).port
        self.url = f"http://127.0.0.1:{self.port}"
        self.model = f"{self.url}/v2/models/m"

    def all_gone(self):
        """Wait until no client is connected."""
        waiting = threading.Event()
        for _ in range(3000):
            if not self._server.server_state.connections:
                return
            waiting.wait(0.01)
        raise AssertionError("somebody is still connected")

    def stop(self):
        self._server.handle_exit(signal.SIGTERM, None)
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def running(copy, seconds=30.0, most_bytes=20_000, most_rows=500, most_connections=64, token=None, **parts):
    limits = {"max_bytes": most_bytes, "max_rows": most_rows, "max_connections": most_connections, "grace": 5.0}
    settings = ServeSettings(port=0, client_timeout=seconds, token=token, **limits)
    server = Running(copy, settings, **parts)
    try:
        yield server
    finally:
        server.stop()


def question(rows, **others):
    rows = np.atleast_2d(rows)
    return {"inputs": [tensor("inputs", rows.ravel().tolist(), "FP64", list(rows.shape))], **others}


def posted(server, content, **options):
    return HTTP.post(server.model + "/infer", json=content, **options)


def head(body=b"", *lines, path="/v2/models/m/infer", length=None):
    """A raw request to ask the model."""
    size = len(body) if length is None else length
    first = (f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {size}")
    return "\r\n".join([*first, *lines, "", ""]).encode() + body


@contextmanager
def connected(server, timeout=20):
    with socket.create_connection(("127.0.0.1", server.port), timeout=timeout) as line:
        yield line


def received(line):
    """All that comes until the other side closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


def statuses(raw):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", raw)]


def metrics(server):
    text = HTTP.get(server.url + "/metrics").text
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}
