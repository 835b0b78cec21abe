"""ASGI 3 as types: what a server tells an application of a request, and the messages that the two exchange."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Required, TypedDict

Headers = Iterable[tuple[bytes, bytes]]


class Scope(TypedDict, total=False):
    """A request without its body.

    Two are ours: `route`, the name that the request is counted under, and `full`, the reason why only probes are
    answered on this connection.
    """

    type: Required[str]
    asgi: dict[str, str]
    http_version: str
    method: str
    scheme: str
    path: str
    raw_path: bytes
    query_string: bytes
    root_path: str
    client: tuple[str, int]
    headers: Headers
    route: str
    full: Exception


class Message(TypedDict, total=False):
    """One message, in either direction; its type says which keys it has."""

    type: Required[str]
    status: int
    headers: Headers
    body: bytes
    more_body: bool


Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
