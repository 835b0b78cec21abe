"""What every protocol says: how rows become a request, and an answer becomes outputs."""

from __future__ import annotations

import json

from understudy.original.protocols.answers import Output, checked, loaded
from understudy.types import Table


class Wire:
    """One protocol. `ticket` is new for every request: what tells its answer from another's."""

    content_type = "application/json"

    def endpoint(self, path: str) -> str:
        """The path to post to, from the one that was given."""
        return path

    def encode(self, rows: Table, ticket: str) -> bytes:
        """The body of a request for these rows."""
        return json.dumps(self.question(rows, ticket), allow_nan=False, separators=(",", ":")).encode()

    def decode(self, body: bytes, n: int, ticket: str) -> list[Output]:
        """The n outputs in an answer, one label or one list of scores for each row."""
        return checked(self.outputs(loaded(body), n, ticket), n)

    def question(self, rows: Table, ticket: str) -> object:
        """The JSON of a request."""
        raise NotImplementedError

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """What the JSON of an answer holds for the rows, in their order."""
        raise NotImplementedError
