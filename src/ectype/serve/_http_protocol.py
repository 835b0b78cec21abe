"""One client's connection: uvicorn's HTTP protocol, whose parser is llhttp, with limits on what a client may take.

Uvicorn gives a client all the time it likes to send a request and to read its answer, and llhttp lets a head be of any
length. Here both are limited; so are connections, requests that are parsed before those ahead of them are answered, and
what may be ambiguous to a reader in front of us. What breaks a limit is refused in the service's own words.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ectype.serve._http_exchange import Exchange, PausableFlow, render_response
from ectype.serve._http_types import HttpResponse, Refusal, refusal_response

if TYPE_CHECKING:
    from ectype.serve._app import Service
    from ectype.serve._settings import ServeSettings

# The most bytes of a request that are no part of its body: its head, and what surrounds chunks. Small chunks have more
# of that than of a body, whatever the client.
MOST_HEAD, AROUND = 2**14, 8
# The most bytes that are parsed at once where they may hold several requests, and where they are one body.
PIECE, BODY_PIECE = 2**11, 2**16
# Connections beyond the most, which are for probes, and the seconds for one.
SPARE, SPARE_SECONDS = 16, 2.0
# How long, and up to how many bytes, a refused request is thrown away: a client that still sends would not see why.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**24
# How long a server that stops waits for the next request of a client that is idle: it may be on its way.
QUIET_SECONDS = 0.5
# The headers by which a client asks for another protocol.
UPGRADE = (b"upgrade", b"connection", b"http2-settings")


def malformed(found: str, status: int = 400) -> Refusal:
    """The refusal of what is not HTTP."""
    return Refusal("request", "HTTP/1.1", found, status=status)


def too_much(where: str) -> Refusal:
    """The refusal of a request that has too many bytes beside its body."""
    return malformed(f"more than {MOST_HEAD} bytes {where}", 431)


@lru_cache(maxsize=64)
def _target(url: bytes) -> tuple[str, bytes, bytes]:
    """The path of a request's target, decoded and as it came, and the query."""
    parsed = parse_url(url)
    raw = parsed.path or b"/"
    path = raw.decode("ascii")
    return (unquote(path) if "%" in path else path), raw, parsed.query or b""


