"""The service: an ASGI application that answers for one model, and counts what it does."""

from __future__ import annotations

import asyncio
import hmac
import logging
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from urllib.parse import parse_qs

import numpy as np

from ectype._version import __version__
from ectype.certificate.certificate import Certificate
from ectype.errors import EctypeError, EctypeWarning
from ectype.serve import _openapi as openapi
from ectype.serve._asgi import Receive, Scope, Send
from ectype.serve._content_negotiation import TABLE, compress_response, compression_of, decompress, media_type, too_long
from ectype.serve._fallback import Fallback
from ectype.serve._http_types import HttpRequest, HttpResponse, Refusal, json_response, refusal_response
from ectype.serve._inference import InferenceModel, Question
from ectype.serve._metrics import Metrics, as_label
from ectype.serve._micro_batcher import SMALL_BYTES, Done, MicroBatcher
from ectype.serve._plain_json import AnswerStyle
from ectype.serve._routes import Route, RouteHandler, Routes, json_size, parse_size
from ectype.serve._settings import ServiceSettings
from ectype.serve._shadow import Shadow
from ectype.serve._shared_counters import SharedCounters
from ectype.types import Json

LOG = logging.getLogger(__name__)
EXTENSIONS = ["binary_tensor_data"]

Tell = Callable[[HttpResponse], object]
"""Called once with the response to a request."""


