"""From a URL and its settings to an original."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import Unpack

from ectype._common import validation
from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.decode import with_decoding
from ectype.original.fingerprint import query_of
from ectype.original.http.aws import signer_of
from ectype.original.http.credentials import Credentials
from ectype.original.http.endpoint import Endpoint
from ectype.original.http.grpc_client import refuse_missing
from ectype.original.http.rate_limit import CircuitBreaker, RateLimit, RetryWaits
from ectype.original.http.tls import Certificates
from ectype.original.http.urls import parse_url, public_url
from ectype.original.options import LabelReader
from ectype.original.protocols import HttpProtocol, wire
from ectype.original.protocols.v2_grpc import GrpcV2
from ectype.types import Classes

PATIENCE = RetryWaits()
SCHEMES = ("http", "https", "grpc", "grpcs")
# The most rows of a request, unless somebody says otherwise.
ROWS = 100


def open_http(
    spec: str,
    classes: Classes = None,
    *,
    protocol: str | None = None,
    template: object = None,
    input: str | None = None,
    output: str | None = None,
    token_env: str | None = None,
    header: str | Iterable[str] | None = None,
    client_cert: str | None = None,
    client_key: str | None = None,
    ca: str | None = None,
    request_rows: int | None = None,
    concurrency: int = 4,
    rate: float | None = None,
    timeout: float = 30.0,
    attempts: int = 6,
    poll: float = 300.0,
    patience: RetryWaits | None = None,
    **reading: Unpack[LabelReader],
) -> Original:
    """The classifier behind a URL, asked in the protocol that is named; nothing is sent before its first question.

    >>> open_http("http://localhost:8080/v2/models/iris?trace=1", protocol="v2").name
    'http://localhost:8080/v2/models/iris'
    """
    url, listed = parse_url(spec, SCHEMES), None if classes is None else list(classes)
    labels = reading.get("decode") in (None, "label")  # else what is decoded are scores, not the classes themselves
    if url.scheme.startswith("grpc"):
        spoken = _over_grpc(url.path, protocol, template, input, output)
    else:
        spoken = wire(protocol, template=template, input=input, output=output, classes=listed if labels else None)
    spoken.scored = not labels
    if spoken.by_class and labels:
        raise SettingError("decode", "argmax, threshold or scores, for a template that says where scores are", "none")
    rows = _rows_of(spoken, request_rows)
    places = validation.count("concurrency", concurrency, 1)
    tries = validation.count("attempts", attempts, 1)
    waits = PATIENCE if patience is None else patience
    endpoint = Endpoint(
        url=url._replace(path=spoken.endpoint(url.path), fragment="").geturl(),
        wire=spoken,
        token=Credentials(token_env, header, signer_of(spec) if protocol == "sagemaker" else None),
        certificates=Certificates(client_cert, client_key, ca).checked(url.scheme),
        # Neither halving a request until the one row that it fails for stands alone, nor all threads failing for as
        # long as one of them may, is an outage yet.
        breaker=CircuitBreaker(public_url(url), max(waits.failures, tries * max(places, rows.bit_length() + 1))),
        pace=RateLimit(
            0.0 if rate is None else 1 / validation.number("rate", rate, "a number above 0", 1e-9, math.inf)
        ),
        places=threading.BoundedSemaphore(places),
        timeout=validation.number("timeout", timeout, "a number above 0", math.nextafter(0, 1), math.inf),
        attempts=tries,
        poll=validation.number("poll", poll, "a number above 0", math.nextafter(0, 1), math.inf),
        patience=waits,
    )
    original = Original(endpoint.predict, name=public_url(url), request_rows=rows, concurrency=places)
    original.failures = endpoint.breaker.failures
    original.remote = True
    original.opened = {"query": query_of(url.query)} if url.query else {}
    original.stop = lambda: endpoint.breaker.open("an interruption")
    return with_decoding(original, listed, **reading)


def _over_grpc(
    path: str, protocol: str | None, template: object, input: str | None, output: str | None
) -> HttpProtocol:
    """The only protocol that is spoken over gRPC."""
    refuse_missing()
    if protocol not in (None, "v2") or template is not None:
        raise SettingError("protocol", "v2, the only one over gRPC", "another")
    return GrpcV2(path, output, input)


def _rows_of(spoken: HttpProtocol, given: int | None) -> int:
    """The most rows of one request, as far as the protocol can hold them."""
    most = spoken.most_rows
    rows = validation.count("request_rows", (most or ROWS) if given is None else given, 1)
    if most is not None and rows > most:
        raise SettingError("request_rows", f"at most {most} for a protocol of one row at a time", str(rows))
    return rows
