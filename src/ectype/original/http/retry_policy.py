"""Failures of an attempt: their cause, whether they are an outage, and whether to retry."""

from __future__ import annotations

import ssl
from http.client import responses

import httpx2

from ectype.original.http.client import Reply, TooLargeError
from ectype.original.http.credentials import Credentials
from ectype.original.http.rate_limit import retry_after
from ectype.original.http.urls import target

# Statuses that pass by themselves; those from 500 on, too, may, but may as well be the fault of a row.
BUSY = (408, 425, 429)
# Statuses that one row of many may be to blame for.
REFUSED_ROWS = (400, 413, 422)
# What a client may raise: no answer, or none that can be read. A server that wants a certificate says so only after the
# handshake, and httpx2 passes that on as it is.
UNANSWERED = (TimeoutError, TooLargeError, httpx2.TransportError, httpx2.DecodingError, ssl.SSLError)


class RequestFailure(Exception):
    """A failed attempt: a cause to count, words to show, and whether to retry.

    `outage`: no row is to blame. `again`: another attempt may help. `after`: the seconds that a server asked to wait.
    `reached`: the rows may have arrived, and been answered.
    """

    def __init__(
        self,
        cause: str,
        found: str,
        *,
        outage: bool = False,
        again: bool = True,
        after: float = 0.0,
        hint: str = "",
        reached: bool = True,
    ):
        super().__init__(f"{cause}: {found}")
        self.cause, self.found, self.hint = cause, found, hint
        self.outage, self.again, self.after, self.reached = outage, again, after, reached


def of_error(error: Exception, timeout: float, token: Credentials) -> RequestFailure:
    """The failure that one of `UNANSWERED` means."""
    if isinstance(error, httpx2.ConnectTimeout):
        return RequestFailure("timeout", f"no connection within {timeout / 2:g} s", outage=True, reached=False)
    if isinstance(error, (TimeoutError, httpx2.TimeoutException)):
        hint = "raise the time-out, or ask about fewer rows at once"
        return RequestFailure("timeout", f"no whole answer within {timeout:g} s", outage=True, hint=hint)
    if isinstance(error, TooLargeError):
        return RequestFailure("too large", token.quoted(str(error)), again=False)
    if isinstance(error, httpx2.DecodingError):
        return RequestFailure("not decodable", token.quoted(str(error)))
    root = _root(error)
    # A certificate does not get better by asking again, neither theirs nor ours.
    again = not isinstance(root, ssl.SSLError) or "CERTIFICATE" not in (root.reason or "")
    reached = not isinstance(error, httpx2.ConnectError)
    words = token.quoted(f"{type(root).__name__}: {root}")
    return RequestFailure("connection", words, outage=True, again=again, reached=reached)


def of_status(reply: Reply, longest: float, token: Credentials) -> RequestFailure:
    """The failure that a status means; `longest` is the longest Retry-After that is waited for."""
    status, found = reply.status, token.quoted(_words(reply))
    if status in BUSY or status >= 500:
        asked = retry_after(reply.headers.get("retry-after")) or 0.0
        if asked > longest:
            found += f", and to come back in {asked:.0f} s, above the {longest:g} s that are waited"
            return RequestFailure(str(status), found, outage=True, again=False)
        return RequestFailure(str(status), found, outage=status in BUSY, after=asked)
    if status in REFUSED_ROWS:
        return RequestFailure(str(status), found, again=False)
    return RequestFailure(str(status), found, outage=True, again=False, hint=_advice(status, token))


def _words(reply: Reply) -> str:
    words = f"status {reply.status} {responses.get(reply.status, '')}".rstrip()
    if 300 <= reply.status < 400:
        return f"{words}, to {target(reply.headers.get('location', ''))}"
    return f"{words}, {reply.body.decode(errors='replace')}".rstrip(", ")


def _advice(status: int, token: Credentials) -> str:
    if 300 <= status < 400:
        return "redirects are not followed: give the URL that answers"
    if status in (401, 403):
        return token.advice
    return "check the URL" if status == 404 else "check the URL and the protocol"


def _root(error: BaseException) -> BaseException:
    """The first error in the chain of causes."""
    below = error.__cause__ or error.__context__
    return error if below is None else _root(below)
