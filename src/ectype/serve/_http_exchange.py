"""A request and its answer on a connection: flow control, and how a response is written."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

    from ectype.serve._http_types import HttpResponse


@lru_cache(maxsize=4)
def _default_lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The headers of every answer, which change once a second."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)


def render_response(status: int, defaults: list[tuple[bytes, bytes]], lines: bytes, body: bytes, last: bool) -> bytes:
    """A response as bytes; the last one of a connection says that it is."""
    end = b"connection: close\r\n\r\n" if last else b"\r\n"
    return b"".join((STATUS_LINE[status], _default_lines(tuple(defaults)), lines, end, body))


def _nothing() -> None:
    """Do nothing at the end of an exchange that was answered."""


class PausableFlow(FlowControl):
    """Flow control that does not resume reading while received bytes wait to be parsed."""

    held = False

    def resume_reading(self) -> None:
        """Read on."""
        if not self.held:
            super().resume_reading()


class Exchange(RequestResponseCycle):
    """A request and its answer, which the service gives in one piece, and which is written at once."""

    start: Any = None

    async def send(self, message: ASGISendEvent) -> None:
        """Take the head of the answer, and with its body write both."""
        if self.start is None:
            self.start = message
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        self.response_started = self.response_complete = True
        if self.waiting_for_100_continue:  # nobody knows whether a body follows that was not asked for
            self.keep_alive = False
        lines = b"".join(b"%b: %b\r\n" % header for header in self.start["headers"])
        self._write(self.start["status"], lines, message["body"])  # type: ignore[typeddict-item]

    def finish(self, response: HttpResponse) -> None:
        """Write the answer to a request that came as a whole, once."""
        if not (self.disconnected or self.response_complete):
            self.response_started = self.response_complete = True
            self._write(response.status, response.lines(), response.body)

    def _write(self, status: int, lines: bytes, body: bytes) -> None:
        if self.scope["method"] == "HEAD":
            body = b""
        self.transport.write(render_response(status, self.default_headers, lines, body, not self.keep_alive))
        answered, self.on_response = self.on_response, _nothing  # the cycle of references ends with the request
        answered()
