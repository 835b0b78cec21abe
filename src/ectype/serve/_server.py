"""Uvicorn as the server of one service: listening, start and graceful stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import multiprocessing
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn

from ectype.errors import SettingError
from ectype.serve._http_protocol import LimitedHttpProtocol
from ectype.serve._settings import Address, ServeSettings

if TYPE_CHECKING:
    from ectype.serve._app import Service
    from ectype.serve._grpc_server import GrpcServer

LOG = logging.getLogger(__name__)

# What is said when the system has no more descriptors or memory for connections, and how seldom.
EXHAUSTED, QUIET_SECONDS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM), 60.0
# The most connections that wait to be accepted, and how long a client may take to agree on encryption.
BACKLOG, HANDSHAKE_SECONDS = 1024, 10.0


Started = Callable[[Address, int | None], None]
"""Called once the service accepts requests, with its address and the port for gRPC."""


def bind_socket(
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


class _Quiet:
    """Handles what an event loop cannot: one line a minute where clients have taken all descriptors.

    asyncio's own loop says that for every connection that waits, every second.
    """

    def __init__(self) -> None:
        self._again = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in EXHAUSTED):
            loop.default_exception_handler(context)
        elif loop.time() >= self._again:
            self._again = loop.time() + QUIET_SECONDS
            LOG.warning("no further connection can be accepted: %s", error)


class UvicornConfig(uvicorn.Config):
    """Uvicorn's configuration for a service, or for a function that makes one in the serving process."""

    def __init__(self, app: Callable[..., Any], settings: ServeSettings, **others: Any):
        tls = settings.tls_context()
        super().__init__(
            app,
            http=LimitedHttpProtocol,
            ws="none",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            log_level=logging.CRITICAL,  # what fails is in the service's own log, and clients cannot fill a disk
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            ssl_context_factory=None if tls is None else lambda *_: tls,
            **others,
        )
        self.settings = settings


class Server(uvicorn.Server):
    """Serves until a signal, at which the service is not ready first, and requests under way are answered."""

    config: UvicornConfig

    def __init__(self, config: UvicornConfig, started: Started | None = None):
        super().__init__(config)
        self._tell = started
        self.stopped_by: signal.Signals | None = None
        self._hurried = asyncio.Event()
        self._grpc: GrpcServer | None = None

    @property
    def service(self) -> Service:
        """The application."""
        return self.config.loaded_app

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, on an event loop that uvicorn chooses."""
        from threadpoolctl import threadpool_limits

        # One thread for products of matrices: those of a request are small, and threads that wait for each other spin.
        # What an original prints is no part of ours.
        with threadpool_limits(1), redirect_stdout(sys.stderr):
            super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell that the service can be asked."""
        assert sockets is not None
        await self.lifespan.startup()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_Quiet())
        settings = self.config.settings
        self.servers = []
        try:
            grpc_port = await self._start_grpc()
            create = partial(LimitedHttpProtocol, self.config, self.server_state, self.lifespan.state)
            tls: Any = {} if self.config.ssl is None else {"ssl": self.config.ssl}
            if tls:
                tls["ssl_handshake_timeout"] = min(HANDSHAKE_SECONDS, settings.client_timeout)
            for listening in sockets:
                self.servers.append(await self._loop.create_server(create, sock=listening, backlog=BACKLOG, **tls))
        except BaseException:
            await self.lifespan.shutdown()
            raise
        if (parent := multiprocessing.parent_process()) is not None:
            self._loop.add_reader(parent.sentinel, self._orphaned, parent.sentinel)
        self.started = True
        if self._tell is not None:
            scheme = "https" if tls else "http"
            self._tell(Address(settings.host, sockets[0].getsockname()[1], scheme), grpc_port)

    async def _start_grpc(self) -> int | None:
        settings = self.config.settings
        if settings.grpc_port is None:
            return None
        from ectype.serve._grpc_server import GrpcServer

        self._grpc = GrpcServer(self.service, settings, shared=self.config.workers > 1)
        await self._grpc.start()
        self.servers.append(self._grpc)  # type: ignore[arg-type]  # it is closed, and waited for, like the others
        return self._grpc.port

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that the service is not ready; later accept no more; and give requests under way the grace to end."""
        self.service.ready = False
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.settings.drain):
                await self._hurried.wait()
        ending = asyncio.ensure_future(self._end_grace())
        await super().shutdown(sockets)
        ending.cancel()

    async def _end_grace(self) -> None:
        """Let clients go once the grace is over, whatever is under way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.settings.grace):
                await self._hurried.wait()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in self.server_state.tasks:
            task.cancel()
        if self._grpc is not None:
            await self._grpc.stop(0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a first signal, and at a second one do not wait for anybody."""
        if self.stopped_by is None:
            self.stopped_by, self.should_exit = signal.Signals(sig), True
        elif self.started:
            self._loop.call_soon_threadsafe(self._hurried.set)

    def _orphaned(self, sentinel: int) -> None:
        self._loop.remove_reader(sentinel)
        self.handle_exit(signal.SIGTERM, None)
