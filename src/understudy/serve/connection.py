"""One client's connection: its requests are handed to the service one after the other, with limits on size and time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from enum import Enum
from time import time
from typing import Protocol

from understudy.serve.app import Service
from understudy.serve.http1 import Head, Incoming, malformed, opening
from understudy.serve.messages import Refusal, Response, refused
from understudy.serve.routes import Route

# How many bytes of further requests are taken while one is being answered.
AHEAD = 2**16
# How long, and up to how many bytes, a refused body is thrown away: a client that still sends would not see the reason.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**24
# How long a server that stops waits for the next request of a client that has just been answered, or has just come.
QUIET_SECONDS = 0.5
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(Enum):
    """What a connection waits for: a request to begin, to be whole, to be answered, an answer to be read, the end."""

    IDLE = 0
    REQUEST = 1
    ANSWER = 2
    READING = 3
    LINGERING = 4


class Door(Protocol):
    """Who keeps count of the clients."""

    def arrived(self, connection: Connection) -> tuple[float, Refusal | None]:
        """How many seconds a client has, and the reason if it may only send a probe."""

    def left(self, connection: Connection) -> None:
        """A client is gone."""


class Connection(asyncio.Protocol):
    """Answers one client, request by request, until either side closes.

    A client has `seconds` for a whole request, however slowly it drips, as long to read the answer, and as long until
    the next request. A spare connection is one beyond the limit: it is for one probe, and all else is refused.
    """

    def __init__(self, service: Service, door: Door) -> None:
        self._service, self._door = service, door
        self._full: Refusal | None = None
        self._seconds = 0.0
        self._incoming, self._state, self._last = Incoming(), State.IDLE, False
        self._head: Head | None = None
        self._route: Route | None = None
        self._deadline, self._discarded = 0.0, 0
        self._eof = self._paused = self._blocked = self._head_only = False

    # --- what the event loop tells -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._loop = transport, asyncio.get_running_loop()
        transport.set_write_buffer_limits(high=0)  # so that an answer is out once writing is resumed
        self._seconds, self._full = self._door.arrived(self)
        self._last = self._full is not None
        self._wait(State.IDLE, self._seconds)
        self._timer = self._loop.call_at(self._deadline, self._tick)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone, or the connection was closed."""
        self._timer.cancel()
        self._last = True
        self._state = State.LINGERING
        self._door.left(self)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self._state is State.LINGERING:
            self._discarded += len(data)
            if self._discarded > LINGER_BYTES:
                self._transport.abort()
            return
        self._incoming.feed(data)
        if self._state is State.IDLE:
            self._wait(State.REQUEST, self._seconds)
        if self._state is State.REQUEST:
            self._advance()
        elif len(self._incoming) > AHEAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The client sends no more; it may still read."""
        self._eof = True
        if self._state is State.IDLE or self._state is State.LINGERING:
            self._transport.close()
        elif self._state is State.REQUEST:
            self._refuse(malformed("the end of a request that is not whole"))
        return self._state is not State.LINGERING and self._transport.can_write_eof()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        self._blocked = True

    def resume_writing(self) -> None:
        """The client has read its answer."""
        self._blocked = False
        if self._state is State.READING:
            self._next()

    # --- what the server tells ---------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Answer what is under way, and no more; a client that was busy a moment ago may be sending."""
        if self._last:
            return
        self._last = True
        if self._state is State.IDLE:
            since = self._deadline - self._seconds
            self._deadline = max(since + QUIET_SECONDS, self._loop.time())
            self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._tick)

    def abort(self) -> None:
        """Let the client go, whatever is under way."""
        self._transport.abort()

    # --- one request after the other ---------------------------------------------------------------------------------

    def _wait(self, state: State, seconds: float) -> None:
        self._state, self._deadline = state, self._loop.time() + seconds

    def _tick(self) -> None:
        """See whether time is up; a request that is being answered has all the time that takes."""
        now = self._loop.time()
        if self._state is State.ANSWER:
            self._deadline = now + self._seconds
        if now < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._tick)
        elif self._state is State.REQUEST:
            error = Refusal("request", f"a whole request within {self._seconds:g} s", "less", status=408)
            self._refuse(self._full or error)
        elif self._state is State.IDLE:
            if self._full is not None:
                self._refuse(self._full)
            else:
                self._transport.close()
        else:
            self._transport.abort()

    def _advance(self) -> None:
        """Take what there is of a request, and answer it once it is whole."""
        if self._state is not State.REQUEST:
            return
        try:
            body = self._whole()
        except Refusal as error:
            self._refuse(error)
            return
        if body is not None and self._head is not None and self._route is not None:
            self._state = State.ANSWER
            self._service.answer(self._route, self._head.request, body, self._answered)
        elif self._eof:
            self._refuse(malformed("the end of a request that is not whole"))
        elif self._head is not None and self._head.waits:
            self._transport.write(GO_ON)
            self._head = replace(self._head, waits=False)

    def _whole(self) -> bytes | None:
        """The body of the request, once all of it is there."""
        if self._head is None:
            head = self._incoming.head()
            if head is None:
                return None
            self._begin(head)
            self._head = head
        return self._incoming.body(self._head, self._service.limits.bytes)

    def _begin(self, head: Head) -> None:
        """See who answers a request, or refuse it for what its head says."""
        self._last = self._last or not head.keep
        self._head_only = head.request.method == "HEAD"
        self._route = route = self._service.find(head.request)
        if self._full is not None and not route.probe:
            raise self._full

    def _answered(self, response: Response) -> None:
        if self._state is State.ANSWER:  # otherwise the client has gone
            self._write(response)
            self._next()

    def _write(self, response: Response) -> None:
        start = opening(response.status, tuple(response.headers.items()), int(time()), self._last)
        body = b"" if self._head_only else response.body
        self._transport.write(b"%s%d\r\n\r\n%s" % (start, len(response.body), body))

    def _next(self) -> None:
        """Go on to the next request, once this answer is out."""
        if self._blocked:
            self._wait(State.READING, self._seconds)
            return
        self._head = self._route = None
        if self._last or (self._eof and not len(self._incoming)):
            self._transport.close()
            return
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if len(self._incoming):
            self._wait(State.REQUEST, self._seconds)
            self._loop.call_soon(self._advance)  # a client that sends many requests at once takes turns with others
        else:
            self._wait(State.IDLE, self._seconds)

    def _refuse(self, error: Refusal) -> None:
        """Say why a request gets no answer, and that it was the last, since what is left of it is not read."""
        self._service.counts.request("none" if self._route is None else self._route.name, error.status)
        self._last = True
        self._write(refused(error))
        self._wait(State.LINGERING, LINGER_SECONDS)
        self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._tick)
        if self._eof or not self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.write_eof()
