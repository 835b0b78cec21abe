"""Sends mutated HTTP requests to the server of `ectype serve`, and compares what it takes with h11 and with llhttp.

    python tools/mutated_requests.py [--requests N] [--seed S] [--json]

Valid requests, alone and one behind the other, are damaged at random: bytes, tokens and lines come twice, go, or take
each other's places, above all those that say where a request ends. Each is sent on a connection of its own, some of
them in pieces. A request counts as taken if it reached the application whole, whatever that answered.

What nobody may do is to take a request that both h11 and llhttp refuse, or to answer behind one that was refused. Where
h11 and the server see other requests in the same bytes, that is counted by its kind, and by the reason of who refuses:
`stricter`, we refuse what h11 takes; `looser`, we take what h11 refuses, but llhttp takes; `other`, both take
something, and not the same.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import h11
import httptools

import ectype as ec
from ectype.serve import ServeSettings
from ectype.serve._app import Service, Tell
from ectype.serve._asgi import Message, Receive, Scope, Send
from ectype.serve._inference import InferenceModel
from ectype.serve._server import Server, UvicornConfig, bind_socket

BODY = b'{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP64","data":[1,2]}]}'
POST = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
GET = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
SEEDS = (
    GET,
    POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    CHUNKED + b"5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (BODY[:5], len(BODY) - 5, BODY[5:]),
    CHUNKED + b"%X;name=value\r\n%b\r\n0\r\nTrailer: x\r\n\r\n" % (len(BODY), BODY),
    b"GET /v2 HTTP/1.0\r\n\r\n",
    b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, close\r\n\r\n",
    b"HEAD /v2/models/m HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
)
# What is put into a request, or in the place of a part of it.
TOKENS = (
    *(bytes([byte]) for byte in b"\r\n\0\t\x0b\x7f\x80\xff :;,.=\"'+-_/?#%0123789aAxX"),
    *(b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r\n", b"\r\n ", b"0\r\n\r\n", b"0\r\n", b"GET /x HTTP/1.1\r\n", b"HTTP/0.9"),
    *(b"HTTP/1.0", b"HTTP/2.0", b"chunked", b"identity", b"gzip, chunked", b"close", b"notclose", b"upgrade", b"0x"),
    *(b"Content-Length: 0\r\n", b"Content-Length: 3\r\n", b"Content-Length: +3\r\n", b"Content-Length: 1_0\r\n"),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: x\r\n",
        b"Host: y\r\n",
    ),
    *(
        b"Transfer-Encoding:\r\n chunked\r\n",
        b"Connection: close\r\n",
        b"Expect: 100-continue\r\n",
        b"Upgrade: h2c\r\n",
    ),
)


def mutated(rng: random.Random) -> bytes:
    """One to three requests in a row, damaged in one to four places."""
    raw = b"".join(rng.choices(SEEDS, k=rng.choice((1, 1, 2, 3))))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(raw) + 1)
        size = rng.choice((0, 0, 1, 1, 2, rng.randrange(20)))
        lines = raw.split(b"\r\n")
        line = rng.randrange(len(lines))
        raw = rng.choice(
            (
                raw[:at] + rng.choice(TOKENS) + raw[at + size :],
                raw[:at] + raw[at + max(size, 1) :],
                raw[:at] + raw[at : at + size] + raw[at:],
                b"\r\n".join([*lines[:line], lines[line], *lines[line:]]),
                b"\r\n".join([*lines[:line], rng.choice(TOKENS), *lines[line:]]),
                b"\r\n".join([*lines[:line], *lines[line + 1 :]]),
                b"\r\n".join([*lines[:line], *sorted(lines[line : line + 2]), *lines[line + 2 :]]),
            )
        )
    return raw


Taken = list[tuple[str, bytes]]
"""The methods and bodies of requests that were taken, in their order."""


def by_h11(raw: bytes) -> tuple[Taken, str]:
    """What h11 takes, and why it does not take what follows."""
    connection, taken = h11.Connection(h11.SERVER), Taken()
    connection.receive_data(raw)
    connection.receive_data(b"")
    try:
        while isinstance(request := connection.next_event(), h11.Request):
            body = b""
            while isinstance(event := connection.next_event(), h11.Data):
                body += event.data
            taken.append((request.method.decode(), body))
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                break
            connection.start_next_cycle()
    except h11.RemoteProtocolError as error:
        return taken, str(error)
    return taken, "the end"


class ByLlhttp:
    """What llhttp takes, as httptools gives it.

    Behind the head of a request for another protocol it stops, and we go on there, as a server that ignores the wish.
    """

    def __init__(self, raw: bytes):
        self.taken, rest = Taken(), raw
        while rest:
            self._parser, stopped = httptools.HttpRequestParser(self), len(rest)
            with suppress(httptools.HttpParserError):
                try:
                    self._parser.feed_data(rest)
                except httptools.HttpParserUpgrade as upgrade:
                    stopped = upgrade.args[0]
            rest = rest[stopped:]

    def on_message_begin(self) -> None:
        """A request begins."""
        self._body = b""

    def on_body(self, body: bytes) -> None:
        """A part of its body."""
        self._body += body

    def on_message_complete(self) -> None:
        """It is whole."""
        self.taken.append((self._parser.get_method().decode(), self._body))


class Recorder(Service):
    """The service, which writes down what reaches it, by the port of the client."""

    taken: dict[int, Taken]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, whose body is read in any case."""
        if scope["type"] != "http":
            return await super().__call__(scope, receive, send)
        messages: list[Message] = []
        while not messages or messages[-1].get("more_body", False):
            messages.append(await receive())
        if messages[-1]["type"] == "http.request":
            body = b"".join(message["body"] for message in messages)
            self.taken[scope["client"][1]].append((scope["method"], body))
        coming = iter(messages)

        async def again() -> Message:
            return next(coming)

        return await super().__call__(scope, again, send)

    def respond(self, scope: Scope, body: bytes, tell: Tell) -> None:
        """Answer one request that came as a whole."""
        self.taken[scope["client"][1]].append((scope["method"], body))
        super().respond(scope, body, tell)


