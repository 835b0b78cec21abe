"""Our own HTTP server: accepts connections up to a number, and stops when told to, once requests are answered."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from understudy.errors import SettingError
from understudy.serve.app import Service
from understudy.serve.connection import Connection
from understudy.serve.lifespan import lifespan
from understudy.serve.limits import Limits
from understudy.serve.messages import Refusal

LOG = logging.getLogger(__name__)
STOPS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 is any that is free."""

    host: str = "127.0.0.1"
    port: int = 8080

    def __str__(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Server:
    """Connections to one service."""

    def __init__(self, service: Service, limits: Limits):
        self._service, self._limits = service, limits
        self._open: dict[asyncio.Task[None], Connection] = {}

    async def start(self, address: Address) -> Address:
        """Listen; the address that was bound."""
        backlog = self._limits.connections
        try:
            self._server = await asyncio.start_server(self._accept, address.host, address.port, backlog=backlog)
        except (OSError, OverflowError, UnicodeError) as error:
            hint = "choose another with --port, or any that is free with --port 0"
            raise SettingError("--host and --port", "an address to listen on", f"{address}: {error}", hint) from error
        return Address(address.host, self._server.sockets[0].getsockname()[1])

    async def stop(self, seconds: float) -> None:
        """Accept no more connections, close idle ones, and give the others so many seconds for their requests."""
        self._server.close()
        self._service.ready = False
        for task, connection in self._open.items():
            connection.last = True
            if connection.idle:
                task.cancel()
        if self._open:
            _, late = await asyncio.wait(self._open, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, self._service, self._limits.seconds)
        task = asyncio.current_task()
        assert task is not None
        full = len(self._open) >= self._limits.connections
        self._open[task] = connection
        try:
            await (connection.refuse(_full(self._limits.connections)) if full else connection.run())
        except asyncio.CancelledError:  # by `stop`, which waits for this to end
            pass
        except Exception:
            LOG.exception("a connection failed")
            self._service.metrics.failures.inc()
        finally:
            del self._open[task]


async def serve(
    service: Service, address: Address, limits: Limits, started: Callable[[Address], None]
) -> signal.Signals:
    """Serve until SIGINT or SIGTERM, which is returned; a second one does not wait for anybody."""
    async with lifespan(service):
        server = Server(service, limits)
        bound = await server.start(address)
        with _signals() as told:
            started(bound)
            first = await told.get()
            await _stopped(server, limits.grace, told)
        return first


async def _stopped(server: Server, grace: float, told: asyncio.Queue[signal.Signals]) -> None:
    stopping = asyncio.ensure_future(server.stop(grace))
    hurried = asyncio.ensure_future(told.get())
    await asyncio.wait((stopping, hurried), return_when=asyncio.FIRST_COMPLETED)
    if not stopping.done():
        await server.stop(0)
    await stopping
    hurried.cancel()


@contextmanager
def _signals() -> Iterator[asyncio.Queue[signal.Signals]]:
    """Signals to stop, as they come; at the end, they act as they did before."""
    loop, told = asyncio.get_running_loop(), asyncio.Queue[signal.Signals]()
    for number in STOPS:
        loop.add_signal_handler(number, told.put_nowait, number)
    try:
        yield told
    finally:
        for number in STOPS:
            loop.remove_signal_handler(number)


def _full(most: int) -> Refusal:
    return Refusal("connections", f"at most {most}", "one more", "come back when others have left", status=503)
