"""Bodies: the types and compressions in which requests may come, and answers in the compression that clients accept."""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache

from ectype.serve._http_types import HttpRequest, HttpResponse, Refusal

# What JSON is sent as by clients that do not say so: curl's -d and --data-binary, tritonclient, and hand-written ones.
UNSAID = ("", "application/octet-stream", "application/x-www-form-urlencoded", "text/plain")
TABLE = "text/csv"
# By its name, how zlib is told to read a compression; deflate is zlib's own format, or, from some clients, a bare one.
COMPRESSIONS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
# The weights by which a client says that it does not accept something.
NEVER = ("0", "0.", "0.0", "0.00", "0.000")
# Answers of fewer bytes are not worth it.
WORTH = 1024
LEVEL = 1


@lru_cache(maxsize=256)
def media_type(said: bytes) -> str:
    """A Content-Type in lower case and without parameters; empty if none is said.

    >>> media_type(b"Application/JSON; charset=utf-8")
    'application/json'
    """
    return said.partition(b";")[0].strip().lower().decode("latin-1")


def is_json(said: str) -> bool:
    """Whether a media type is JSON, or one that clients send JSON under."""
    return said == "application/json" or said in UNSAID or said.endswith("+json")


def compression_of(request: HttpRequest) -> str | None:
    """The compression of a request's body, None without one."""
    if b"content-encoding" not in request.headers:
        return None
    found = request.header(b"content-encoding").strip().lower()
    if found in ("identity", ""):
        return None
    if found not in COMPRESSIONS:
        raise Refusal("Content-Encoding", f"{', '.join(COMPRESSIONS)} or none", found[:100], status=415)
    return found


def decompress(body: bytes, how: str | None, most: int) -> bytes:
    """A body as it was before it was compressed, refused as soon as it is known to be too long.

    >>> decompress(gzip.compress(b"rows"), "gzip", 10)
    b'rows'
    """
    if how is None:
        return body
    try:
        return _inflated(body, COMPRESSIONS[how], most)
    except zlib.error:
        if how == "deflate":
            try:
                return _inflated(body, -zlib.MAX_WBITS, most)
            except zlib.error:
                pass
    raise Refusal("body", f"data compressed by {how}", "other data")


def _inflated(body: bytes, bits: int, most: int) -> bytes:
    stream = zlib.decompressobj(bits)
    found = stream.decompress(body, most + 1)
    if len(found) > most:
        raise too_long(most, "more, once it is decompressed")
    if not stream.eof or stream.unused_data:
        raise zlib.error
    return found


def compress_response(response: HttpResponse, accepted: str) -> HttpResponse:
    """A response in the compression that a client accepts, if that is worth it."""
    if len(response.body) < WORTH or not accepted or "content-encoding" in response.headers:
        return response
    how = choose_compression(accepted)
    if how is None:
        return response
    body = gzip.compress(response.body, LEVEL) if how == "gzip" else zlib.compress(response.body, LEVEL)
    return HttpResponse(response.status, body, {**response.headers, "content-encoding": how, "vary": "accept-encoding"})


@lru_cache(maxsize=256)
def choose_compression(accepted: str) -> str | None:
    """The compression to answer in, of an Accept-Encoding.

    >>> choose_compression("deflate, gzip;q=0.5"), choose_compression("gzip;q=0"), choose_compression("*")
    ('gzip', None, 'gzip')
    """
    allowed, refused = set[str](), set[str]()
    for word in accepted.lower().split(","):
        how, _, weight = word.partition(";")
        name, _, value = weight.partition("=")
        (refused if name.strip() == "q" and value.strip() in NEVER else allowed).add(how.strip())
    return next((how for how in COMPRESSIONS if how in allowed or ("*" in allowed and how not in refused)), None)


def too_long(most: int, found: int | str) -> Refusal:
    """The refusal of a body of more than `most` bytes."""
    return Refusal("body", f"at most {most} bytes", found, "ask about fewer rows at once", status=413)
