"""The interface of a protocol: rows become a request, and an answer becomes outputs."""

from __future__ import annotations

import json

from ectype.original.protocols.json_outputs import Output, check_outputs, parse_document
from ectype.original.protocols.polling import Polling
from ectype.types import Table


class HttpProtocol:
    """One protocol. `ticket` is new for every request: what tells its answer from another's.

    `method` is POST, or GET for a protocol whose `encode` gives a query. `most_rows` is how many rows a request can
    hold, where the protocol says so. `scored` is set for outputs that may be scores by class, as objects; `by_class`
    says that they are nothing else.
    """

    content_type = "application/json"
    accept = "*/*"
    method = "POST"
    most_rows: int | None = None
    polling = Polling()
    scored = False
    by_class = False

    def endpoint(self, path: str) -> str:
        """The path to post to, from the one that was given."""
        return path

    def encode(self, rows: Table, ticket: str) -> bytes:
        """The body of a request for these rows."""
        return json_bytes(self.question(rows, ticket))

    def decode(self, body: bytes, n: int, ticket: str) -> list[Output]:
        """The n outputs in an answer: for each row a label, a list of scores, or an object with a score by class."""
        return check_outputs(self.outputs(self.parsed(body), n, ticket), n, self.scored)

    def parsed(self, body: bytes) -> object:
        """The JSON of an answer."""
        return parse_document(body)

    def question(self, rows: Table, ticket: str) -> object:
        """The JSON of a request."""
        raise NotImplementedError

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The outputs in the JSON of an answer, in the order of the rows."""
        raise NotImplementedError


def json_bytes(question: object) -> bytes:
    """JSON without spaces, and without the numbers that it has no word for."""
    return json.dumps(question, allow_nan=False, separators=(",", ":")).encode()
