"""The service: an ASGI application that answers for one model, and counts what it does."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TypeVar

import numpy as np

from understudy._version import __version__
from understudy.certificate.values import Certificate
from understudy.errors import UnderstudyError, UnderstudyWarning
from understudy.serve.asgi import Receive, Scope, Send
from understudy.serve.limits import Limits
from understudy.serve.messages import Refusal, Request, Response, document, refused
from understudy.serve.metrics import Metrics, label
from understudy.serve.model import Model
from understudy.serve.routes import Answer, Route, Routes
from understudy.serve.shadow import Shadow

LOG = logging.getLogger(__name__)
# Bodies of up to so many bytes are read, and up to so many rows predicted, on the event loop. Larger ones take longer
# than others should wait, and go to another thread.
SMALL_BYTES = 2**15
SMALL_ROWS = 16

A = TypeVar("A")
B = TypeVar("B")


class Service:
    """Answers HTTP requests about one model, by ASGI 3, for our own server or another. It belongs to one event loop.

    Of the limits, it keeps those on the bytes of a body and on the seconds to stop in; the server keeps the others.
    """

    def __init__(
        self,
        model: Model,
        certificate: Certificate | None = None,
        shadow: Shadow | None = None,
        limits: Limits | None = None,
    ):
        self.model, self.shadow, self.limits, self.ready = model, shadow, limits or Limits(), True
        self.metrics = Metrics(certificate, [] if shadow is None else shadow.families)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="understudy-predict")
        self._words = [label(name) for name in model.copy.classes.tolist()]
        self._routes = Routes(model.name, model.version, self._server_paths(), self._model_paths())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            response = await self._respond(scope, receive)
            if response is not None:
                await response.send(send)
        else:
            raise ValueError(f"scope: expected http or lifespan, found {scope['type']}")

    def count(self, route: str, status: int) -> None:
        """Count a request."""
        self.metrics.requests.labels(route, str(status)).inc()

    def close(self) -> None:
        """Stop its threads; a request that the shadow has under way gets the seconds of grace."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self.shadow is not None:
            self.shadow.stop(self.limits.grace)

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] == "lifespan.startup":
            # Levels that the space does not have are answered as the copy answers them; a warning for each would fill
            # a disk.
            warnings.simplefilter("ignore", UnderstudyWarning)
            await send({"type": "lifespan.startup.complete"})
        self.close()  # which may block the loop: by now no request is left on it
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, receive: Receive) -> Response | None:
        """The response to a request; None if the client is gone, or its server refuses it."""
        scope["route"] = "none"
        try:
            request = Request.of(scope)
            route = self._routes.find(request)
            scope["route"] = route.name
            body = await self._body(request, receive)
        except Refusal as error:
            self.count(scope["route"], error.status)
            return refused(error)
        return None if body is None else await self._answer(route, request, body)

    async def _body(self, request: Request, receive: Receive) -> bytes | None:
        """The whole body, refused as soon as it is known to be too long; None if it ends early."""
        most, declared = self.limits.bytes, int(request.headers.get("content-length", 0))
        if declared > most:
            raise _too_long(most, declared)
        read, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            read += message.get("body", b"")
            if len(read) > most:
                raise _too_long(most, "more")
            more = message.get("more_body", False)
        return bytes(read)

    async def _answer(self, route: Route, request: Request, body: bytes) -> Response:
        """The response to a whole request; whatever goes wrong, there is one."""
        self.metrics.in_flight.inc()
        try:
            response = await route.answer(request, body)
        except UnderstudyError as error:
            response = refused(error)
        except Exception:
            LOG.exception("a request to %s failed", route.name)
            self.metrics.failures.inc()
            response = document({"error": "the server failed; its log says how"}, 500)
        finally:
            self.metrics.in_flight.dec()
        self.count(route.name, response.status)
        return response

    def _server_paths(self) -> dict[str, Route]:
        about = {"name": "understudy", "version": __version__, "extensions": []}
        paths = {
            "/v2": Route("server", "GET", _always(about)),
            "/v2/health/live": Route("live", "GET", _always({"live": True})),
            "/v2/health/ready": Route("ready", "GET", self._is_ready),
            "/metrics": Route("metrics", "GET", self._metrics),
        }
        if self.shadow is not None:
            paths["/shadow"] = Route("shadow", "GET", self._summary)
        return paths

    def _model_paths(self) -> dict[str, Route]:
        return {
            "": Route("model", "GET", _always(self.model.metadata())),
            "/ready": Route("model_ready", "GET", self._is_ready),
            "/infer": Route("infer", "POST", self._infer),
        }

    async def _infer(self, _: Request, body: bytes) -> Response:
        clock = perf_counter()
        question = await self._do(self.model.question, body, len(body) > SMALL_BYTES)
        answer = await self._do(self.model.answer, question, len(question.rows) > SMALL_ROWS)
        if self.shadow is not None:
            self.shadow.offer(question.rows, answer.codes)
        self.metrics.rows.inc(len(answer.codes))
        counts = np.bincount(answer.codes, minlength=len(self._words)).tolist()
        for word, rows in zip(self._words, counts, strict=True):
            if rows:
                self.metrics.answers.labels(word).inc(rows)
        self.metrics.seconds.observe(perf_counter() - clock)
        return Response(200, answer.body)

    async def _do(self, work: Callable[[A], B], what: A, large: bool) -> B:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, what) if large else work(what)

    async def _is_ready(self, *_: object) -> Response:
        return document({"name": self.model.name, "ready": self.ready}, 200 if self.ready else 503)

    async def _metrics(self, request: Request, _: bytes) -> Response:
        accepted = (request.headers.get(name, "") for name in ("accept", "accept-encoding"))
        return Response(200, *self.metrics.exposition(*accepted))

    async def _summary(self, *_: object) -> Response:
        return document(None if self.shadow is None else self.shadow.summary())


def _always(content: object) -> Answer:
    response = document(content)

    async def answer(*_: object) -> Response:
        return response

    return answer


def _too_long(most: int, found: int | str) -> Refusal:
    return Refusal("body", f"at most {most} bytes", found, "ask about fewer rows at once", status=413)
