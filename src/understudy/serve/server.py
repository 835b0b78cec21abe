"""Our own HTTP server: accepts connections up to a number, and stops when told to, once requests are answered."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import SettingError
from understudy.serve import deafness
from understudy.serve.app import Service
from understudy.serve.connection import Connection
from understudy.serve.lifespan import lifespan
from understudy.serve.limits import Limits
from understudy.serve.messages import Refusal

if TYPE_CHECKING:
    from understudy.serve.grpc_front import GrpcFront

STOPS = (signal.SIGINT, signal.SIGTERM)
# Connections beyond the most, which are for probes, and the seconds for one; and the most that wait to be accepted.
SPARE, SPARE_SECONDS = 16, 2.0
BACKLOG = 1024
# How long connections that have begun may take until they can be accepted, once no more begin.
SETTLING_SECONDS = 0.05
# How long a client may take to agree on encryption.
HANDSHAKE_SECONDS = 10.0


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 is any that is free."""

    host: str = "127.0.0.1"
    port: int = 8080
    scheme: str = "http"

    def __str__(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def bound(
    address: Address, shared: bool = False, listens: bool = True, option: str = "--host and --port"
) -> socket.socket:
    """A socket that listens at this address; of a shared one, several processes may have one each."""
    try:
        (family, kind, proto, _, where), *_ = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        found = socket.socket(family, kind, proto)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            found.bind(where)
            if listens:
                found.listen(BACKLOG)
            found.setblocking(False)
        except BaseException:
            found.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        hint = "choose another with --port, or any that is free with --port 0"
        raise SettingError(option, "an address to listen on", f"{address}: {error}", hint) from error
    return found


class Server:
    """Connections to one service."""

    def __init__(self, service: Service, limits: Limits, tls: ssl.SSLContext | None = None):
        self._service, self._limits, self._tls = service, limits, tls
        self._open: set[Connection] = set()
        self._empty = asyncio.Event()
        self._full = Refusal(
            "connections", f"at most {limits.connections}", "one more", "come back when others have left", status=503
        )

    async def start(self, address: Address, listening: socket.socket | None = None) -> Address:
        """Listen; the address that was bound."""
        self._listening = listening or bound(address)
        handshake = min(HANDSHAKE_SECONDS, self._limits.seconds) if self._tls else None
        self._server = await asyncio.get_running_loop().create_server(
            self._connection, sock=self._listening, ssl=self._tls, ssl_handshake_timeout=handshake, backlog=BACKLOG
        )
        return Address(address.host, self._listening.getsockname()[1], "https" if self._tls else "http")

    async def drain(self, seconds: float) -> None:
        """Go on answering, but say that the service is not ready, so that nobody is sent here any more."""
        self._service.ready = False
        if seconds:
            await asyncio.sleep(seconds)

    async def stop(self, seconds: float) -> None:
        """Accept no more connections, close idle ones, and give the others so many seconds for their requests."""
        self._service.ready = False
        await self._close()
        for connection in list(self._open):
            connection.finish()
        if self._open:
            try:
                async with asyncio.timeout(seconds):
                    await self.gone()
            except TimeoutError:
                for connection in list(self._open):
                    connection.abort()
                await self.gone()

    async def gone(self) -> None:
        """Wait until no client is connected."""
        while self._open:
            self._empty.clear()
            await self._empty.wait()

    async def _close(self) -> None:
        """Listen no more; clients that have a connection already are heard, since their requests are on their way."""
        loop = asyncio.get_running_loop()
        if self._server.is_serving():
            deafness.deafen(self._listening)
            await asyncio.sleep(SETTLING_SECONDS)
            loop.remove_reader(self._listening)
            while (waiting := deafness.accepted(self._listening)) is not None:
                await loop.connect_accepted_socket(self._connection, waiting, ssl=self._tls)
            deafness.close(self._listening)
        self._server.close()

    def arrived(self, connection: Connection) -> tuple[float, Refusal | None]:
        """How many seconds a client has, and the reason if it may only send a probe."""
        before = len(self._open)
        self._open.add(connection)
        if before < self._limits.connections:
            return self._limits.seconds, None
        spare = before < self._limits.connections + SPARE
        return min(self._limits.seconds, SPARE_SECONDS) if spare else 0.0, self._full

    def left(self, connection: Connection) -> None:
        """A client is gone."""
        self._open.discard(connection)
        if not self._open:
            self._empty.set()

    def _connection(self) -> Connection:
        return Connection(self._service, self)


@dataclass(frozen=True)
class Fronts:
    """Where a service is reached: its address, a port for gRPC, and the files of a certificate and its key for TLS."""

    address: Address
    grpc_port: int | None = None
    tls: tuple[Path, Path] | None = None

    def __post_init__(self) -> None:
        self.context()  # so that files that are no certificate are found out at once

    def context(self) -> ssl.SSLContext | None:
        """What the certificate and its key are to a server."""
        if self.tls is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate, key = self.tls
        try:
            context.load_cert_chain(certificate, key, password=lambda: "")  # or it would ask on the terminal
        except (OSError, ssl.SSLError) as error:
            expected = "PEM files of a certificate and its key, which has no password"
            raise SettingError("--tls-cert and --tls-key", expected, str(error)) from error
        return context


Started = Callable[[Address, int | None], None]


async def serve(
    service: Service,
    fronts: Fronts,
    limits: Limits,
    started: Started,
    listening: socket.socket | None = None,
    alive: int | None = None,
) -> signal.Signals:
    """Serve until SIGINT or SIGTERM, which is returned; a second one does not wait for anybody.

    `alive` is the end of a pipe: that the other end is closed counts as SIGTERM.
    """
    async with lifespan(service):
        server = Server(service, limits, fronts.context())
        grpc = await _grpc(service, fronts, limits, shared=listening is not None)
        with _signals(alive) as told:
            started(await server.start(fronts.address, listening), None if grpc is None else grpc.port)
            first = await told.get()
            await _stopped(server, grpc, limits, told)
        return first


async def _grpc(service: Service, fronts: Fronts, limits: Limits, shared: bool) -> GrpcFront | None:
    if fronts.grpc_port is None:
        return None
    from understudy.serve.grpc_front import GrpcFront

    front = GrpcFront(service, limits, shared)
    await front.start(fronts.address.host, fronts.grpc_port, fronts.tls)
    return front


async def _stopped(server: Server, grpc: GrpcFront | None, limits: Limits, told: asyncio.Queue[signal.Signals]) -> None:
    async def ended(seconds: float) -> None:
        await asyncio.gather(server.stop(seconds), *([] if grpc is None else [grpc.stop(seconds)]))

    async def in_peace() -> None:
        await server.drain(limits.drain)
        await ended(limits.grace)

    stopping = asyncio.ensure_future(in_peace())
    hurried = asyncio.ensure_future(told.get())
    await asyncio.wait((stopping, hurried), return_when=asyncio.FIRST_COMPLETED)
    if not stopping.done():
        stopping.cancel()
        await ended(0)
    await asyncio.gather(stopping, return_exceptions=True)
    hurried.cancel()


@contextmanager
def _signals(alive: int | None) -> Iterator[asyncio.Queue[signal.Signals]]:
    """Signals to stop, as they come; at the end, they act as they did before."""
    loop, told = asyncio.get_running_loop(), asyncio.Queue[signal.Signals]()

    def orphaned() -> None:
        loop.remove_reader(alive or 0)
        told.put_nowait(signal.SIGTERM)

    if alive is not None:
        loop.add_reader(alive, orphaned)
    for number in STOPS:
        loop.add_signal_handler(number, told.put_nowait, number)
    try:
        yield told
    finally:
        for number in STOPS:
            loop.remove_signal_handler(number)
        if alive is not None:
            loop.remove_reader(alive)
