"""Asking an endpoint: attempts with exponential backoff, within a rate limit, until the circuit breaker opens."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field

from tenacity import Retrying, retry_if_exception, sleep_using_event, stop_after_attempt, wait_exponential, wait_random

from ectype._version import __version__
from ectype.errors import AnswerCountError, OriginalError, OutageError, QuotaError
from ectype.original.attempt_meter import AttemptMeter, current
from ectype.original.http.client import Client, Reply
from ectype.original.http.credentials import Credentials
from ectype.original.http.grpc_client import GrpcClient
from ectype.original.http.rate_limit import CircuitBreaker, RateLimit, RetryWaits
from ectype.original.http.retry_policy import UNANSWERED, RequestFailure, of_error, of_status
from ectype.original.http.tls import Certificates
from ectype.original.protocols import HttpProtocol, MalformedAnswer, Output
from ectype.original.protocols.json_outputs import WRONG_COUNT
from ectype.original.protocols.polling import Poller
from ectype.types import Table


@dataclass(eq=False, repr=False)  # the URL's query may be secret
class Endpoint:
    """A URL and how to ask it. `predict` may be called from many threads; each call is one request.

    A request is sent in up to `attempts` attempts, each counted by the breaker and by the meter of whoever asks, and in
    its turn by the pace. At most `places` of them are under way at once.
    """

    url: str
    wire: HttpProtocol
    token: Credentials
    breaker: CircuitBreaker
    pace: RateLimit
    places: threading.Semaphore
    timeout: float
    attempts: int
    patience: RetryWaits
    certificates: Certificates
    poll: float
    _client: Client | GrpcClient | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def predict(self, rows: Table) -> list[Output]:
        """The raw outputs for these rows, one for each."""
        if len(rows) == 0:
            return []
        retrying, failed = self._retrying(), list[RequestFailure]()
        try:
            return retrying(self._attempt, rows, current(), failed)
        except RequestFailure as failure:
            last = failure
        except QuotaError:
            if not failed or failed[-1].cause != WRONG_COUNT:
                raise
            last = failed[-1]  # which more attempts would not change
        raise self._error(last, made=retrying.statistics["attempt_number"])

    def _retrying(self) -> Retrying:
        """Retry with exponential backoff and jitter; the circuit breaker ends every wait."""
        waits = self.patience
        return Retrying(
            sleep=sleep_using_event(self.breaker.opened),
            stop=stop_after_attempt(self.attempts),
            wait=wait_exponential(waits.first, waits.most) + wait_random(0, waits.jitter),
            retry=retry_if_exception(lambda error: isinstance(error, RequestFailure) and error.again),
            reraise=True,
        )

    def _attempt(self, rows: Table, meter: AttemptMeter, failed: list[RequestFailure]) -> list[Output]:
        """Send the request once, if it is paid for; a failure is kept."""
        self.breaker.wait(0)
        ticket = uuid.uuid4().hex
        body, client = self.wire.encode(rows, ticket), self._opened()
        with self.places:
            self.breaker.wait(self.pace.slot())
            meter.sending()
            try:
                outputs = self._read(self._post(client, body), len(rows), ticket)
            except RequestFailure as failure:
                failed.append(failure)
                meter.failed(failure.found, failure.reached)
                self.pace.hold(failure.after)
                self.breaker.failed(failure.cause, failure.found)
                raise
        self.breaker.succeeded()
        return outputs

    def _post(self, client: Client | GrpcClient, body: bytes) -> Reply:
        try:
            reply = client.send(self.wire.method, self.url, body)
            return self._poller().answer(client, reply)
        except UNANSWERED as error:
            failure = of_error(error, self.timeout, self.token)
        except MalformedAnswer as error:  # of an answer that is waited for, which asking anew would pay for twice
            failure = self._malformed(error, again=False)
        # Outside of the handler: what was caught may quote the endpoint, and would be chained to this.
        raise failure

    def _read(self, reply: Reply, n: int, ticket: str) -> list[Output]:
        """The outputs in a reply."""
        if not 200 <= reply.status < 300:
            raise of_status(reply, self.patience.longest, self.token)
        try:
            return self.wire.decode(reply.body, n, ticket)
        except MalformedAnswer as error:
            failure = self._malformed(error, error.again)
        raise failure

    def _malformed(self, error: MalformedAnswer, again: bool) -> RequestFailure:
        return RequestFailure(error.cause, self.token.quoted(f"{error.cause}: {error.found}"), again=again)

    def _poller(self) -> Poller:
        return Poller(self.wire.polling, self.url, self.poll, self.timeout, self.token, self._wait)

    def _wait(self, seconds: float) -> None:
        """Wait before a poll, which takes its turn like every request."""
        self.breaker.wait(seconds)
        self.breaker.wait(self.pace.slot())

    def _error(self, failure: RequestFailure, made: int) -> OriginalError:
        """The error for the caller; an outage opens the circuit breaker for all threads."""
        found = failure.found if made == 1 else f"{failure.found}, at the last of {made} attempts"
        if not failure.outage:
            kind = AnswerCountError if failure.cause == WRONG_COUNT else OriginalError
            return kind(self.breaker.name, "an answer", found, failure.hint)
        self.breaker.open(found)
        return OutageError(self.breaker.name, "an answer", found, failure.hint)

    def _opened(self) -> Client | GrpcClient:
        """The client, started with the first request."""
        with self._lock:
            if self._client is None:
                agent = {"User-Agent": f"ectype/{__version__}"}
                usual = {**agent, "Content-Type": self.wire.content_type, "Accept": self.wire.accept}
                headers, signed = self.token.headers(usual), self.token.signed
                try:
                    if self.url.startswith("grpc"):
                        self._client = GrpcClient(self.url, headers, self.timeout, self.certificates)
                    else:
                        self._client = Client(headers, self.timeout, self.certificates.context(), signed)
                except Exception as error:  # of a proxy or certificates that the environment names
                    found = self.token.quoted(f"{type(error).__name__}: {error}")
                    hint = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
                    raise OutageError(self.breaker.name, "a usable HTTP environment", found, hint) from None
            return self._client
