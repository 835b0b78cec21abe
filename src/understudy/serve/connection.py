"""One client's connection: HTTP/1.1 as h11 reads it, with limits to what is read and how long that may take."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate

import h11

from understudy.serve.messages import Refusal, Request, Response, refused
from understudy.serve.routes import Service

CHUNK = 2**16
# The most bytes of a request's line and headers.
MOST_HEAD = 2**14
# How long, and up to how many bytes, a refused body is thrown away: a client that still sends would not see the reason.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**24


@dataclass(frozen=True)
class Limits:
    """What one client may take: bytes of a body, and seconds to send a request, to read an answer, or to be idle."""

    most_bytes: int = 4 * 2**20
    seconds: float = 30.0


class Connection:
    """Answers one client, request by request, until either side has enough."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service, limits: Limits):
        self._reader, self._writer, self._service, self._limits = reader, writer, service, limits
        self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
        self.idle, self.last = True, False
        writer.transport.set_write_buffer_limits(high=0)  # so that an answer is out once it is drained

    async def run(self) -> None:
        """Serve the client to the end; a client that vanishes is no error."""
        try:
            while await self._arrives() and await self._serve_one():
                self._wire.start_next_cycle()
            await self._linger()
        except (OSError, TimeoutError):  # gone, or does not take its answer
            self._writer.transport.abort()
        finally:
            self._writer.close()

    async def refuse(self, error: Refusal) -> None:
        """Answer with a refusal whatever is asked, and end."""
        self._service.count("none", error.status)
        self.last = True
        try:
            await self._send(refused(error), head=False)
            await self._linger()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
        finally:
            self._writer.close()

    async def _arrives(self) -> bool:
        """Wait for the first bytes of a request; False if there will be none."""
        if self.last:
            return False
        if self._wire.trailing_data[0]:
            return True
        self.idle = True
        try:
            async with asyncio.timeout(self._limits.seconds):
                data = await self._reader.read(CHUNK)
        except TimeoutError:
            return False
        self.idle = False
        self._wire.receive_data(data)
        return bool(data)

    async def _serve_one(self) -> bool:
        """Read a request and answer it; whether another may follow."""
        route, head, name = None, False, "none"
        try:
            async with asyncio.timeout(self._limits.seconds):
                request = await self._head()
                head = request.method == "HEAD"
                route = self._service.route(request)
                name = route.name
                body = await self._body(request)
        except Refusal as error:
            response = refused(error)
        except TimeoutError:
            seconds = f"a whole request within {self._limits.seconds:g} s"
            response = refused(Refusal("request", seconds, "less", status=408))
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint if 400 <= error.error_status_hint < 500 else 400
            response = refused(Refusal("request", "HTTP/1.1", str(error)[:100], status=status))
        else:
            response = await self._service.answer(route, body)
            await self._send(response, head)
            return self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE
        self._service.count(name, response.status)
        self.last = True
        await self._send(response, head)
        return False

    async def _head(self) -> Request:
        event = await self._event()
        if not isinstance(event, h11.Request):
            raise h11.RemoteProtocolError("no request")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
        path = event.target.decode("ascii").partition("?")[0]
        return Request(event.method.decode("ascii"), path, headers)

    async def _body(self, request: Request) -> bytes:
        """The whole body, refused as soon as it is known to be too long."""
        most = self._limits.most_bytes
        if int(request.headers.get("content-length", 0)) > most:
            raise _too_long(most, request.headers["content-length"][:30])
        if self._wire.they_are_waiting_for_100_continue:
            go_on = self._wire.send(h11.InformationalResponse(status_code=100, headers=[]))
            self._writer.write(go_on or b"")
        read = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            read += event.data
            if len(read) > most:
                raise _too_long(most, "more")
        if not isinstance(event, h11.EndOfMessage):
            raise h11.RemoteProtocolError("no end of the body")
        return bytes(read)

    async def _event(self) -> object:
        while (event := self._wire.next_event()) is h11.NEED_DATA:
            self._wire.receive_data(await self._reader.read(CHUNK))
        return event

    async def _send(self, response: Response, head: bool) -> None:
        if self._wire.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            *response.headers.items(),
            *([("Connection", "close")] if self.last else []),
        ]
        parts = [self._wire.send(h11.Response(status_code=response.status, headers=headers))]
        if not head:
            parts.append(self._wire.send(h11.Data(data=response.body)))
        parts.append(self._wire.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        async with asyncio.timeout(self._limits.seconds):
            await self._writer.drain()

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


def _too_long(most: int, found: str) -> Refusal:
    return Refusal("body", f"at most {most} bytes", found, "ask about fewer rows at once", status=413)
