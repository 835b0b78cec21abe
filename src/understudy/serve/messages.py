"""What goes between the network and the routes: requests, responses, and refusals with a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from understudy.errors import UnderstudyError

JSON = "application/json"
# The most characters of a reason, and of a value that it quotes.
MOST_REASON = 1000
MOST_QUOTED = 60


class Refusal(UnderstudyError):
    """A request that is not answered, the status that says so, and headers that go with it.

    >>> str(Refusal("id", "a string", shown(3)))
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


@dataclass(frozen=True)
class Request:
    """The head of a request: a method, a path without its query, and headers in small letters."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """A status, a body and its type."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


def document(content: Any, status: int = 200) -> Response:
    """A response of one JSON document."""
    return Response(status, json.dumps(content, separators=(",", ":")).encode())


def refused(error: UnderstudyError) -> Response:
    """The response that says why there is no answer; what is wrong with rows is a 400."""
    reason = str(error)
    if len(reason) > MOST_REASON:
        reason = reason[:MOST_REASON] + "..."
    status, headers = (error.status, error.headers) if isinstance(error, Refusal) else (400, {})
    return Response(status, json.dumps({"error": reason}).encode(), headers=headers)


def shown(value: Any) -> str:
    """A value of somebody's JSON, as far as it fits into a reason.

    >>> shown([1, 2, 3]), shown("word"), shown("x" * 99)[-5:]
    ('a list of 3', "'word'", 'xx...')
    """
    if isinstance(value, (list, dict)):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and abs(value) > 2**64:
        return "a number that is too large"
    text = repr(value[: MOST_QUOTED + 1] if isinstance(value, str) else value)
    return text if len(text) <= MOST_QUOTED else text[:MOST_QUOTED] + "..."
