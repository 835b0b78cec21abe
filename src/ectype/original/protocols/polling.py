"""Endpoints that accept a request and promise its answer: where it will be, and whether it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ectype.original.protocols.json_outputs import MalformedAnswer, at, loaded, quoted

# Where a URL to ask again is said, by those who say it: RFC 9110, and Azure's services.
PLACES = ("operation-location", "azure-asyncoperation", "location")


class Polling(NamedTuple):
    """How an answer is waited for, beyond what HTTP itself says of status 202 and Location.

    `url` is the path of the operation's URL in the JSON of a 202, `status` that of its state in what is polled;
    `running` are the states that mean "not yet", `failed` those that mean "never". `result` is the path of the URL that
    holds the answer once it is there, if that is another.
    """

    url: str | None = None
    status: str | None = None
    running: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    result: str | None = None

    def operation(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """The URL that a reply of status 202 says to ask again."""
        if self.url is not None:
            return _text(loaded(body), self.url)
        return next((headers[name] for name in PLACES if name in headers), None)

    def waiting(self, body: bytes) -> bool:
        """Whether a reply of status 200 says that the answer is not there yet."""
        if self.status is None:
            return False
        state = at(loaded(body), self.status)
        if state in self.failed:
            found = f"an operation that is {quoted(state)}: {quoted(loaded(body))}"
            raise MalformedAnswer("failed", found, again=False)
        return state in self.running

    def answer(self, body: bytes) -> str | None:
        """The URL that holds the answer, if it is another than that of the operation."""
        return None if self.result is None else _text(loaded(body), self.result)


def _text(document: object, path: str) -> str:
    found = at(document, path)
    if not isinstance(found, str):
        raise MalformedAnswer("not an answer", f"not a URL at {path!r} but {quoted(found)}", again=False)
    return found
