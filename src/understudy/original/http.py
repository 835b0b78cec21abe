"""Originals behind HTTP: asked with care, since every request is paid for and any of them may fail."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import httpx2
from tenacity import Retrying, retry_if_exception, sleep_using_event, stop_after_attempt, wait_exponential, wait_random

from understudy import checks
from understudy._version import __version__
from understudy.errors import OriginalError, OutageError, SettingError
from understudy.original.base import Original
from understudy.original.decode import decoded
from understudy.original.protocols import MalformedAnswer, Wire, wire

# The most bytes of an answer, and of one that is only quoted in an error; the most characters of such a quotation.
MOST_BYTES = 64 * 2**20
MOST_QUOTED_BYTES = 2**16
QUOTED = 300

# Statuses that pass by themselves; those from 500 on, too, may, but may as well be the fault of a row.
BUSY = (408, 425, 429)
# Statuses that one row of many may be to blame for.
REFUSED_ROWS = (400, 413, 422)

ABOVE_ZERO = 5e-324


class Patience(NamedTuple):
    """How long to go on asking an endpoint that fails; times are in seconds."""

    first: float = 0.5
    """The wait before the second attempt; it doubles with every further one."""
    most: float = 30.0
    """The longest of these waits."""
    jitter: float = 0.5
    """The most that chance adds to a wait, so that threads which failed together do not come back together."""
    longest: float = 60.0
    """The longest Retry-After that is waited for."""
    failures: int = 10
    """The fewest failures in a row, across all threads, after which nobody asks any more."""


PATIENCE = Patience()


def open_http(
    spec: str,
    classes: Iterable[Any] | None = None,
    *,
    protocol: str | None = None,
    decode: str | None = None,
    threshold: float | None = None,
    template: Any = None,
    output: str | None = None,
    token_env: str | None = None,
    request_rows: int = 100,
    concurrency: int = 4,
    rate: float | None = None,
    timeout: float = 30.0,
    attempts: int = 6,
    patience: Patience | None = None,
) -> Original:
    """The classifier behind a URL, asked in the protocol that is named; nothing is sent before its first question.

    >>> open_http("http://localhost:8080/v2/models/iris?trace=1", protocol="v2").name
    'http://localhost:8080/v2/models/iris'
    """
    url = _checked_url(spec)
    listed = None if classes is None else list(classes)
    typed = listed if decode in (None, "label") else None  # what is decoded are scores, not the classes themselves
    spoken = wire(protocol, template=template, output=output, classes=typed)
    rows = checks.count("request_rows", request_rows, 1)
    places = checks.count("concurrency", concurrency, 1)
    tries = checks.count("attempts", attempts, 1)
    seconds = checks.number("timeout", timeout, "a number above 0", ABOVE_ZERO, float("inf"))
    interval = 0.0 if rate is None else 1 / checks.number("rate", rate, "a number above 0", 1e-9, float("inf"))
    patience = PATIENCE if patience is None else patience
    # Neither halving a request until the one row that it fails for stands alone, nor all threads failing for as long as
    # one of them may, is an outage yet.
    limit = max(patience.failures, tries * max(places, rows.bit_length() + 1))
    name = _shown(url)
    endpoint = Endpoint(
        url=url._replace(path=spoken.endpoint(url.path), fragment="").geturl(),
        wire=spoken,
        token=_Token(token_env),
        health=_Health(name, limit),
        pace=_Pace(interval),
        places=places,
        timeout=seconds,
        attempts=tries,
        patience=patience,
    )
    original = Original(endpoint.predict, name=name, request_rows=rows, concurrency=places)
    original.failures = endpoint.health.failures
    original.stop = lambda: endpoint.health.open("an interruption")
    return decoded(original, listed, decode, threshold)


class Endpoint:
    """What asks an endpoint: again where that may help, not faster than allowed, and not at all once it is out.

    `predict` may be called from many threads. Each call is one request in up to `attempts` attempts.
    """

    def __init__(
        self,
        *,
        url: str,
        wire: Wire,
        token: _Token,
        health: _Health,
        pace: _Pace,
        places: int,
        timeout: float,
        attempts: int,
        patience: Patience,
    ):
        self.url, self.wire, self.health, self.pace = url, wire, health, pace
        self.timeout, self.attempts, self.patience = timeout, attempts, patience
        self._token, self._places, self._lock = token, threading.BoundedSemaphore(places), threading.Lock()
        self._line: _Line | None = None

    def predict(self, rows: Any) -> list[Any]:
        """The raw outputs for these rows, one for each."""
        if len(rows) == 0:
            return []
        retrying = self._retrying()
        try:
            return retrying(self._ask, rows)
        except _Failure as failure:
            last = failure
        raise self._error(last, made=retrying.statistics["attempt_number"])

    def _retrying(self) -> Retrying:
        """Retry with exponential backoff and jitter; the breaker wakes whoever sleeps."""
        waits = self.patience
        return Retrying(
            sleep=sleep_using_event(self.health.opened),
            stop=stop_after_attempt(self.attempts),
            wait=wait_exponential(waits.first, waits.most) + wait_random(0, waits.jitter),
            retry=retry_if_exception(lambda error: isinstance(error, _Failure) and error.again),
            reraise=True,
        )

    def _ask(self, rows: Any) -> list[Any]:
        """One attempt."""
        self.health.wait(0)
        ticket = uuid.uuid4().hex
        body, line = self.wire.encode(rows, ticket), self._open_line()
        with self._places:
            self.health.wait(self.pace.slot())
            try:
                outputs = self._read(self._post(line, body), len(rows), ticket)
            except _Failure as failure:
                self.pace.hold(failure.after)
                self.health.failed(failure)
                raise
        self.health.succeeded()
        return outputs

    def _post(self, line: _Line, body: bytes) -> _Reply:
        """What came back."""
        try:
            return line.post(self.url, body)
        except httpx2.ConnectTimeout:
            failure = _Failure("timeout", f"no connection within {self.timeout / 2:g} s", outage=True)
        except (TimeoutError, httpx2.TimeoutException):
            found = f"no whole answer within {self.timeout:g} s"
            hint = "raise the time-out, or ask about fewer rows at once"
            failure = _Failure("timeout", found, outage=True, hint=hint)
        except (httpx2.DecodingError, _TooLargeError) as error:
            again, cause = (False, "too large") if isinstance(error, _TooLargeError) else (True, "not decodable")
            failure = _Failure(cause, self._words(str(error)), again=again)
        except httpx2.TransportError as error:
            # A certificate does not get better by asking again.
            root = _root(error)
            again, words = not isinstance(root, ssl.SSLCertVerificationError), f"{type(root).__name__}: {root}"
            failure = _Failure("connection", self._words(words), outage=True, again=again)
        # Outside of the handlers: what was caught may quote the endpoint, and would be chained to this.
        raise failure

    def _read(self, reply: _Reply, n: int, ticket: str) -> list[Any]:
        """The outputs in a reply."""
        if not 200 <= reply.status < 300:
            raise self._refusal(reply)
        try:
            return self.wire.decode(reply.body, n, ticket)
        except MalformedAnswer as error:
            failure = _Failure(error.cause, self._words(f"{error.cause}: {error.found}"), again=error.again)
        raise failure

    def _refusal(self, reply: _Reply) -> _Failure:
        """The failure that a status means."""
        status, found = reply.status, self._status_words(reply)
        if status in BUSY or status >= 500:
            asked = retry_after(reply.headers.get("retry-after")) or 0.0
            if asked > self.patience.longest:
                found += f", and to come back in {asked:.0f} s, above the {self.patience.longest:g} s that are waited"
                return _Failure(str(status), found, outage=True, again=False)
            return _Failure(str(status), found, outage=status in BUSY, after=asked)
        if status in REFUSED_ROWS:
            return _Failure(str(status), found, again=False)
        return _Failure(str(status), found, outage=True, again=False, hint=self._advice(status))

    def _status_words(self, reply: _Reply) -> str:
        words = f"status {reply.status} {responses.get(reply.status, '')}".rstrip()
        if 300 <= reply.status < 400:
            return self._words(f"{words}, to {_target(reply.headers.get('location', ''))}")
        return self._words(f"{words}, {reply.body.decode(errors='replace')}".rstrip(", "))

    def _words(self, text: str) -> str:
        """What an endpoint said, fit to be shown. It is cut last: half a token would not be found any more."""
        words = " ".join(self._token.hidden(text).split())
        return words if len(words) <= QUOTED else f"{words[:QUOTED]}..."

    def _advice(self, status: int) -> str:
        if 300 <= status < 400:
            return "redirects are not followed: give the URL that answers"
        if status in (401, 403):
            return self._token.advice
        return "check the URL" if status == 404 else "check the URL and the protocol"

    def _error(self, failure: _Failure, made: int) -> OriginalError:
        """What the caller is told; nobody else goes on asking if it is an outage."""
        found = failure.found if made == 1 else f"{failure.found}, at the last of {made} attempts"
        if not failure.outage:
            return OriginalError(self.health.name, "an answer", found, failure.hint)
        self.health.open(found)
        return OutageError(self.health.name, "an answer", found, failure.hint)

    def _open_line(self) -> _Line:
        with self._lock:
            if self._line is None:
                headers = {
                    "User-Agent": f"understudy/{__version__}",
                    "Content-Type": self.wire.content_type,
                    **self._token.headers,
                }
                try:
                    self._line = _Line(headers, self.timeout)
                except Exception as error:  # of a proxy or certificates that the environment names
                    found = self._words(f"{type(error).__name__}: {error}")
                    hint = "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
                    raise OutageError(self.health.name, "a usable HTTP environment", found, hint) from None
            return self._line


# --- what goes wrong ------------------------------------------------------------------------------------------------


class _Failure(Exception):
    """An attempt that came to nothing: a cause to count, words to show, and what to do about it."""

    def __init__(
        self, cause: str, found: str, *, outage: bool = False, again: bool = True, after: float = 0.0, hint: str = ""
    ):
        super().__init__(f"{cause}: {found}")
        self.cause, self.found, self.hint = cause, found, hint
        self.outage, self.again, self.after = outage, again, after


class _TooLargeError(Exception):
    """An answer of more bytes than are read."""


def _root(error: BaseException) -> BaseException:
    """The error at the bottom: of all of them, the one that says what happened."""
    below = error.__cause__ or error.__context__
    return error if below is None else _root(below)


class _Health:
    """What the attempts of all threads came to, and whether to go on: a breaker that, once open, stays open."""

    def __init__(self, name: str, limit: int):
        self.name, self.limit = name, limit
        self.failures: Counter[str] = Counter()
        self._in_a_row, self._why = 0, ""
        self._lock, self.opened = threading.Lock(), threading.Event()

    def wait(self, seconds: float) -> None:
        """Wait, unless nobody is to ask any more."""
        if self.opened.wait(seconds):
            raise OutageError(self.name, "an answer", self._why)

    def succeeded(self) -> None:
        """Count an attempt that came to an answer."""
        with self._lock:
            self._in_a_row = 0

    def failed(self, failure: _Failure) -> None:
        """Count an attempt that did not."""
        with self._lock:
            self.failures[failure.cause] += 1
            self._in_a_row += 1
            row = self._in_a_row
        if row >= self.limit:
            self.open(f"{row} failures in a row, the last of them {failure.found}")

    def open(self, why: str) -> None:
        """Let nobody ask any more; the first reason stays."""
        with self._lock:
            self._why = self._why or why
            self.opened.set()


class _Pace:
    """When the next request may go: a clock that all threads take their turns from."""

    def __init__(self, interval: float):
        self.interval, self._free, self._lock = interval, 0.0, threading.Lock()

    def slot(self) -> float:
        """Take the next free turn; the seconds until then."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._free)
            self._free = turn + self.interval
        return turn - now

    def hold(self, seconds: float) -> None:
        """Let nobody go for so long: an endpoint that asks one thread to come back later means all of them."""
        with self._lock:
            self._free = max(self._free, time.monotonic() + seconds)