class Service:
    """Answers HTTP requests about one model, by ASGI 3. It belongs to one event loop.

    It limits the bytes of a body; `_http_protocol` and the server limit clients. With a token, only whether it is alive
    and ready is told without it.
    """

    def __init__(
        self,
        model: InferenceModel,
        certificate: Certificate | None = None,
        shadow: Shadow | None = None,
        settings: ServiceSettings | None = None,
        counts: SharedCounters | None = None,
        fallback: Fallback | None = None,
    ):
        self.model, self.shadow, self.ready = model, shadow, True
        self.settings = settings or ServiceSettings()
        self.fallback, model.cascaded = fallback, fallback is not None
        counts = counts or SharedCounters(label_words(model))
        others = [family for part in (shadow, fallback) if part is not None for family in part.families]
        self.metrics, self.counts = Metrics(certificate, others, counts), counts
        self.batcher = MicroBatcher(model, counts, shadow, fallback)
        token = self.settings.token
        self._token = None if token is None else token.encode()
        self._routes = Routes(model.name, model.version, self._server_paths(), self._model_paths())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one lifespan, by ASGI."""
        if scope["type"] == "http":
            response = await self._respond(scope, receive)
            if response is not None:
                await response.send(send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            raise ValueError(f"scope: expected http or lifespan, found {scope['type']}")

    def authorize(self, said: str) -> None:
        """Refuse a client without the token, in the same time whatever it sent."""
        if self._token is None:
            return
        scheme, _, token = said.strip().partition(" ")
        same = hmac.compare_digest(token.strip().encode(errors="replace"), self._token)
        if not (same and scheme.lower() == "bearer"):
            found = "another" if said else "none"
            challenge = {"www-authenticate": "Bearer"}
            raise Refusal("Authorization", "Bearer and the token", found, status=401, headers=challenge)

    def failed(self, error: Exception, route: str) -> HttpResponse:
        """The response to a request that cannot be answered."""
        if isinstance(error, EctypeError):
            return refusal_response(error)
        LOG.error("a request to %s failed", route, exc_info=error)
        self.counts.failures.inc()
        return json_response({"error": "the server failed; its log says how"}, 500)

    def close(self) -> None:
        """Stop its threads; a request that the shadow has under way gets the seconds of grace."""
        self.batcher.close()
        if self.shadow is not None:
            self.shadow.stop(self.settings.grace)
        if self.fallback is not None:
            self.fallback.stop()

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] == "lifespan.startup":
            # Levels that the space does not have are answered as the copy answers them; a warning for each would fill
            # a disk.
            warnings.simplefilter("ignore", EctypeWarning)
            await send({"type": "lifespan.startup.complete"})
        self.close()  # which may block the loop: by now no request is left on it
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, receive: Receive) -> HttpResponse | None:
        """The response to a request, whatever goes wrong; None if the client is gone."""
        scope["route"] = "none"
        try:
            request = HttpRequest.of(scope)
            route = self._routes.find(request)
            scope["route"] = route.name
            self._admit(route, request, scope.get("full"))
            body = await self._body(receive)
            if body is None:
                return None
        except Exception as error:
            response = self.failed(error, scope["route"])
            self.counts.request(scope["route"], response.status)
            return response
        future: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

        def tell(response: HttpResponse) -> None:
            if not future.done():  # or nobody waits for it any more
                future.set_result(response)

        self._answer(route, request, body, tell)
        return await future

    def respond(self, scope: Scope, body: bytes, tell: Tell) -> None:
        """Answer a whole request without a task: `tell` gets the response, at once or later on the event loop."""
        name = "none"
        try:
            request = HttpRequest.of(scope)
            route = self._routes.find(request)
            name = route.name
            self._admit(route, request, scope.get("full"))
            if len(body) > self.settings.max_bytes:
                raise too_long(self.settings.max_bytes, "more")
        except Exception as error:
            response = self.failed(error, name)
            self.counts.request(name, response.status)
            tell(response)
        else:
            self._answer(route, request, body, tell)

    def _admit(self, route: Route, request: HttpRequest, full: Exception | None) -> None:
        """Refuse a request before its body is read: for its token, for want of room, or for its length."""
        if self._token is not None and not route.open:
            self.authorize(request.header(b"authorization"))
        if full is not None and not route.probe:
            raise full
        most, declared = self.settings.max_bytes, request.headers.get(b"content-length")
        if declared is not None and (size := parse_size("Content-Length", declared)) > most:
            raise too_long(most, size)

    def _answer(self, route: Route, request: HttpRequest, body: bytes, tell: Tell) -> None:
        """Let a route answer; whatever goes wrong, there is one response, which is counted."""
        counts = self.counts

        def done(outcome: HttpResponse | Exception) -> None:
            response = outcome if isinstance(outcome, HttpResponse) else self.failed(outcome, route.name)
            counts.in_flight.dec()
            counts.request(route.name, response.status)
            try:
                tell(response)
            except Exception:  # those whose answers were computed with this one still get theirs
                LOG.exception("an answer of %s could not be sent", route.name)

        counts.in_flight.inc()
        try:
            route.answer(request, body, done)
        except Exception as error:
            done(error)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body, refused as soon as it is known to be too long; None if it ends early."""
        most, parts, read, more = self.settings.max_bytes, list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            read += len(parts[-1])
            if read > most:
                raise too_long(most, "more")
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _server_paths(self) -> dict[str, Route]:
        about = {"name": "ectype", "version": __version__, "extensions": EXTENSIONS}
        beside = (("shadow", self.shadow), ("cascade", self.fallback))
        summaries = {name: part.summary for name, part in beside if part is not None}
        described = openapi.description(self.model, summaries, self._token is not None)
        paths = {
            "/": Route("live", "GET", _always({"status": "alive"}), probe=True, open=True),
            "/v2": Route("server", "GET", _always(about)),
            "/v2/health/live": Route("live", "GET", _always({"live": True}), probe=True, open=True),
            "/v2/health/ready": Route("ready", "GET", self._is_ready, probe=True, open=True),
            "/predict": Route("predict", "POST", self._predict, table=True),
            "/v1/models": Route("v1_models", "GET", _always({"models": [self.model.name]})),
            "/metrics": Route("metrics", "GET", self._metrics, probe=True),
            "/openapi.json": Route("openapi", "GET", _always(described)),
        }
        told = {f"/{name}": Route(name, "GET", _told(summary)) for name, summary in summaries.items()}
        return {**paths, **told}

    def _model_paths(self) -> dict[str, Route]:
        return {
            "/v2/models/{name}{version}": Route("model", "GET", _always(self.model.metadata())),
            "/v2/models/{name}{version}/ready": Route("model_ready", "GET", self._is_ready, probe=True, open=True),
            "/v2/models/{name}{version}/infer": Route("infer", "POST", self._infer, binary=True),
            "/v1/models/{name}{version}": Route("v1_model", "GET", self._is_ready, probe=True, open=True),
            "/v1/models/{name}{version}:predict": Route("v1_predict", "POST", self._instances),
        }

    def _infer(self, request: HttpRequest, body: bytes, done: Done) -> None:
        self._ask(request, body, done, lambda plain: self.model.question(plain, json_size(request)))

    def _instances(self, request: HttpRequest, body: bytes, done: Done) -> None:
        rows = self.model.plain.instances
        self._ask(request, body, done, lambda plain: self.model.plain_question(rows(plain), AnswerStyle()))

    def _predict(self, request: HttpRequest, body: bytes, done: Done) -> None:
        headers = request.headers
        style = _style(request.query, headers.get(b"accept", b""))
        said = media_type(headers.get(b"content-type", b""))

        def read(body: bytes) -> Question:
            looks_like_json = said != TABLE and ("json" in said or body.lstrip()[:1] in (b"[", b"{", b""))
            rows = self.model.plain.document if looks_like_json else self.model.plain.table
            return self.model.plain_question(rows(body), style)

        self._ask(request, body, done, read)

    def _ask(self, request: HttpRequest, body: bytes, done: Done, read: Callable[[bytes], Question]) -> None:
        """Answer what a body asks; it is expanded before, and the answer compressed, where the request says so."""
        how, accepted = compression_of(request), request.header(b"accept-encoding")
        if how is None and not accepted:
            self.batcher.ask(partial(read, body), len(body) > SMALL_BYTES, done)
            return

        def question() -> Question:
            found = read(body if how is None else decompress(body, how, self.settings.max_bytes))
            return found if not accepted else Question(found.rows, partial(_smaller, found, accepted))

        self.batcher.ask(question, how is not None or len(body) > SMALL_BYTES, done)

    def _is_ready(self, _: HttpRequest, __: bytes, done: Done) -> None:
        done(json_response({"name": self.model.name, "ready": self.ready}, 200 if self.ready else 503))

    def _metrics(self, request: HttpRequest, _: bytes, done: Done) -> None:
        accepted = (request.header(name) for name in (b"accept", b"accept-encoding"))
        done(HttpResponse(200, *self.metrics.exposition(*accepted)))


def label_words(model: InferenceModel) -> list[str]:
    """The labels of a model, as metrics name them."""
    return [as_label(name) for name in model.copy.classes.tolist()]


def _always(content: object) -> RouteHandler:
    response = json_response(content)

    def answer(_: HttpRequest, __: bytes, done: Done) -> None:
        done(response)

    return answer


def _told(summary: Callable[[], Json]) -> RouteHandler:
    def answer(_: HttpRequest, __: bytes, done: Done) -> None:
        done(json_response(summary()))

    return answer


@lru_cache(maxsize=256)
def _style(query: bytes, accept: bytes) -> AnswerStyle:
    """The style of an answer to plain rows: `?scores=true` asks for scores, and Accept for CSV."""
    scores = "false"
    if query:
        scores = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("scores", ["false"])[-1]
    if scores not in ("true", "false"):
        raise Refusal("scores", "true or false", repr(scores[:100]))
    return AnswerStyle(scores == "true", TABLE in accept.decode("latin-1").lower())


def _smaller(
    question: Question, accepted: str, codes: np.ndarray, probabilities: np.ndarray, by: np.ndarray | None
) -> HttpResponse:
    return compress_response(question.write(codes, probabilities, by), accepted)
