"""An HTTP client with a deadline for every request."""

from __future__ import annotations

import asyncio
import ssl
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from typing import NamedTuple, TypeAlias

import httpx2

# The most bytes of an answer, and of one that is only quoted in an error.
MOST_BYTES = 64 * 2**20
MOST_QUOTED_BYTES = 2**16


class Reply(NamedTuple):
    """An HTTP reply: status, headers, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TooLargeError(Exception):
    """An answer of more bytes than are read."""


Signed: TypeAlias = Callable[[str, str, bytes], Mapping[str, str]]
"""From the method, URL and body of a request to headers that sign it."""

Switch: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Event]
"""An event loop, and the function that ends it."""


class Client:
    """An HTTP client in an event loop on a thread of its own; any thread may send.

    A time-out of single reads does not end a request whose answer drips. Cancelling it does, wherever it is stuck, and
    that takes an event loop. httpx2 reads proxies and certificates from the environment, but no .netrc.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        timeout: float,
        tls: ssl.SSLContext,
        signed: Signed | None = None,
    ):
        # Connecting is two steps of this limit, so that the deadline does not fall between them: httpx2 would leave the
        # socket of a half-made TLS connection open.
        times = httpx2.Timeout(timeout, connect=timeout / 2)
        many = httpx2.Limits(max_connections=None, max_keepalive_connections=None)  # who calls here is counted
        client = httpx2.AsyncClient(
            headers=dict(headers), timeout=times, limits=many, follow_redirects=False, verify=tls
        )
        ready: Future[Switch] = Future()
        thread = threading.Thread(target=_run, args=(client, ready), name="ectype-http", daemon=True)
        thread.start()
        self._client, self._timeout, self._signed = client, timeout, signed
        self._loop, stop = ready.result()
        weakref.finalize(self, _close, self._loop, stop, thread)

    def send(self, method: str, url: str, body: bytes) -> Reply:
        """Send a body, with GET as the query of the URL, and wait for the reply, up to the deadline."""
        if method == "GET" and body:
            url, body = f"{url}{'&' if '?' in url else '?'}{body.decode()}", b""
        signature = {} if self._signed is None else dict(self._signed(method, url, body))
        request = self._client.build_request(method, url, content=body or None, headers=signature)
        sent = _send(self._client, request, self._timeout)
        return asyncio.run_coroutine_threadsafe(sent, self._loop).result()


def _run(client: httpx2.AsyncClient, ready: Future[Switch]) -> None:
    try:
        asyncio.run(_keep(client, ready))
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _keep(client: httpx2.AsyncClient, ready: Future[Switch]) -> None:
    stop = asyncio.Event()
    async with client:
        ready.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()


def _close(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(stop.set)
    if threading.current_thread() is not thread:  # whose garbage collection may be what calls this
        thread.join(timeout=2)


async def _send(client: httpx2.AsyncClient, request: httpx2.Request, timeout: float) -> Reply:
    async with asyncio.timeout(timeout), aclosing(await client.send(request, stream=True)) as response:
        read = bytearray()
        async for chunk in response.aiter_bytes():
            read += chunk
            if not response.is_success and len(read) > MOST_QUOTED_BYTES:
                break
            if len(read) > MOST_BYTES:
                raise TooLargeError(f"an answer of more than {MOST_BYTES} bytes")
        return Reply(response.status_code, response.headers, bytes(read))
