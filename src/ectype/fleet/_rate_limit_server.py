"""The gate that all workers of a fleet send their requests through, wherever they run: the driver keeps it.

A worker asks over a socket, and may not send before it is told to. One whose driver is gone can no longer be told, and
so nobody goes on paying for queries that nobody will use. What is said is JSON, a line each; the secret that opens a
connection reaches workers with their task.
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

Tell = Callable[[str, str], None]
"""What is called with a model's name, and with how far it is."""
# Seconds between two looks at whether the gate is to be closed, which whoever closes it waits for.
LOOK = 0.02


class RateLimitAccess(NamedTuple):
    """What a worker needs to find the gate, and to be let in."""

    host: str
    port: int
    key: str


class RateLimitServer:
    """The driver's side: gives turns, and hears how far models are. A context, so that it is closed at the end."""

    def __init__(self, turns: RequestScheduler, tell: Tell, address: str = "127.0.0.1"):
        self._key = secrets.token_hex(32)
        self._server = _Server((address, 0), _Visit)
        self._server.turns, self._server.tell, self._server.key = turns, tell, self._key
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(LOOK,), name="ectype-gate", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.turns.end()
        self._server.shutdown()
        self._server.server_close()

    @property
    def ticket(self) -> RateLimitAccess:
        """What workers are told."""
        host, port = self._server.server_address[:2]
        return RateLimitAccess(str(host), int(port), self._key)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, block_on_close = True, True, False
    request_queue_size = 128
    turns: RequestScheduler
    tell: Tell
    key: str


class _Visit(socketserver.StreamRequestHandler):
    """A connection of a worker: one request at a time goes through it."""

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
                    inside = self._enter(server.turns, said)
                elif "leave" in said and inside is not None:
                    server.turns.leave(*inside)
                    inside = None
                elif "most" in said:
                    self._say(most=server.turns.most(said["most"]))
                elif "tell" in said:
                    server.tell(said["tell"], said["words"])
        finally:
            if inside is not None:  # whoever sent it is gone; the rows may have arrived
                server.turns.leave(*inside)

    def _enter(self, turns: RequestScheduler, said: Json) -> tuple[str, int] | None:
        try:
            turns.enter(said["model"], said["host"], said["enter"], said["cost"])
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
    """A worker's side of the gate, for the requests of one model; an original's `gate`. For many threads.

    A request keeps a connection for as long as it is under way: if this process ends, the gate learns of it. A context,
    so that all of them are closed.
    """

    def __init__(self, ticket: RateLimitAccess, model: str, host: str = "", cost: float = 0.0):
        self._ticket, self._model, self._host, self._cost = ticket, model, host, cost
        self._free: list[_Line] = []
        self._lines: list[_Line] = []
        self._lock, self._mine = threading.Lock(), threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for line in self._lines:
            line.close()

    def most(self) -> int | None:
        """The most rows of a request, if there is a limit."""
        line = self._taken()
        found = line.ask(most=self._host)["most"]
        self._free.append(line)
        return None if found is None else int(found)

    def enter(self, n: int) -> None:
        """Wait until n rows may be sent."""
        line = self._taken()
        said = line.ask(enter=n, model=self._model, host=self._host, cost=self._cost)
        if "refused" in said:
            self._free.append(line)
            raise (SharedQuotaError if said["limit"] else OutageError)(*said["refused"])
        self._mine.line = line

    def leave(self, n: int) -> None:
        """Say that they came back."""
        line: _Line = self._mine.line
        line.say(leave=n)
        self._free.append(line)

    def tell(self, words: str) -> None:
        """Say how far the model is."""
        line = self._taken()
        line.say(tell=self._model, words=words)
        self._free.append(line)

    def _taken(self) -> _Line:
        with self._lock:
            if self._free:
                return self._free.pop()
            self._lines.append(_Line(self._ticket))
            return self._lines[-1]


class _Line:
    """A connection to the gate."""

    def __init__(self, ticket: RateLimitAccess):
        with _errors():
            self._socket = socket.create_connection((ticket.host, ticket.port), timeout=30)
            # A leave that is followed by an enter would wait 40 ms for its acknowledgement.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._stream = self._socket.makefile("rwb")
        try:
            self.say(proof=_proof(ticket.key, self._heard()["challenge"]))
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
    """Within, a connection that is lost is an outage."""
    try:
        yield
    except OSError as error:
        raise _lost(str(error)) from error


def _lost(found: str) -> OutageError:
    hint = "what was answered is kept; run the fleet again"
    return OutageError("fleet", "a driver that gives turns", found, hint)


def _proof(key: str, challenge: str) -> str:
    return hmac.new(key.encode(), challenge.encode(), "sha256").hexdigest()
