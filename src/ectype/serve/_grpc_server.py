"""The Open Inference Protocol V2 over gRPC, for the same service (extra `grpc`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ectype._version import __version__
from ectype.errors import SettingError
from ectype.original.protocols.v2_messages import CONTENTS, SERVICE, message
from ectype.serve import _v2 as v2
from ectype.serve._app import EXTENSIONS, Service
from ectype.serve._binary_tensors import WORDS, Tail, pack_values
from ectype.serve._http_types import HttpResponse, Refusal, quote_value
from ectype.serve._inference import Question
from ectype.serve._micro_batcher import SMALL_BYTES
from ectype.serve._settings import ServeSettings
from ectype.space import wire_type_of_labels
from ectype.types import Json

if TYPE_CHECKING:
    import grpc

# The health of gRPC's own protocol: its messages are one field each.
HEALTH, SERVING, NOT_SERVING = "grpc.health.v1.Health", b"\x08\x01", b"\x08\x02"
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}

Handler = Callable[[Any, bool], "bytes | Awaitable[bytes]"]


class GrpcServer:
    """A gRPC server for one service; it shares the service's event loop, threads, limits and token."""

    def __init__(self, service: Service, settings: ServeSettings, shared: bool = False):
        self._service, self._model, self._settings = service, service.model, settings
        self._kind = wire_type_of_labels(service.model.copy.classes).v2
        import grpc.aio

        options = [
            ("grpc.max_receive_message_length", settings.max_bytes),
            ("grpc.max_connection_idle_ms", int(min(settings.client_timeout * 1000, 2**31 - 1))),
            ("grpc.so_reuseport", int(shared)),  # or two servers would share a port without a word
        ]
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=settings.max_connections)
        methods: dict[str, tuple[str, Handler, bool]] = {
            "ServerLive": ("ServerLiveRequest", self._live, True),
            "ServerReady": ("ServerReadyRequest", self._ready, True),
            "ModelReady": ("ModelReadyRequest", self._model_ready, True),
            "ServerMetadata": ("ServerMetadataRequest", self._about, False),
            "ModelMetadata": ("ModelMetadataRequest", self._metadata, False),
            "ModelInfer": ("ModelInferRequest", self._infer, False),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(partial(self._handle, *about)) for name, about in methods.items()
        }
        health = {"Check": grpc.unary_unary_rpc_method_handler(self._health)}
        added = [(SERVICE, handlers), (HEALTH, health)]
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(*one) for one in added])

    async def start(self) -> None:
        """Listen; `port` is then the one that was bound."""
        import grpc

        host, certificate, key = self._settings.host, self._settings.tls_cert, self._settings.tls_key
        where = f"{f'[{host}]' if ':' in host else host}:{self._settings.grpc_port}"
        try:
            if certificate is None or key is None:
                found = self._server.add_insecure_port(where)
            else:
                pair = (key.read_bytes(), certificate.read_bytes())
                found = self._server.add_secure_port(where, grpc.ssl_server_credentials([pair]))
        except RuntimeError as error:
            hint = "choose another, or any that is free with --grpc-port 0"
            raise SettingError("--grpc-port", "a port to listen on", f"{where}: {error}", hint) from error
        await self._server.start()
        self.port = int(found)

    def close(self) -> None:
        """Take no more requests, and give those under way the grace to end."""
        self._ending = asyncio.ensure_future(self.stop(self._settings.grace))

    async def wait_closed(self) -> None:
        """Wait until they have ended."""
        await self._ending

    async def stop(self, seconds: float) -> None:
        """Take no more requests, and give those under way so many seconds."""
        await self._server.stop(seconds)

    async def _handle(
        self, request_type: str, answer: Handler, open_to_all: bool, data: bytes, context: grpc.aio.ServicerContext
    ) -> bytes:
        """Answer one request; whatever goes wrong, there is a status."""
        import grpc

        self._service.counts.in_flight.inc()
        try:
            if not open_to_all:
                self._service.authorize(str(dict(context.invocation_metadata() or ()).get("authorization", "")))
            found = answer(_read(request_type, data), len(data) > SMALL_BYTES)
            reply = found if isinstance(found, bytes) else await found
        except Exception as error:
            response = self._service.failed(error, "grpc")
        else:
            self._service.counts.request("grpc", 200)
            return reply
        finally:
            self._service.counts.in_flight.dec()
        self._service.counts.request("grpc", response.status)
        reason = v2.load_json(response.body)
        assert isinstance(reason, dict)
        code = getattr(grpc.StatusCode, STATUSES.get(response.status, "INVALID_ARGUMENT"))
        await context.abort(code, reason["error"])
        raise AssertionError  # abort does not return

    async def _health(self, _: bytes, __: object) -> bytes:
        return SERVING if self._service.ready else NOT_SERVING

    def _live(self, *_: object) -> bytes:
        return _serialise("ServerLiveResponse", live=True)

    def _ready(self, *_: object) -> bytes:
        return _serialise("ServerReadyResponse", ready=self._service.ready)

    def _model_ready(self, request: Any, _: bool) -> bytes:
        self._check(request.name, request.version)
        return _serialise("ModelReadyResponse", ready=self._service.ready)

    def _about(self, *_: object) -> bytes:
        return _serialise("ServerMetadataResponse", name="ectype", version=__version__, extensions=EXTENSIONS)

    def _metadata(self, request: Any, _: bool) -> bytes:
        self._check(request.name, request.version)
        about = self._model.metadata()
        tensors = {
            part: [{k: tensor[k] for k in ("name", "datatype", "shape")} for tensor in about[part]]
            for part in ("inputs", "outputs")
        }
        return _serialise("ModelMetadataResponse", **{**about, **tensors})

    async def _infer(self, request: Any, large: bool) -> bytes:
        self._check(request.model_name, request.model_version)
        return await self._asked(request, large)

    def _asked(self, request: Any, large: bool) -> asyncio.Future[bytes]:
        """The answer to come. A frame that awaits it must not name it: it would be held by its error's traceback."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def done(outcome: HttpResponse | Exception) -> None:
            if future.done():  # the client has gone
                return
            if isinstance(outcome, HttpResponse):
                future.set_result(outcome.body)
            else:
                future.set_exception(outcome)

        self._service.batcher.ask(partial(self._question, request), large, done)
        return future

    def _check(self, name: str, version: str) -> None:
        for where, wanted, found in (("model", self._model.name, name), ("version", self._model.version, version)):
            if found != wanted and (found or where == "model"):
                raise Refusal(where, repr(wanted), repr(found[:100]), status=404)

    def _question(self, request: Any) -> Question:
        raw = list(request.raw_input_contents)
        if raw and len(raw) != len(request.inputs):
            raise Refusal("raw_input_contents", f"one for each of {len(request.inputs)} inputs", len(raw))
        inputs = [_tensor(tensor, raw[k] if raw else None) for k, tensor in enumerate(request.inputs)]
        outputs = [{"name": output.name, "parameters": _parameters(output)} for output in request.outputs]
        content = {"id": request.id or None, "inputs": inputs, "outputs": outputs}
        asked = v2.parse_request(content, Tail(raw[0] if len(raw) == 1 else b"".join(raw)))
        return Question(self._model.rows(asked.tensors), partial(self._write, asked, bool(raw)))

    def _write(
        self, asked: v2.InferRequest, raw: bool, codes: np.ndarray, probabilities: np.ndarray, by: np.ndarray | None
    ) -> HttpResponse:
        """The answer, with values in the form in which those of the question came."""
        reply = message("ModelInferResponse")(
            model_name=self._model.name, model_version=self._model.version, id=asked.id or ""
        )
        for name, n in ({} if by is None else v2.count_answered_by(by)).items():
            reply.parameters[name].int64_param = n
        outputs: dict[str, Callable[[], tuple[str, tuple[int, ...], np.ndarray]]] = {
            v2.LABELS: lambda: (self._kind, codes.shape, self._model.copy.classes[codes]),
            v2.SCORES: lambda: ("FP64", probabilities.shape, probabilities.ravel()),
            v2.WHO: lambda: (WORDS, codes.shape, v2.answered_by(by, len(codes))),
        }
        for wanted in asked.wanted:
            kind, shape, values = outputs[wanted.name]()
            output = reply.outputs.add(name=wanted.name, datatype=kind, shape=shape)
            if raw:
                reply.raw_output_contents.append(pack_values(values.tolist(), kind))
            else:
                words = [str(value).encode(errors="backslashreplace") for value in values] if kind == WORDS else None
                getattr(output.contents, CONTENTS[kind]).extend(values.tolist() if words is None else words)
        return HttpResponse(200, reply.SerializeToString())


def _read(kind: str, data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message(kind).FromString(data)
    except DecodeError:
        raise Refusal("message", kind, "other bytes") from None


def _serialise(kind: str, **fields: object) -> bytes:
    return message(kind)(**fields).SerializeToString()


def _parameters(holder: Any) -> Json:
    return {
        name: getattr(value, value.WhichOneof("parameter_choice") or "", None)
        for name, value in holder.parameters.items()
    }


def _tensor(tensor: Any, raw: bytes | None) -> Json:
    """A tensor as JSON would describe it."""
    about = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    parameters = {name: value for name, value in _parameters(tensor).items() if name == "content_type"}
    if raw is not None:
        return {**about, "parameters": {**parameters, "binary_data_size": len(raw)}}
    place = CONTENTS.get(tensor.datatype)
    data = [] if place is None else list(getattr(tensor.contents, place))
    if tensor.datatype == WORDS:
        try:
            data = [value.decode() for value in data]
        except UnicodeDecodeError:
            raise Refusal(f"input {quote_value(tensor.name)}: bytes_contents", "words of UTF-8", "others") from None
    return {**about, "parameters": parameters, "data": data}
