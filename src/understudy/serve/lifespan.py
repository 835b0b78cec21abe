"""The lifespan of an ASGI application: it is told when its server starts and when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from understudy.serve.asgi import VERSIONS, Application, Message


@asynccontextmanager
async def lifespan(app: Application) -> AsyncIterator[None]:
    """Let an application start, and stop at the end; each time, wait until it says that it has."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message] = asyncio.Queue()

    async def live() -> None:
        await app({"type": "lifespan", "asgi": VERSIONS}, told.get, heard.put)

    async def tell(event: str) -> None:
        told.put_nowait({"type": f"lifespan.{event}"})
        hearing = asyncio.ensure_future(heard.get())
        await asyncio.wait((living, hearing), return_when=asyncio.FIRST_COMPLETED)
        if not hearing.done():  # it ended without a word, so its error is the reason
            hearing.cancel()
            await living

    living = asyncio.ensure_future(live())
    await tell("startup")
    try:
        yield
    finally:
        await tell("shutdown")
        await living