class LimitedHttpProtocol(HttpToolsProtocol):
    """Answers one client of the service, request by request, until either side closes.

    A client has `client_timeout` seconds for a whole request, however slowly it drips, as long to read the answer, and
    as long until the next request. A spare connection is one beyond the limit: it is for one probe, and all else is
    refused.
    """

    flow: PausableFlow

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.parser = HttpRequestParser(self)  # without the leniency that uvicorn gives it
        self._service: Service = self.app  # what uvicorn was given
        self._settings: ServeSettings = self.config.settings  # type: ignore[attr-defined]
        self._seconds = self._settings.client_timeout
        self._waiting: bytes | memoryview = b""
        self._fed = self._began = self._body = self._length = self._thrown = 0
        # Whether a request has begun that is not whole, whether its head is, and what comes to an end.
        self._partial = self._headed = self._stopping = self._eof = self._over = False
        self._running: Any = None
        self._unstarted: Any = None  # the same, while what came with it is still parsed
        self._refusal: Refusal | None = None
        self._full: Refusal | None = None

    # --- the connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of a new connection; beyond the limit it may only send a probe."""
        super().connection_made(transport)
        self.flow = PausableFlow(transport)
        most, there = self._settings.max_connections, len(self.connections)
        if there > most:
            hint = "come back when others have left"
            self._full = Refusal("connections", f"at most {most}", "one more", hint, status=503)
            self._seconds = min(self._seconds, SPARE_SECONDS) if there <= most + SPARE else 0.0
        self._deadline = self.loop.time() + self._seconds
        self._timer = self.loop.call_at(self._deadline, self._tick)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone, or the connection was closed."""
        self._timer.cancel()
        self._waiting, self._unstarted = b"", None
        if self._running is not None:
            self._running.disconnected = True
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, or throw them away once the connection is over."""
        if self._over:
            self._throw_away(len(data))
        else:
            self._waiting = b"".join((self._waiting, data)) if self._waiting else data
            self._advance()

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more; it may still read."""
        self._eof = True
        self._advance()
        return not self.transport.is_closing() and self.transport.can_write_eof()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        super().pause_writing()
        self._wait(self._seconds)

    def resume_writing(self) -> None:
        """The client has read most of its answer."""
        super().resume_writing()
        self._wait(self._seconds)

    def shutdown(self) -> None:
        """Answer the requests under way, then close; an idle client may be sending, so wait for it briefly."""
        self._stopping = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        elif not self._partial:
            self._wait(QUIET_SECONDS)

    # --- time --------------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Move the deadline. The timer follows once it rings, or now if it would ring too late."""
        self._deadline = self.loop.time() + seconds
        if self._deadline < self._timer.when():
            self._timer.cancel()
            self._timer = self.loop.call_at(self._deadline, self._tick)

    def _tick(self) -> None:
        """See whether time is up; a request that is being answered has all the time that takes."""
        now, stuck = self.loop.time(), self.flow.write_paused or self.transport.is_closing()
        if self._answering and not stuck:
            self._deadline = now + self._seconds
        if now < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._tick)
        elif stuck or self._over:
            self.transport.abort()
        elif self._full is not None:
            self._refuse(self._full)
        elif self._partial and not self._answered_early:
            self._refuse(Refusal("request", f"a whole request within {self._seconds:g} s", "less", status=408))
        else:
            self.transport.abort()

    # --- from bytes to requests --------------------------------------------------------------------------------------

    @property
    def _answering(self) -> bool:
        """Whether a whole request is being answered."""
        return self._running is not None and not self._running.more_body

    @property
    def _answered_early(self) -> bool:
        """Whether the request that is not whole has been answered already."""
        return self._partial and self._headed and self.cycle.response_complete

    def _advance(self) -> None:
        """Parse what came, until a whole request is to be answered: those behind it have to wait for that."""
        while self._waiting and not (self._over or self._answering):
            waiting, size = self._waiting, PIECE
            if self._headed and self._partial:
                size = max(size, min(self._length - self._body, BODY_PIECE))
            if len(waiting) > size:
                waiting = memoryview(waiting)
                self._waiting = waiting[size:]
                self._feed(waiting[:size])
            else:
                self._waiting = b""
                self._feed(waiting)
        if self._unstarted is not None:
            self._start(self._unstarted)
        held = len(self._waiting) > 0
        if held != self.flow.held:
            self.flow.held = held
            (self.flow.pause_reading if held else self.flow.resume_reading)()
        if self._eof and not held and not self._answering:
            self._end()

    def _feed(self, piece: bytes | memoryview) -> None:
        self._fed += len(piece)
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade as upgrade:
            self._stay(bytes(piece[upgrade.args[0] :]))
        except HttpParserError as error:
            found = error.__context__ or error  # what was raised while the parser told something
            self._refuse(found if isinstance(found, Refusal) else malformed(str(found) or "something else"))
        else:
            if self._partial and self._fed - self._began > MOST_HEAD + AROUND * self._body:
                self._refuse(too_much("around chunks" if self._headed else "of headers"))

    def _stay(self, rest: bytes) -> None:
        """Go on by HTTP/1.1 with a client that asks for another protocol, as it has to expect.

        The parser has stopped behind the head, and takes what follows for the other protocol's. So another one is given
        the same request without that wish.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        if method == b"CONNECT":
            self._refuse(
                Refusal("method", "GET, HEAD or POST", "CONNECT", status=405, headers={"allow": "GET, HEAD, POST"})
            )
            return
        tokens = b",".join(value.lower() for name, value in self.headers if name == b"connection").split(b",")
        kept = [header for header in self.headers if header[0] not in UPGRADE]
        if b"close" in map(bytes.strip, tokens):
            kept.append((b"connection", b"close"))
        lines = [b"%b %b HTTP/%b" % (method, self.url, version), *(b"%b: %b" % header for header in kept), b"\r\n"]
        self.parser = HttpRequestParser(self)
        self._waiting = b"".join((rest, self._waiting))
        self._fed -= len(rest)
        self._feed(b"\r\n".join(lines))

    # --- what the parser tells ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._partial, self._headed, self._body, self._began = True, False, 0, self._fed
        if not self._answering:
            self._deadline = self.loop.time() + self._seconds
        if self._full is not None:
            self.scope["full"] = self._full  # type: ignore[typeddict-unknown-key]

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; those behind the last chunk are nobody's."""
        if not self._headed:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head of a request is whole: let it be answered, after those before it."""
        parser = self.parser
        if parser.should_upgrade():
            return
        version, (path, raw, query) = parser.get_http_version(), _target(self.url)
        self._length = self._checked(version)
        self.scope["method"] = parser.get_method().decode("ascii")
        self.scope["http_version"] = version
        self.scope["path"], self.scope["raw_path"], self.scope["query_string"] = path, raw, query
        self.cycle = cycle = Exchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue and version == "1.1",
            keep_alive=version == "1.1" and parser.should_keep_alive() and not (self._full or self._stopping),
            on_response=lambda: self._answered(cycle),
        )
        self._headed = True
        if self._running is not None:
            self.pipeline.appendleft((cycle, self.app))
        else:
            self._running = self._unstarted = cycle

    def _checked(self, version: str) -> int:
        """The length of the body that the head says, if all of it says the same to every reader."""
        size, hosts, codings, length = len(self.url), 0, [], 0
        for name, value in self.headers:
            size += len(name) + len(value) + 4
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                codings.append(value.strip().lower())
        if size > MOST_HEAD:
            raise too_much("of headers")
        if version not in ("1.0", "1.1"):
            raise malformed(f"version {version}")
        if hosts > 1 or (version == "1.1" and not hosts):
            raise malformed(f"{hosts or 'no'} Host")
        if codings and (codings != [b"chunked"] or version == "1.0"):
            raise malformed("another Transfer-Encoding than chunked")
        return length

    def on_body(self, body: bytes) -> None:
        """A part of a body; of a request that was answered before its end, it is thrown away."""
        self._body += len(body)
        if self.cycle.response_complete:
            self._throw_away(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._partial = False
        if self._headed:
            super().on_message_complete()

    # --- from answers to the next request, or to the end -------------------------------------------------------------

    def _start(self, cycle: Any) -> None:
        """Answer a request: what came as a whole needs no task of its own that waits for the rest."""
        self._running, self._unstarted = cycle, None
        if cycle.more_body or cycle.waiting_for_100_continue:
            self._start_asgi_task(cycle, self.app)
            return
        at_once = True

        def tell(response: HttpResponse) -> None:
            if cycle.flow.write_paused:  # the client has not read the answers before this one
                task = self.loop.create_task(response.send(cycle.send))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
            elif at_once:  # many short requests that came together would be as many calls inside each other
                self.loop.call_soon(cycle.finish, response)
            else:
                cycle.finish(response)

        self._service.respond(cycle.scope, bytes(cycle.body), tell)
        at_once = False

    def _answered(self, cycle: Exchange) -> None:
        """Go on to the next request, once one was answered."""
        self.server_state.total_requests += 1
        self._running = None
        if self.transport.is_closing():
            return
        self._wait(self._seconds)
        if not cycle.keep_alive:
            self.pipeline.clear()
            self._leave()
        elif self.pipeline:
            self._start(self.pipeline.pop()[0])
        elif self._over:
            self._write_refusal()
        self.flow.resume_reading()
        self._advance()  # the next one may be there, or the rest of its body

    def _refuse(self, error: Refusal) -> None:
        """Refuse a request, after the answers to those before it, and read no more."""
        self._over, self._waiting = True, b""
        if not self._answered_early:
            self._refusal = error
            if self._partial and self._headed:  # the service waits for its body
                if self.cycle is self._running:
                    self._running, self._unstarted, self.cycle.disconnected = None, None, True
                    self.cycle.message_event.set()
                else:
                    self.pipeline.popleft()
        if not self._answering:
            self._write_refusal()

    def _write_refusal(self) -> None:
        """Write the refusal, if there is one, and close."""
        if self._refusal is not None:
            route = self.scope.get("route", "none") if self._partial and self._headed else "none"
            self._service.counts.request(str(route), self._refusal.status)
            response = refusal_response(self._refusal)
            defaults = self.server_state.default_headers
            self.transport.write(render_response(response.status, defaults, response.lines(), response.body, last=True))
        self._leave()

    def _leave(self) -> None:
        """Close, once a client that is still sending has had the time to read what was said."""
        sends = (self._over or self._partial) and not self._eof
        self._over, self._waiting = True, b""
        if sends and self.transport.can_write_eof():
            self.transport.write_eof()
            self.flow.held = False
            self.flow.resume_reading()
            self._wait(LINGER_SECONDS)
        else:
            self.transport.close()

    def _end(self) -> None:
        """Close, since the client sends no more."""
        if self._partial and not self._over and not self._answered_early:
            self._refuse(malformed("the end of a request that is not whole"))
        else:
            self.transport.close()

    def _throw_away(self, n: int) -> None:
        """Count so many bytes that are of no use."""
        self._thrown += n
        if self._thrown > LINGER_BYTES:
            self.transport.abort()
