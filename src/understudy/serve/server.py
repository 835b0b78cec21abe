"""The server: accepts connections up to a number, and stops when it is told to, once what is under way is answered."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import SettingError
from understudy.serve.connection import Connection, Limits
from understudy.serve.messages import Refusal
from understudy.serve.routes import Service

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

    def __init__(self, service: Service, limits: Limits, most_connections: int = 256):
        self._service, self._limits, self._most = service, limits, most_connections
        self._open: dict[asyncio.Task[None], Connection] = {}

    async def start(self, address: Address) -> Address:
        """Listen; the address that was bound."""
        try:
            self._server = await asyncio.start_server(self._accept, address.host, address.port, backlog=self._most)
        except (OSError, OverflowError, UnicodeError) as error:
            hint = "choose another with --port, or any that is free with --port 0"
            raise SettingError("--host and --port", "an address to listen on", f"{address}: {error}", hint) from error
        return Address(address.host, self._server.sockets[0].getsockname()[1])

    async def stop(self, seconds: float) -> None:
        """Accept nobody any more, end who is idle, and give the others so many seconds for what is under way."""
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
        connection = Connection(reader, writer, self._service, self._limits)
        task = asyncio.current_task()
        assert task is not None
        full = len(self._open) >= self._most
        self._open[task] = connection
        try:
            if full:
                hint = "come back when others have left"
                await connection.refuse(Refusal("connections", f"at most {self._most}", "one more", hint, status=503))
            else:
                await connection.run()
        except asyncio.CancelledError:  # by `stop`, which waits for this to end
            pass
        except Exception:
            LOG.exception("a connection failed")
            self._service.failures.add()
        finally:
            del self._open[task]


async def serve(
    service: Service,
    address: Address,
    limits: Limits,
    *,
    most_connections: int,
    grace: float,
    started: Callable[[Address], None],
) -> signal.Signals:
    """Serve until SIGINT or SIGTERM, which is returned; a second one does not wait for anybody."""
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[signal.Signals] = asyncio.Queue()
    server = Server(service, limits, most_connections)
    bound = await server.start(address)
    for number in STOPS:
        loop.add_signal_handler(number, told.put_nowait, number)
    started(bound)
    first = await told.get()
    stopping = asyncio.ensure_future(server.stop(grace))
    hurried = asyncio.ensure_future(told.get())
    await asyncio.wait((stopping, hurried), return_when=asyncio.FIRST_COMPLETED)
    if not stopping.done():
        await server.stop(0)
    await stopping
    hurried.cancel()
    return first