@contextmanager
def served() -> Iterator[tuple[Recorder, int]]:
    """The server on a thread of its own, and its port."""
    result = ec.copy_classifier(lambda rows: rows[:, 0] > 0, ec.Space.normal(2), budget=100, to="tree", certificate_n=0)
    settings = ServeSettings(port=0, client_timeout=20.0)
    service = Recorder(InferenceModel(result.copy, "m", "1", 10), settings=settings)
    service.taken = {}
    ports: queue.SimpleQueue[int] = queue.SimpleQueue()
    server = Server(UvicornConfig(service, settings), lambda address, _: ports.put(address.port))
    thread = threading.Thread(target=server.run, args=([bind_socket(settings.address)],))
    thread.start()
    try:
        yield service, ports.get(timeout=30)
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join()


def sent(raw: bytes, service: Recorder, port: int, rng: random.Random) -> tuple[Taken, bytes]:
    """What is taken of these bytes, of which some come later than others, and all that is answered."""
    cuts = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.choice((0, 0, 1, 2))))
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken = service.taken[line.getsockname()[1]] = Taken()
        with suppress(OSError):
            for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
                line.sendall(raw[start:end])
            line.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while part := line.recv(65536):
                parts.append(part)
    return taken, b"".join(parts)


@dataclass
class Outcome:
    """How many requests were sent, what became of them, and those that nobody may take."""

    requests: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, raw: bytes, ours: Taken, answer: bytes) -> None:
        """Compare what we took of these bytes, and answered, with the others."""
        (theirs, reason), llhttp = by_h11(raw), ByLlhttp(raw).taken
        self.requests += 1
        if not any(ours == taken[: len(ours)] for taken in (theirs, llhttp)):
            self.wrong.append(f"taken, though h11 and llhttp refuse: {raw!r}: {ours}, {theirs}, {llhttp}")
        if b"\r\nconnection: close\r\n" in answer.rpartition(b"HTTP/1.1 ")[0]:
            self.wrong.append(f"answered behind the last answer: {raw!r}")
        kind = "same"
        if ours != theirs:
            kind = "stricter" if ours == theirs[: len(ours)] else "looser" if theirs == ours[: len(theirs)] else "other"
        self.kinds[kind] += 1
        self.kinds["refused"] += not ours
        if kind == "stricter":
            reason = answer.rpartition(b'"error": "')[2].rpartition(b'"')[0].decode()
        if kind != "same":
            self.reasons[f"{kind}: {reason}"] += 1


def compared(n: int, seed: int = 0) -> Outcome:
    """What becomes of n mutated requests."""
    rng, outcome, exchanges = random.Random(seed), Outcome(), []
    with served() as (service, port):
        for _ in range(n):
            raw = mutated(rng)
            exchanges.append((raw, *sent(raw, service, port, rng)))
    for exchange in exchanges:  # once nothing is under way any more
        outcome.add(*exchange)
    outcome.kinds["failures"] = int(service.counts.failures.value)
    return outcome


def main() -> None:
    """Print what became of mutated requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    outcome = compared(options.requests, options.seed)
    found: dict[str, Any] = {"requests": outcome.requests, "wrong": len(outcome.wrong), **dict(outcome.kinds)}
    for example in outcome.wrong[:20]:
        print(example, file=sys.stderr)
    if options.json:
        print(json.dumps({**found, "reasons": dict(outcome.reasons)}))
    else:
        for name, n in [*found.items(), *outcome.reasons.most_common()]:
            print(f"{n:>7}  {name}")
    sys.exit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
