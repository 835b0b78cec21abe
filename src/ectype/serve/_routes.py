"""The table of paths, and the checks of a request's head before its body is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ectype.serve._content_negotiation import TABLE, compression_of, is_json, media_type
from ectype.serve._http_types import JSON, HttpRequest, Refusal
from ectype.serve._micro_batcher import Done
from ectype.serve._v2 import SIZE_HEADER

# The header in which a client says how much of a body is JSON, as servers give its name.
JSON_SIZE = SIZE_HEADER.encode()
# The most digits of a number of bytes.
MOST_DIGITS = 15

RouteHandler = Callable[[HttpRequest, bytes, Done], None]


@dataclass(frozen=True)
class Route:
    """A path that exists: the name it is counted under, its method, and what answers a request and its body.

    A probe is answered when all connections are taken, and what is open, without a token. A table is a body of CSV.
    """

    name: str
    method: str
    answer: RouteHandler
    probe: bool = False
    open: bool = False
    table: bool = False
    binary: bool = False


class Routes:
    """Every path: those of the server, and those of the model, with its version or without."""

    def __init__(self, name: str, version: str, server: dict[str, Route], model: dict[str, Route]):
        self._name, self._version, self._server = name, version, list(server)
        self._paths = dict(server)
        for path, route in model.items():
            for versioned in ("", f"/versions/{version}"):
                self._paths[path.replace("{name}", name).replace("{version}", versioned)] = route

    def find(self, request: HttpRequest) -> Route:
        """The route of a request, from its head alone, or a `Refusal`."""
        path = request.path
        found = self._paths.get(path) or self._paths.get(path.rstrip("/") or "/")
        if found is None:
            raise self._unknown(path.rstrip("/") or "/")
        method = "GET" if request.method == "HEAD" else request.method
        if method != found.method:
            allowed = "GET, HEAD" if found.method == "GET" else found.method
            raise Refusal("method", allowed, request.method, status=405, headers={"allow": allowed})
        if method == "POST":
            _check_body(found, request)
        return found

    def _unknown(self, path: str) -> Refusal:
        parts = path.split("/")
        if parts[1:3] not in (["v2", "models"], ["v1", "models"]) or len(parts) < 4:
            expected = f"one of {', '.join([*self._server, '/v2/models/NAME'])}"
            return Refusal("path", expected, path[:100], status=404)
        name = parts[3].rpartition(":")[0] if parts[1] == "v1" and ":" in parts[3] else parts[3]
        if name != self._name:
            return Refusal("model", repr(self._name), repr(name[:100]), status=404)
        if len(parts) > 5 and parts[4] == "versions" and parts[5].partition(":")[0] != self._version:
            return Refusal("version", repr(self._version), repr(parts[5][:100]), status=404)
        below = "nothing, /ready or /infer" if parts[1] == "v2" else "nothing or :predict"
        return Refusal("path below the model", below, "".join(f"/{part}" for part in parts[4:])[:100], status=404)


def _check_body(route: Route, request: HttpRequest) -> None:
    """Refuse a body whose length or type is not what can be read, before it is read."""
    headers = request.headers
    lengthless = b"content-length" not in headers and b"transfer-encoding" not in headers
    if lengthless and request.http_version.startswith("1"):  # HTTP/2 frames its bodies, and needs neither
        raise Refusal("Content-Length", "the length of the body", "none", status=411)
    said = media_type(headers.get(b"content-type", b""))
    if not is_json(said) and not (route.table and said == TABLE):
        raise Refusal("Content-Type", f"{JSON} or {TABLE}" if route.table else JSON, said[:100], status=415)
    compression_of(request)
    if json_size(request) is not None and not route.binary:
        raise Refusal("Inference-Header-Content-Length", "none here", "one", "binary tensors belong to /infer")


def json_size(request: HttpRequest) -> int | None:
    """The size of the JSON at the start of a body, if bytes of tensors follow it."""
    found = request.headers.get(JSON_SIZE)
    return None if found is None else parse_size("Inference-Header-Content-Length", found)


def parse_size(where: str, found: bytes) -> int:
    """A number of bytes in a header."""
    if not found.isdigit() or len(found) > MOST_DIGITS:
        raise Refusal(where, "a number of bytes", found[:100].decode("latin-1"))
    return int(found)
