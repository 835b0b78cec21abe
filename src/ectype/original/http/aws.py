"""Requests to Amazon's services, which are signed: AWS Signature Version 4, with credentials from the environment."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from ectype.errors import SettingError
from ectype.original.http.headers import secret_of

ALGORITHM = "AWS4-HMAC-SHA256"
# Amazon's own hosts: the service and the region are in their names, as in runtime.sagemaker.eu-west-1.amazonaws.com.
_HOST = re.compile(r"(?:[\w-]+\.)*?([\w-]+)\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?")


class Signer(NamedTuple):
    """Signs requests with an access key, for one service and region."""

    key: str
    secret: str
    session: str | None
    region: str
    service: str

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown."""
        return (self.secret, *filter(None, [self.session]))

    def headers(self, method: str, url: str, body: bytes, now: datetime | None = None) -> Mapping[str, str]:
        """The headers that sign a request.

        >>> signer = Signer("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None, "us-east-1", "service")
        >>> when = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
        >>> signer.headers("GET", "https://example.amazonaws.com/", b"", when)["Authorization"][-64:]
        '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'
        """
        when = (datetime.now(UTC) if now is None else now).strftime("%Y%m%dT%H%M%SZ")
        named = {"host": urlsplit(url).netloc, "x-amz-date": when}
        if self.session is not None:
            named["x-amz-security-token"] = self.session
        scope = f"{when[:8]}/{self.region}/{self.service}/aws4_request"
        asked = _digest(_canonical(method, url, named, body).encode())
        text = f"{ALGORITHM}\n{when}\n{scope}\n{asked}".encode()
        signature = hmac.new(self._key(when[:8]), text, "sha256").hexdigest()
        words = f"Credential={self.key}/{scope}, SignedHeaders={';'.join(named)}, Signature={signature}"
        del named["host"]  # which the client writes itself
        return {**named, "Authorization": f"{ALGORITHM} {words}"}

    def _key(self, day: str) -> bytes:
        found = f"AWS4{self.secret}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            found = hmac.new(found, part.encode(), "sha256").digest()
        return found


def signer_of(url: str) -> Signer | None:
    """The signer for a host of Amazon's; None for any other, such as a container that runs here."""
    host = urlsplit(url).hostname or ""
    match = _HOST.fullmatch(host)
    if match is None:
        if host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
            raise SettingError("original", "a host such as runtime.sagemaker.REGION.amazonaws.com", host)
        return None
    key, secret = (secret_of("original", name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    return Signer(key, secret, os.environ.get("AWS_SESSION_TOKEN", "").strip() or None, match[2], match[1])


def _canonical(method: str, url: str, named: Mapping[str, str], body: bytes) -> str:
    """A request as both sides write it before they sign it."""
    parts = urlsplit(url)
    # The path is encoded once more than in the URL, which every service but S3 wants.
    path = quote(parts.path or "/", safe="/-_.~")
    pairs = ([quote(word, safe="-_.~") for word in pair] for pair in parse_qsl(parts.query, keep_blank_values=True))
    query = "&".join("=".join(pair) for pair in sorted(pairs))
    lines = "".join(f"{name}:{value}\n" for name, value in named.items())
    return "\n".join([method, path, query, lines, ";".join(named), _digest(body)])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
