"""What is answered where: the paths of the Open Inference Protocol V2, /metrics and /shadow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np

from understudy._version import __version__
from understudy.certificate.values import Certificate
from understudy.errors import UnderstudyError
from understudy.serve.counters import CONTENT_TYPE, Counter, Family, Gauge, Histogram, exposition, resident_bytes
from understudy.serve.messages import JSON, Refusal, Request, Response, document, refused
from understudy.serve.model import Model
from understudy.serve.shadow import Shadow

LOG = logging.getLogger(__name__)
# Up to so many bytes are read, and so many rows predicted, at once; above, on another thread, so that others are
# answered meanwhile.
SMALL_BYTES = 2**15
SMALL_ROWS = 16

T = TypeVar("T")


@dataclass(frozen=True)
class Route:
    """A path that exists: the name it is counted under, its method, and what answers it."""

    name: str
    method: str
    answer: Callable[[bytes], Awaitable[Response]]


class Service:
    """Answers requests about one model, and counts them. It belongs to one event loop."""

    def __init__(self, model: Model, certificate: Certificate | None = None, shadow: Shadow | None = None):
        self.model, self.shadow, self.ready, self._in_flight = model, shadow, True, 0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="understudy-predict")
        self.requests = Counter("understudy_requests_total", "Requests.", "route", "status")
        self.rows = Counter("understudy_rows_total", "Rows answered.")
        self.answers = Counter("understudy_answers_total", "Rows answered, by the copy's label.", "label")
        self.failures = Counter("understudy_failures_total", "Requests that failed by a fault of the server's.")
        self.seconds = Histogram("understudy_infer_seconds", "Seconds from a whole request to its answer.")
        counted: list[Family] = [self.requests, self.rows, self.answers, self.failures, self.seconds]
        self._families = [
            *counted,
            Gauge("understudy_requests_in_flight", "Requests under way.", lambda: self._in_flight),
            Gauge("process_resident_memory_bytes", "Resident memory.", resident_bytes),
            Gauge("process_cpu_seconds_total", "Processor time used.", process_time, "counter"),
            *_proof(certificate),
            *([] if shadow is None else shadow.families),
        ]
        self._words = [str(label) for label in model.copy.classes.tolist()]
        about = {"name": "understudy", "version": __version__, "extensions": []}
        self._routes = {
            "/v2": Route("server", "GET", _always(about)),
            "/v2/health/live": Route("live", "GET", _always({"live": True})),
            "/v2/health/ready": Route("ready", "GET", self._is_ready),
            "/metrics": Route("metrics", "GET", self._metrics),
        }
        if shadow is not None:
            self._routes["/shadow"] = Route("shadow", "GET", self._summary)
        self._below_model = {
            "": Route("model", "GET", _always(model.metadata())),
            "/ready": Route("model_ready", "GET", self._is_ready),
            "/infer": Route("infer", "POST", self._infer),
        }

    def route(self, request: Request) -> Route:
        """What answers this request, from its head alone, or a `Refusal`."""
        found = self._find(request.path.rstrip("/") or "/")
        method = "GET" if request.method == "HEAD" else request.method
        if method != found.method:
            allowed = "GET, HEAD" if found.method == "GET" else found.method
            raise Refusal("method", allowed, request.method, status=405, headers={"Allow": allowed})
        if found.method == "POST":
            _check_body(request)
        return found

    async def answer(self, route: Route, body: bytes) -> Response:
        """The response to a whole request; whatever goes wrong, there is one."""
        self._in_flight += 1
        try:
            response = await route.answer(body)
        except UnderstudyError as error:
            response = refused(error)
        except Exception:
            LOG.exception("a request to %s failed", route.name)
            self.failures.add()
            response = document({"error": "the server failed; its log says how"}, 500)
        finally:
            self._in_flight -= 1
        self.count(route.name, response.status)
        return response

    def count(self, route: str, status: int) -> None:
        """Count a request."""
        self.requests.add(route, str(status))

    def close(self, seconds: float) -> None:
        """Give up what no client waits for any more, within so many seconds."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self.shadow is not None:
            self.shadow.stop(seconds)

    def _find(self, path: str) -> Route:
        if path in self._routes:
            return self._routes[path]
        parts = path.split("/")
        if parts[:3] != ["", "v2", "models"] or len(parts) < 4:
            raise Refusal("path", f"one of {', '.join([*self._routes, '/v2/models/NAME'])}", path[:100], status=404)
        name, rest = unquote(parts[3]), parts[4:]
        if name != self.model.name:
            raise Refusal("model", repr(self.model.name), repr(name[:100]), status=404)
        if len(rest) >= 2 and rest[0] == "versions":
            if unquote(rest[1]) != self.model.version:
                raise Refusal("version", repr(self.model.version), repr(unquote(rest[1])[:100]), status=404)
            rest = rest[2:]
        below = "".join(f"/{part}" for part in rest)
        if below not in self._below_model:
            raise Refusal("path below the model", "nothing, /ready or /infer", below[:100], status=404)
        return self._below_model[below]

    async def _infer(self, body: bytes) -> Response:
        clock = perf_counter()
        question = await self._do(self.model.question, body, len(body) > SMALL_BYTES)
        answer = await self._do(self.model.answer, question, len(question.rows) > SMALL_ROWS)
        if self.shadow is not None:
            self.shadow.offer(question.rows, answer.codes)
        self.rows.add(by=len(answer.codes))
        for label, rows in zip(
            self._words, np.bincount(answer.codes, minlength=len(self._words)).tolist(), strict=True
        ):
            if rows:
                self.answers.add(label, by=rows)
        self.seconds.add(perf_counter() - clock)
        return Response(200, answer.body)

    async def _do(self, work: Callable[[Any], T], what: Any, large: bool) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, what) if large else work(what)

    async def _is_ready(self, _: bytes) -> Response:
        return document({"name": self.model.name, "ready": self.ready}, 200 if self.ready else 503)

    async def _metrics(self, _: bytes) -> Response:
        return Response(200, exposition(self._families).encode(errors="backslashreplace"), CONTENT_TYPE)

    async def _summary(self, _: bytes) -> Response:
        return document(None if self.shadow is None else self.shadow.summary())


def _always(content: Any) -> Callable[[bytes], Awaitable[Response]]:
    async def answer(_: bytes) -> Response:
        return document(content)

    return answer


def _proof(certificate: Certificate | None) -> list[Family]:
    if certificate is None:
        return []
    about = "Fidelity in the copy's certificate:"
    return [
        Gauge("understudy_certificate_estimate", f"{about} the estimate.", lambda: certificate.estimate),
        Gauge("understudy_certificate_lower", f"{about} its lower bound.", lambda: certificate.lower),
    ]


def _check_body(request: Request) -> None:
    """Refuse a body whose length or type is not what can be read, before it is read."""
    headers = request.headers
    if "content-length" not in headers and "transfer-encoding" not in headers:
        raise Refusal("Content-Length", "the length of the body", "none", status=411)
    kind = headers.get("content-type", "none").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal("Content-Type", JSON, kind[:100], status=415)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise Refusal("Content-Encoding", "none", encoding[:100], "send the body as it is", status=415)
    if "inference-header-content-length" in headers:
        raise Refusal("Inference-Header-Content-Length", "none", "one", "send tensors as JSON, not in binary form")
