"""TLS with the user's certificates: trusted authorities, and the client's certificate."""

from __future__ import annotations

import os
import ssl
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

from ectype.errors import SettingError

Name = str | Path | None


class Certificates(NamedTuple):
    """Files in PEM format, checked: the client's certificate, its key (perhaps in the same file), and authorities."""

    client_cert: Name = None
    client_key: Name = None
    ca: Name = None

    def checked(self, scheme: str) -> Certificates:
        """The same, if they can be used for such a URL."""
        for option, value in self._asdict().items():
            if value is not None and scheme not in ("https", "grpcs"):
                raise SettingError(option, "an endpoint whose URL begins with https or grpcs", scheme)
        if self.client_key is not None and self.client_cert is None:
            raise SettingError("client_key", "client_cert beside it", "none")
        if any(value is not None for value in self):
            self.context()
        return self

    def context(self) -> ssl.SSLContext:
        """The TLS context of the client."""
        if not any(value is not None for value in self):
            return _usual(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        context = _trusting(self.ca)
        if self.client_cert is not None:
            key = self.client_cert if self.client_key is None else self.client_key
            _readable("client_cert", self.client_cert)
            _readable("client_key", key)
            try:
                context.load_cert_chain(self.client_cert, key, password=_refuse_encrypted)
            except (ssl.SSLError, OSError, ValueError) as error:
                expected = "a certificate in PEM format and the key that belongs to it"
                raise SettingError("client_cert", expected, f"{_words(error)} in {self.client_cert}, {key}") from None
        return context

    def pem(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """The contents of the files, for gRPC: authorities, key, certificate."""
        key = self.client_cert if self.client_key is None else self.client_key
        files = (("ca", self.ca), ("client_key", key), ("client_cert", self.client_cert))
        ca, secret, cert = (None if path is None else _readable(option, path) for option, path in files)
        return ca, secret, cert


@cache
def _usual(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The authorities that everybody trusts, or those that the environment names, for all clients of this process.

    Reading them takes longer than all else that is done to ask a few rows of an endpoint.
    """
    return _trusting(None)


def _trusting(ca: Name) -> ssl.SSLContext:
    """A context that trusts these authorities alone, or those that httpx2 does."""
    if ca is None:
        import httpx2

        return httpx2.create_ssl_context()
    _readable("ca", ca)
    try:
        return ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise SettingError("ca", "certificates in PEM format", f"{_words(error)} in {ca}") from None


def _readable(option: str, path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise SettingError(option, "a file that can be read", f"{error}") from None


def _words(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)


def _refuse_encrypted() -> NoReturn:
    """Without this, OpenSSL would ask for the password at the terminal."""
    raise ValueError("a key that is encrypted: decrypt it into a file that only you can read")