def retry_after(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, given as such or as a date; None if it cannot be read.

    >>> retry_after("120"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after("soon")
    (120.0, 0.0, None)
    """
    if value is None:
        return None
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value.strip()):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


# --- the URL and the token ------------------------------------------------------------------------------------------


def _checked_url(spec: str) -> SplitResult:
    if re.match(r"[^/?#]*//[^/?#]*@", spec):  # first: the errors of a parser may quote the password
        hint = "put a token into an environment variable, and name that with token_env or --token-env"
        raise SettingError("original", "a URL without a user or a password", "one with", hint)
    try:
        url = urlsplit(spec)
        known = bool(url.scheme in ("http", "https") and url.hostname and url.port != 0)
        httpx2.URL(spec)
    except (ValueError, httpx2.InvalidURL) as error:
        raise SettingError("original", "a URL", str(error)) from None
    if not known:
        raise SettingError("original", "http://HOST... or https://HOST...", repr(_shown(url)))
    return url


def _shown(url: SplitResult) -> str:
    """A URL without what may be secret in it."""
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _target(location: str) -> str:
    """Where a redirect points, without what may be secret in it."""
    try:
        url = urlsplit(location)
        return (_shown(url) if url.netloc else url.path) or "nowhere"
    except ValueError:
        return "no URL"


class _Token:
    """A bearer token from the environment, which nobody is ever shown."""

    def __init__(self, variable: str | None):
        self.variable, self._secret = variable, ""
        if variable is None:
            return
        self._secret = os.environ.get(str(variable), "").strip()
        if not self._secret:
            raise SettingError("token_env", f"a token in the environment variable {variable}", "none")
        if not (self._secret.isascii() and self._secret.isprintable()):
            raise SettingError("token_env", f"a token of printable ASCII in {variable}", "other characters")

    @property
    def headers(self) -> Mapping[str, str]:
        """What goes with every request."""
        return {"Authorization": f"Bearer {self._secret}"} if self._secret else {}

    @property
    def advice(self) -> str:
        """What to do where access is denied."""
        if self.variable is None:
            return "no token was sent: name the environment variable that holds one with token_env or --token-env"
        return f"the token in the environment variable {self.variable} was refused"

    def hidden(self, text: str) -> str:
        """A text without the token, as it is or as JSON, Python or a URL would write it."""
        if not self._secret:
            return text
        escaped = json.dumps(self._secret)[1:-1]
        forms = {
            self._secret,
            escaped,
            escaped.replace("/", "\\/"),
            repr(self._secret)[1:-1],
            quote(self._secret, safe=""),
        }
        for form in sorted(forms, key=len, reverse=True):  # the longest first: a shorter one may be a part of it
            text = text.replace(form, "***")
        return text


# --- the wire -------------------------------------------------------------------------------------------------------


class _Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


# An event loop, and what ends it.
_Switch = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class _Line:
    """An HTTP client in an event loop on a thread of its own.

    Time-outs of single reads do not end a request whose answer drips; cancelling it does, wherever it is stuck, and
    that takes an event loop. httpx2 reads proxies and certificates from the environment, but no .netrc.
    """

    def __init__(self, headers: Mapping[str, str], timeout: float):
        # Connecting is two steps of this limit, so that the deadline does not fall between them: httpx2 would leave the
        # socket of a half-made TLS connection open.
        times = httpx2.Timeout(timeout, connect=timeout / 2)
        many = httpx2.Limits(max_connections=None, max_keepalive_connections=None)  # who calls here is counted
        client = httpx2.AsyncClient(headers=dict(headers), timeout=times, limits=many, follow_redirects=False)
        ready: Future[_Switch] = Future()
        thread = threading.Thread(target=_run, args=(client, ready), name="understudy-http", daemon=True)
        thread.start()
        self._client, self._timeout = client, timeout
        self._loop, stop = ready.result()
        weakref.finalize(self, _hang_up, self._loop, stop, thread)

    def post(self, url: str, body: bytes) -> _Reply:
        """Post a body and wait for the reply, up to the deadline."""
        posted = _post(self._client, url, body, self._timeout)
        return asyncio.run_coroutine_threadsafe(posted, self._loop).result()


def _run(client: httpx2.AsyncClient, ready: Future[_Switch]) -> None:
    try:
        asyncio.run(_keep(client, ready))
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _keep(client: httpx2.AsyncClient, ready: Future[_Switch]) -> None:
    stop = asyncio.Event()
    async with client:
        ready.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()


def _hang_up(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(stop.set)
    if threading.current_thread() is not thread:  # whose garbage collection may be what calls this
        thread.join(timeout=2)


async def _post(client: httpx2.AsyncClient, url: str, body: bytes, timeout: float) -> _Reply:
    async with asyncio.timeout(timeout), client.stream("POST", url, content=body) as response:
        read = bytearray()
        async for chunk in response.aiter_bytes():
            read += chunk
            if not response.is_success and len(read) > MOST_QUOTED_BYTES:
                break
            if len(read) > MOST_BYTES:
                raise _TooLargeError(f"an answer of more than {MOST_BYTES} bytes")
        return _Reply(response.status_code, response.headers, bytes(read))
