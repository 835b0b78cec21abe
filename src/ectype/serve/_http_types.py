"""Requests and responses as the service sees them, and refusals with a reason."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ectype.errors import EctypeError
from ectype.serve._asgi import Scope, Send

JSON = "application/json"
JSON_HEADERS = {"content-type": JSON}
# The header that names rows of a request which are outside the space, and how many of them.
OUTSIDE, MOST_NAMED = "x-outside-space", 100
# The most characters of a reason, and of a value that it quotes.
MOST_REASON = 1000
MOST_QUOTED = 60


class Refusal(EctypeError):
    """A request that is not answered, the status that says so, and headers that go with it.

    >>> str(Refusal("id", "a string", quote_value(3)))
    'id: expected a string, found 3'
    """

    def __init__(
        self,
        where: str,
        expected: str,
        found: object,
        hint: str = "",
        *,
        status: int = 400,
        headers: dict[str, str] | None = None,
    ):
        super().__init__(where, expected, found, hint)
        self.status, self.headers = status, headers or {}


class HttpRequest(NamedTuple):
    """The head of a request: a method, a decoded path, headers with lowercase names, and the query as it came."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    http_version: str = "1.1"
    query: bytes = b""

    @classmethod
    def of(cls, scope: Scope) -> HttpRequest:
        """The request that a server describes; `root_path` is where the service is mounted, and not ours to route."""
        path, root = scope["path"], scope.get("root_path", "")
        if root and (path == root or path.startswith(root + "/")):
            path = path[len(root) :]
        listed = [(name.lower(), value) for name, value in scope["headers"]]
        return cls(
            scope["method"], path, headers_of(listed), scope.get("http_version", "1.1"), scope.get("query_string", b"")
        )

    def header(self, name: bytes) -> str:
        """A header as text; empty if there is none."""
        return self.headers.get(name, b"").decode("latin-1")


def headers_of(listed: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; one that came several times is joined, since two readers would take the first or the last."""
    headers = dict(listed)
    if len(headers) == len(listed):
        return headers
    found: dict[bytes, list[bytes]] = {}
    for name, value in listed:
        found.setdefault(name, []).append(value)
    return {name: b", ".join(values) for name, values in found.items()}


class HttpResponse(NamedTuple):
    """A status, a body, and headers with lowercase names."""

    status: int
    body: bytes
    headers: dict[str, str] = JSON_HEADERS

    def marked(self, places: np.ndarray) -> HttpResponse:
        """The same, with a header that names the rows at these places as outside the space, the first of them."""
        named = ",".join(map(str, places[:MOST_NAMED].tolist())) + (",..." if len(places) > MOST_NAMED else "")
        return self._replace(headers={**self.headers, OUTSIDE: named})

    async def send(self, send: Send) -> None:
        """Send it as ASGI messages."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.listed()})
        await send({"type": "http.response.body", "body": self.body})

    def listed(self) -> list[tuple[bytes, bytes]]:
        """Its headers as bytes, with the length of its body."""
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        return [*encoded, (b"content-length", b"%d" % len(self.body))]

    def lines(self) -> bytes:
        """Its headers as lines, with the length of its body."""
        start = _JSON_LINES if self.headers is JSON_HEADERS else _lines(tuple(self.headers.items()))
        return b"%bcontent-length: %d\r\n" % (start, len(self.body))


@lru_cache(maxsize=256)
def _lines(headers: tuple[tuple[str, str], ...]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")


_JSON_LINES = _lines(tuple(JSON_HEADERS.items()))


def json_response(content: object, status: int = 200) -> HttpResponse:
    """A response of one JSON document."""
    return HttpResponse(status, json.dumps(content, separators=(",", ":")).encode())


def refusal_response(error: EctypeError) -> HttpResponse:
    """The response that says why there is no answer; what is wrong with rows is a 400."""
    reason = str(error)
    if len(reason) > MOST_REASON:
        reason = reason[:MOST_REASON] + "..."
    status, headers = (error.status, error.headers) if isinstance(error, Refusal) else (400, {})
    return HttpResponse(status, json.dumps({"error": reason}).encode(), {**JSON_HEADERS, **headers})


def too_many(most: int, found: int | str) -> Refusal:
    """The refusal of more rows than one request may have."""
    return Refusal("inputs", f"at most {most} rows", found, "ask in several requests", status=413)


def quote_value(value: object) -> str:
    """A value of somebody's JSON, as far as it fits into a reason.

    >>> quote_value([1, 2, 3]), quote_value("word"), quote_value("x" * 99)[-5:]
    ('a list of 3', "'word'", 'xx...')
    """
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and abs(value) > 2**64:
        return "a number that is too large"
    text = repr(value[: MOST_QUOTED + 1] if isinstance(value, str) else value)
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "..."
