"""The user's own headers, parsed; their secrets are read from environment variables."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from ectype.errors import SettingError

FORM = '"NAME: VALUE", where a secret VALUE is env:VARIABLE, perhaps after a word: "Authorization: Basic env:LOGIN"'
# What the client writes by itself: another value would contradict the request.
OURS = ("host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "expect", "content-encoding")
# Names whose values are secrets, so that they do not belong on a command line.
SECRET = re.compile("auth|key|token|secret|cookie|password|signature|credential", re.IGNORECASE)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"(?:([A-Za-z][A-Za-z0-9_-]*) )?env:(.*)")
_VARIABLE_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class Header(NamedTuple):
    """A header as it is sent, the variable that its secret came from, and every form of that secret."""

    name: str
    value: str
    variable: str | None = None
    secrets: tuple[str, ...] = ()


def headers_of(given: str | Iterable[str] | None) -> list[Header]:
    """The headers that a command line names, each once.

    >>> headers_of(["Accept: text/csv"])[0][:2]
    ('Accept', 'text/csv')
    """
    listed = [given] if isinstance(given, str) else list(given or ())
    found = [_header(text) for text in listed]
    names = [header.name.lower() for header in found]
    for name in names:
        if names.count(name) > 1:
            raise SettingError("header", "each header once", f"{name} {names.count(name)} times")
    return found


def names_variable(header: str) -> bool:
    """Whether the value of a header is an environment variable's, so that it can be shown.

    >>> names_variable("X-Api-Key: env:VENDOR_KEY"), names_variable("X-Model: 7")
    (True, False)
    """
    match = _VARIABLE.fullmatch(header.partition(":")[2].strip())
    return match is not None and _VARIABLE_NAME.fullmatch(match[2]) is not None


def secret_of(option: str, variable: str) -> str:
    """The secret in an environment variable, if it can be sent."""
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise SettingError(option, f"a token in the environment variable {variable}", "none")
    if not (secret.isascii() and secret.isprintable()):
        raise SettingError(option, f"a token of printable ASCII in {variable}", "other characters")
    return secret


def _header(text: object) -> Header:
    """One header. Errors do not quote its value, which somebody may have taken for the place of a secret."""
    name, colon, value = str(text).partition(":")
    value = value.strip()
    if not isinstance(text, str) or not colon or not _NAME.fullmatch(name) or not value:
        found = f"the header {name!r} without a value" if _NAME.fullmatch(name) and colon else "something else"
        raise SettingError("header", FORM, found)
    if name.lower() in OURS:
        raise SettingError("header", "a header that the client does not write itself", name)
    match = _VARIABLE.fullmatch(value)
    if match is not None:
        return _secret(name, *match.groups())
    if SECRET.search(name):
        hint = f'put it into an environment variable: "{name}: env:VARIABLE"'
        raise SettingError(f"header {name}", "a secret from the environment", "a value on the command line", hint)
    if not (value.isascii() and value.isprintable()):
        raise SettingError(f"header {name}", "printable ASCII", "other characters")
    return Header(name, value)


def _secret(name: str, word: str | None, variable: str) -> Header:
    """A header with a secret. Basic credentials, USER:PASSWORD, are encoded here unless they are already."""
    if not _VARIABLE_NAME.fullmatch(variable):
        raise SettingError(f"header {name}", "the name of an environment variable after env:", "something else")
    secret = secret_of(f"header {name}", variable)
    forms = [secret]
    if word is not None and word.lower() == "basic" and ":" in secret:
        forms.append(secret.partition(":")[2])
        secret = base64.b64encode(secret.encode()).decode()
        forms.append(secret)
    return Header(name, secret if word is None else f"{word} {secret}", variable, tuple(filter(None, forms)))
