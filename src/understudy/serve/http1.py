"""HTTP/1.1 as bytes: requests out of what a client sends, strictly, and the head of an answer.

It takes less than the standard allows where clients have no need of more, since what two readers of a request
understand differently is how requests are smuggled: no lines that end in a bare newline, none that are folded, no body
with two lengths, no transfer coding but chunked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import unquote

from understudy.serve.bodies import too_long
from understudy.serve.messages import Refusal, Request

# The most bytes of a request's line and headers, of a chunk's line, and of what follows the last chunk.
MOST_HEAD = 2**14
MOST_LINE = 256
# The most bytes of a head that is kept, in case that it comes again.
MOST_KEPT = 1024
END = b"\r\n\r\n"
LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e]+) HTTP/(1\.[01])")
HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
LENGTH = re.compile(r"[0-9]{1,18}")
REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True)
class Head:
    """The head of a request, and how its body ends and its connection goes on. A length of None is a chunked body."""

    request: Request
    length: int | None = 0
    keep: bool = True
    waits: bool = False
    """Whether the client waits to be told to go on."""


def malformed(found: str, status: int = 400) -> Refusal:
    """The refusal of what is not HTTP."""
    return Refusal("request", "HTTP/1.1", found, status=status)


@lru_cache(maxsize=512)
def parsed(raw: bytes) -> Head:
    """The head of a request, from its first line to its last header; clients send the same ones again and again."""
    first, *lines = raw.split(b"\r\n")
    line = LINE.fullmatch(first)
    if line is None:
        raise malformed("another first line")
    method, target, version = (part.decode("ascii") for part in line.groups())
    headers = _headers(lines)
    if version == "1.1" and "host" not in headers:
        raise malformed("no Host")
    path, _, query = target.partition("?")
    request = Request(method, unquote(path), headers, version, query)
    closes = "close" in headers.get("connection", "").lower() or version == "1.0"
    waits = headers.get("expect", "").lower() == "100-continue" and version == "1.1"
    return Head(request, _length(headers, version), not closes, waits)


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        header = HEADER.fullmatch(line)
        if header is None:
            raise malformed("a header that is none")
        name, value = header[1].decode("ascii").lower(), header[2].decode("latin-1").rstrip(" \t")
        if name in headers:
            if name in ("host", "transfer-encoding") or (name == "content-length" and headers[name] != value):
                raise malformed(f"{name} twice")
            value = value if name == "content-length" else f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _length(headers: dict[str, str], version: str) -> int | None:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or version == "1.0":
            raise malformed("another Transfer-Encoding than chunked")
        if length is not None:
            raise malformed("Content-Length beside Transfer-Encoding")
        return None
    if length is None:
        return 0
    if not LENGTH.fullmatch(length):
        raise malformed("another Content-Length than a number")
    return int(length)


class Incoming:
    """What one client has sent and nobody has taken yet."""

    def __init__(self) -> None:
        self._data: bytes | bytearray = b""
        self._searched = 0
        self._chunks: Chunks | None = None

    def feed(self, data: bytes) -> None:
        """Add what came."""
        if not self._data:
            self._data = data
        else:
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += data

    def __len__(self) -> int:
        return len(self._data)

    def head(self) -> Head | None:
        """Take the head of the next request; None if it is not whole yet."""
        if self._data[:2] == b"\r\n":  # some clients send one more line than they should
            self._take(2)
        end = self._data.find(END, max(self._searched - 3, 0))
        if end < 0 or end > MOST_HEAD:
            self._searched = len(self._data)
            if self._searched > MOST_HEAD:
                raise malformed(f"more than {MOST_HEAD} bytes of headers", 431)
            return None
        self._searched = 0
        raw = self._take(end + 4)[:-4]
        head = parsed(raw) if end <= MOST_KEPT else parsed.__wrapped__(raw)
        self._chunks = Chunks() if head.length is None else None
        return head

    def body(self, head: Head, most: int) -> bytes | None:
        """Take the body of this request; None if it is not whole yet, and refused once it is too long."""
        if self._chunks is not None:
            return self._chunked(self._chunks, most)
        length = head.length or 0
        if length > most:
            raise too_long(most, length)
        return self._take(length) if len(self._data) >= length else None

    def _chunked(self, chunks: Chunks, most: int) -> bytes | None:
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data)
        whole = chunks.feed(self._data)
        if len(chunks.body) > most:
            raise too_long(most, "more")
        return bytes(chunks.body) if whole else None

    def _take(self, n: int) -> bytes:
        data = self._data
        if len(data) == n:
            self._data = b""
            return bytes(data)
        taken = bytes(data[:n])
        if isinstance(data, bytearray):
            del data[:n]
        else:
            self._data = data[n:]
        return taken


class Chunks:
    """The body of a request that comes in chunks."""

    def __init__(self) -> None:
        self.body = bytearray()
        self._left, self._trailing = 0, False

    def feed(self, data: bytearray) -> bool:
        """Take from what came all that belongs to the body; whether it is whole."""
        while data:
            if self._trailing:
                return self._ended(data)
            if self._left > 2:
                size = min(len(data), self._left - 2)
                self.body += data[:size]
                del data[:size]
                self._left -= size
            elif self._left:
                if not b"\r\n".startswith(data[:2]):
                    raise malformed("a chunk that does not end where it should")
                if len(data) < 2:
                    return False
                del data[:2]
                self._left = 0
            elif not self._next(data):
                return False
        return False

    def _next(self, data: bytearray) -> bool:
        """Read the line that starts a chunk, if it is whole."""
        end = data.find(b"\r\n", 0, MOST_LINE)
        if end < 0:
            if len(data) >= MOST_LINE:
                raise malformed("a chunk without a size")
            return False
        line = CHUNK.fullmatch(bytes(data[:end]))
        if line is None:
            raise malformed("a chunk without a size")
        size = int(line[1], 16)
        if size == 0:
            self._trailing = True
            del data[:end]  # the line's end stays: nothing may follow it
        else:
            self._left = size + 2
            del data[: end + 2]
        return True

    def _ended(self, data: bytearray) -> bool:
        """Throw away the headers behind the last chunk; whether they have ended."""
        end = data.find(END)
        if end < 0:
            if len(data) > MOST_HEAD:
                raise malformed(f"more than {MOST_HEAD} bytes behind the last chunk", 431)
            return False
        del data[: end + 4]
        return True


@lru_cache(maxsize=64)
def opening(status: int, headers: tuple[tuple[str, str], ...], second: int, last: bool) -> bytes:
    """The head of an answer, up to the length of its body; those of one second are alike."""
    close = [("connection", "close")] if last else []
    said = [("date", formatdate(second, usegmt=True)), *headers, *close]
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}", *(f"{name}: {value}" for name, value in said)]
    return "\r\n".join([*lines, "content-length: "]).encode("latin-1")
