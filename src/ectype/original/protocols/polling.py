"""Answers that come later: a request is accepted with status 202, and its answer is polled for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from ectype.original.http.rate_limit import retry_after
from ectype.original.http.retry_policy import BUSY, UNANSWERED, RequestFailure, of_error
from ectype.original.http.urls import target
from ectype.original.protocols.json_outputs import MalformedAnswer, at, parse_document, quote_json

if TYPE_CHECKING:
    from ectype.original.http.client import Client, Reply
    from ectype.original.http.credentials import Credentials
    from ectype.original.http.grpc_client import GrpcClient

# Seconds until the first look, where no Retry-After says otherwise; twice as long before each further one.
FIRST, MOST = 0.25, 10.0
# The shortest wait, whatever Retry-After says.
LEAST = 0.05
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
            return _text(parse_document(body), self.url)
        return next((headers[name] for name in PLACES if name in headers), None)

    def waiting(self, body: bytes) -> bool:
        """Whether a reply of status 200 says that the answer is not there yet."""
        if self.status is None:
            return False
        state = at(parse_document(body), self.status)
        if state in self.failed:
            found = f"an operation that is {quote_json(state)}: {quote_json(parse_document(body))}"
            raise MalformedAnswer("failed", found, again=False)
        return state in self.running

    def answer(self, body: bytes) -> str | None:
        """The URL that holds the answer, if it is another than that of the operation."""
        return None if self.result is None else _text(parse_document(body), self.result)


@dataclass(eq=False, repr=False)  # the URL's query may be secret
class Poller:
    """Polls for a promised answer. A poll is no query: an accepted request is paid for once, and never sent again.

    `wait` sleeps, unless everybody is told to stop; `seconds` is how long all of it may take.
    """

    rules: Polling
    url: str
    seconds: float
    timeout: float
    token: Credentials
    wait: Callable[[float], None]

    def answer(self, client: Client | GrpcClient, reply: Reply) -> Reply:
        """The reply that holds the answer: this one, unless it says to come back for it."""
        if reply.status != 202 and not self._waits(reply):
            return reply
        deadline, pause = time.monotonic() + self.seconds, FIRST
        where = self._beside(self.rules.operation(reply.headers, reply.body))
        while True:
            self._pause(retry_after(reply.headers.get("retry-after")), pause, deadline)
            pause = min(2 * pause, MOST)
            reply = self._looked(client, where)
            if reply.status == 303:
                where = self._beside(reply.headers.get("location"))
            elif reply.status not in (202, *BUSY) and reply.status < 500 and not self._waits(reply):
                return self._result(client, reply)

    def _waits(self, reply: Reply) -> bool:
        return 200 <= reply.status < 300 and self.rules.waiting(reply.body)

    def _result(self, client: Client | GrpcClient, reply: Reply) -> Reply:
        """The answer itself, where the operation says that it is elsewhere."""
        elsewhere = self.rules.answer(reply.body) if 200 <= reply.status < 300 else None
        return reply if elsewhere is None else self._looked(client, self._beside(elsewhere))

    def _looked(self, client: Client | GrpcClient, where: str) -> Reply:
        """Poll once. A failed connection counts as status 503, since the answer may still come."""
        try:
            return client.send("GET", where, b"")
        except UNANSWERED as error:
            failure = of_error(error, self.timeout, self.token)
        if failure.again:
            return Reply(503, {}, b"")
        raise failure

    def _pause(self, asked: float | None, pause: float, deadline: float) -> None:
        seconds = pause if asked is None else max(asked, LEAST)
        if time.monotonic() + seconds > deadline:
            found = f"status 202, and no answer within {self.seconds:g} s of waiting for it"
            hint = "it may be paid for: raise the limit with poll or --poll"
            raise RequestFailure("poll", found, outage=True, again=False, hint=hint)
        self.wait(seconds)

    def _beside(self, location: str | None) -> str:
        """A URL to poll, if it is of the endpoint that was asked: no other is told our secrets, or asked at all."""
        if not location:
            hint = "the protocol template can say where the URL is, with poll"
            raise RequestFailure(
                "poll", "status 202 without a Location to ask again", outage=True, again=False, hint=hint
            )
        try:
            where = urljoin(self.url, location)
            beside = urlsplit(where)[:2] == urlsplit(self.url)[:2]
        except ValueError:
            beside = False
        if not beside:
            found = f"status 202, and an answer at another place, {self.token.quoted(target(location))}"
            raise RequestFailure("poll", found, outage=True, again=False, hint="only URLs of the same host are asked")
        return where


def _text(document: object, path: str) -> str:
    found = at(document, path)
    if not isinstance(found, str):
        raise MalformedAnswer("not an answer", f"not a URL at {path!r} but {quote_json(found)}", again=False)
    return found
