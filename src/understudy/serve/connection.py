"""One client's connection: HTTP/1.1 as h11 reads it, handed to the service by ASGI, with limits on size and time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from time import time
from urllib.parse import unquote

import h11

from understudy.serve.app import Service
from understudy.serve.asgi import VERSIONS, Message, Scope
from understudy.serve.messages import Refusal, refused

CHUNK = 2**16
# The most bytes of a request's line and headers.
MOST_HEAD = 2**14
# How long, and up to how many bytes, a refused body is thrown away: a client that still sends would not see the reason.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**24
# The states of h11 in which the end of a request has not been read.
UNREAD = (h11.IDLE, h11.SEND_BODY, h11.ERROR)
GONE: Message = {"type": "http.disconnect"}


class Connection:
    """Answers one client, request by request, until either side closes.

    A client has `seconds` for a whole request, however slowly it drips, as long to read the answer, and as long until
    the next request.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service, seconds: float
    ) -> None:
        self._reader, self._writer, self._service, self._seconds = reader, writer, service, seconds
        self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
        self._start: Message | None = None
        self._headers_only = False
        self._refusal: Refusal | None = None
        self._deadline = 0.0
        self.idle, self.last = True, False
        writer.transport.set_write_buffer_limits(high=0)  # so that an answer is out once it is drained

    async def run(self) -> None:
        """Serve the client to the end; a client that vanishes is no error."""
        try:
            while await self._arrives() and await self._exchange():
                self._wire.start_next_cycle()
            await self._linger()
        except OSError:  # gone, or does not take its answer in time
            self._writer.transport.abort()
        finally:
            self._writer.close()

    async def refuse(self, error: Refusal) -> None:
        """Answer with a refusal whatever is asked, and end."""
        try:
            await self._refuse(error, "none")
            await self._linger()
        except OSError:
            self._writer.transport.abort()
        finally:
            self._writer.close()

    async def _arrives(self) -> bool:
        """Wait for the first bytes of a request; False if there will be none."""
        if self.last:
            return False
        if self._wire.trailing_data[0]:
            await asyncio.sleep(0)  # a client that sends many requests at once takes turns with the others
            return True
        self.idle = True
        try:
            async with asyncio.timeout(self._seconds):
                data = await self._reader.read(CHUNK)
        except TimeoutError:
            return False
        self.idle = False
        self._wire.receive_data(data)
        return bool(data)

    async def _exchange(self) -> bool:
        """Let the service answer a request; whether another may follow."""
        self._deadline = asyncio.get_running_loop().time() + self._seconds
        scope: Scope = {"type": "http"}
        event = await self._event()
        if isinstance(event, h11.Request):
            scope, self._headers_only = _scope(event), event.method == b"HEAD"
            await self._service(scope, self._receive, self._send)
        elif self._refusal is None:
            self._refusal = _malformed("no request")
        if self._refusal is not None:
            await self._refuse(self._refusal, scope.get("route", "none"))
        elif self._wire.our_state not in (h11.DONE, h11.MUST_CLOSE):
            raise RuntimeError("the service did not answer")
        return self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE

    async def _event(self) -> object:
        """The next part of a request; None if there is a reason to refuse it, which is kept."""
        try:
            while (event := self._wire.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout_at(self._deadline):
                    self._wire.receive_data(await self._reader.read(CHUNK))
            return event
        except TimeoutError:
            self._refusal = Refusal("request", f"a whole request within {self._seconds:g} s", "less", status=408)
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint if 400 <= error.error_status_hint < 500 else 400
            self._refusal = _malformed(str(error)[:100], status)
        return None

    async def _receive(self) -> Message:
        """ASGI: a part of the body; that the client is gone, once no more will come or the request is refused."""
        if self._wire.they_are_waiting_for_100_continue:
            go_on = self._wire.send(h11.InformationalResponse(status_code=100, headers=[]))
            self._writer.write(go_on or b"")
        event = await self._event()
        if isinstance(event, h11.Data):
            return {"type": "http.request", "body": bytes(event.data), "more_body": True}
        return {"type": "http.request"} if isinstance(event, h11.EndOfMessage) else GONE

    async def _send(self, message: Message) -> None:
        """ASGI: the head of an answer, or a part of its body."""
        if message["type"] == "http.response.start":
            self._start = message  # it goes out with the body, in one packet
            return
        parts = []
        if self._start is not None:
            parts.append(self._wire.send(self._head(self._start)))
            self._start = None
        if message.get("body") and not self._headers_only:
            parts.append(self._wire.send(h11.Data(data=message["body"])))
        if not message.get("more_body", False):
            parts.append(self._wire.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        if self._writer.transport.get_write_buffer_size():
            async with asyncio.timeout(self._seconds):
                await self._writer.drain()

    def _head(self, start: Message) -> h11.Response:
        # If the request was not read to its end, the rest of it is thrown away, and no other can follow.
        self.last = self.last or self._wire.their_state in UNREAD
        close = [(b"connection", b"close")] if self.last else []
        headers = [(b"date", _date(int(time()))), *start.get("headers", ()), *close]
        return h11.Response(status_code=start["status"], headers=headers)

    async def _refuse(self, error: Refusal, route: str) -> None:
        """Say why a request gets no answer, and that it was the last."""
        self._service.count(route, error.status)
        self.last = True
        if self._wire.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await refused(error).send(self._send)

    async def _linger(self) -> None:
        """Throw away what a refused client still sends, for a moment, so that it gets to read why."""
        if not self.last or self._reader.at_eof() or not self._writer.can_write_eof():
            return
        self._writer.write_eof()
        read = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while read < LINGER_BYTES and (data := await self._reader.read(CHUNK)):
                    read += len(data)


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


def _scope(request: h11.Request) -> Scope:
    raw, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "asgi": VERSIONS,
        "http_version": request.http_version.decode("ascii"),
        "method": request.method.decode("ascii"),
        "scheme": "http",
        "path": unquote(raw.decode("ascii")),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
    }


def _malformed(found: str, status: int = 400) -> Refusal:
    return Refusal("request", "HTTP/1.1", found, status=status)
