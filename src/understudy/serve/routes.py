"""Which paths there are: those of the Open Inference Protocol V2, /metrics and /shadow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from understudy.serve.messages import JSON, Refusal, Request, Response

Answer = Callable[[Request, bytes], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """A path that exists: the name it is counted under, its method, and what answers a request and its body."""

    name: str
    method: str
    answer: Answer


@dataclass(frozen=True)
class Routes:
    """Every path: those of the server, and those below /v2/models/NAME with or without /versions/VERSION."""

    name: str
    version: str
    server: dict[str, Route]
    model: dict[str, Route]

    def find(self, request: Request) -> Route:
        """What answers this request, from its head alone, or a `Refusal`."""
        found = self._at(request.path.rstrip("/") or "/")
        method = "GET" if request.method == "HEAD" else request.method
        if method != found.method:
            allowed = "GET, HEAD" if found.method == "GET" else found.method
            raise Refusal("method", allowed, request.method, status=405, headers={"allow": allowed})
        if found.method == "POST":
            _check_body(request)
        return found

    def _at(self, path: str) -> Route:
        if path in self.server:
            return self.server[path]
        parts = path.split("/")
        if parts[:3] != ["", "v2", "models"] or len(parts) < 4:
            raise Refusal("path", f"one of {', '.join([*self.server, '/v2/models/NAME'])}", path[:100], status=404)
        name, rest = parts[3], parts[4:]
        if name != self.name:
            raise Refusal("model", repr(self.name), repr(name[:100]), status=404)
        if len(rest) >= 2 and rest[0] == "versions":
            if rest[1] != self.version:
                raise Refusal("version", repr(self.version), repr(rest[1][:100]), status=404)
            rest = rest[2:]
        below = "".join(f"/{part}" for part in rest)
        if below not in self.model:
            raise Refusal("path below the model", "nothing, /ready or /infer", below[:100], status=404)
        return self.model[below]


def _check_body(request: Request) -> None:
    """Refuse a body whose length or type is not what can be read, before it is read."""
    headers = request.headers
    lengthless = "content-length" not in headers and "transfer-encoding" not in headers
    if lengthless and request.http_version.startswith("1"):  # HTTP/2 frames its bodies, and needs neither
        raise Refusal("Content-Length", "the length of the body", "none", status=411)
    kind = headers.get("content-type", "none").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refusal("Content-Type", JSON, kind[:100], status=415)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise Refusal("Content-Encoding", "none", encoding[:100], "send the body as it is", status=415)
    if "inference-header-content-length" in headers:
        raise Refusal("Inference-Header-Content-Length", "none", "one", "send tensors as JSON, not in binary form")
