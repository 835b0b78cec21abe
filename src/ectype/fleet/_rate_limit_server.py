"""A rate limit server in the driver of a fleet, and its client in every worker.

A worker asks over a socket before each request to an original, and sends it when it is admitted. If the driver ends,
no worker is admitted any more: nobody pays for queries that nobody will use. Messages are lines of JSON; a worker gets
the secret that authenticates its connections with its task.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self, cast

from ectype.errors import DirectoryError, OutageError, SharedQuotaError
from ectype.fleet._quotas import RequestScheduler
from ectype.types import Json

ProgressCallback = Callable[[str, str], None]
"""Called with a model's name and a line about its progress."""
# Seconds between two looks at whether the server is to be closed; closing it takes as long.
LOOK = 0.02


class RateLimitAccess(NamedTuple):
    """Address of a rate limit server, and the secret that authenticates its clients."""

    host: str
    port: int
    key: str


class RateLimitServer:
    """Admits the requests of workers by a scheduler, and passes their progress on. A context, closed at its end."""

    def __init__(self, scheduler: RequestScheduler, tell: ProgressCallback, address: str = "127.0.0.1"):
        self._key = secrets.token_hex(32)
        self._server = _Server((address, 0), _Handler)
        self._server.scheduler, self._server.tell, self._server.key = scheduler, tell, self._key
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(LOOK,), name="ectype-gate", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.scheduler.end()
        self._server.shutdown()
        self._server.server_close()

    @property
    def access(self) -> RateLimitAccess:
        """The address and secret for workers."""
        host, port = self._server.server_address[:2]
        return RateLimitAccess(str(host), int(port), self._key)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, block_on_close = True, True, False
    request_queue_size = 128
    scheduler: RequestScheduler
    tell: ProgressCallback
    key: str


class _Handler(socketserver.StreamRequestHandler):
    """A connection of a worker, for one request at a time."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        server = cast(_Server, self.server)
        challenge = secrets.token_hex(16)
        self._say(challenge=challenge)
        if not hmac.compare_digest(_proof(server.key, challenge), str(self._heard().get("proof"))):
            return
        inside: tuple[str, int] | None = None
        try:
            while said := self._heard():
                if "enter" in said:
                    inside = self._enter(server.scheduler, said)
                elif "leave" in said and inside is not None:
                    server.scheduler.leave(*inside)
                    inside = None
                elif "most" in said:
                    self._say(most=server.scheduler.most(said["most"]))
                elif "tell" in said:
                    server.tell(said["tell"], said["words"])
        finally:
            if inside is not None:  # whoever sent it is gone; the rows may have arrived
                server.scheduler.leave(*inside)

    def _enter(self, scheduler: RequestScheduler, said: Json) -> tuple[str, int] | None:
        try:
            scheduler.enter(said["model"], said["host"], said["enter"], said["cost"])
        except (SharedQuotaError, DirectoryError) as error:  # the latter if what is spent cannot be written down
            said_so = [error.where, error.expected, str(error.found), error.hint]
            self._say(refused=said_so, limit=isinstance(error, SharedQuotaError))
            return None
        self._say(entered=said["enter"])
        return said["host"], said["enter"]

    def _say(self, **words: object) -> None:
        self.wfile.write(json.dumps(words).encode() + b"\n")

    def _heard(self) -> Json:
        try:
            line = self.rfile.readline(65536)
            return dict(json.loads(line)) if line.endswith(b"\n") else {}
        except (OSError, ValueError):
            return {}


class RateLimitClient:
    """The client for the requests of one model, which becomes its original's `gate`. Safe for threads.

    A request keeps a connection for as long as it is under way: if this process ends, the server learns of it. A
    context, so that all connections are closed.
    """

    def __init__(self, access: RateLimitAccess, model: str, host: str = "", cost: float = 0.0):
        self._access, self._model, self._host, self._cost = access, model, host, cost
        self._free: list[_Connection] = []
        self._connections: list[_Connection] = []
        self._lock, self._mine = threading.Lock(), threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for line in self._connections:
            line.close()

    def most(self) -> int | None:
        """The most rows of a request, if there is a limit."""
        line = self._acquire()
        found = line.ask(most=self._host)["most"]
        self._free.append(line)
        return None if found is None else int(found)

    def enter(self, n: int) -> None:
        """Wait until n rows may be sent."""
        line = self._acquire()
        said = line.ask(enter=n, model=self._model, host=self._host, cost=self._cost)
        if "refused" in said:
            self._free.append(line)
            raise (SharedQuotaError if said["limit"] else OutageError)(*said["refused"])
        self._mine.line = line

    def leave(self, n: int) -> None:
        """Report that n rows came back."""
        line: _Connection = self._mine.line
        line.say(leave=n)
        self._free.append(line)

    def tell(self, words: str) -> None:
        """Report the progress of the model."""
        line = self._acquire()
        line.say(tell=self._model, words=words)
        self._free.append(line)

    def _acquire(self) -> _Connection:
        with self._lock:
            if self._free:
                return self._free.pop()
            self._connections.append(_Connection(self._access))
            return self._connections[-1]


class _Connection:
    """A connection to the server."""

    def __init__(self, access: RateLimitAccess):
        with _errors():
            self._socket = socket.create_connection((access.host, access.port), timeout=30)
            # A leave that is followed by an enter would wait 40 ms for its acknowledgement.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._stream = self._socket.makefile("rwb")
        try:
            self.say(proof=_proof(access.key, self._heard()["challenge"]))
        except BaseException:
            self.close()
            raise
        self._socket.settimeout(None)  # a turn may be long in coming

    def ask(self, **words: object) -> Json:
        self.say(**words)
        return self._heard()

    def say(self, **words: object) -> None:
        with _errors():
            self._stream.write(json.dumps(words).encode() + b"\n")
            self._stream.flush()

    def close(self) -> None:
        with suppress(OSError):  # it may have been closed from there
            self._stream.close()
        self._socket.close()

    def _heard(self) -> Json:
        with _errors():
            line = self._stream.readline()
        if not line:
            raise _lost("it closed the connection")
        return dict(json.loads(line))


@contextmanager
def _errors() -> Iterator[None]:
    """Turn a lost connection into an outage."""
    try:
        yield
    except OSError as error:
        raise _lost(str(error)) from error


def _lost(found: str) -> OutageError:
    hint = "what was answered is kept; run the fleet again"
    return OutageError("fleet", "a driver that gives turns", found, hint)


def _proof(key: str, challenge: str) -> str:
    return hmac.new(key.encode(), challenge.encode(), "sha256").hexdigest()
