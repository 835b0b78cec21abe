"""URLs of endpoints: parsed, and shown without user, password and query."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

import httpx2

from ectype.errors import SettingError


def parse_url(spec: str, schemes: tuple[str, ...] = ("http", "https")) -> SplitResult:
    """The parts of a URL, if it can be asked and holds no password."""
    if re.match(r"[^/?#]*//[^/?#]*@", spec):  # first: the errors of a parser may quote the password
        hint = "put a token into an environment variable, and name that with token_env or --token-env"
        raise SettingError("original", "a URL without a user or a password", "one with", hint)
    try:
        url = urlsplit(spec)
        known = bool(url.scheme in schemes and url.hostname and url.port != 0)
        httpx2.URL(spec)
    except (ValueError, httpx2.InvalidURL) as error:
        raise SettingError("original", "a URL", str(error)) from None
    if not known:
        expected = " or ".join(f"{scheme}://HOST..." for scheme in schemes)
        raise SettingError("original", expected, repr(public_url(url)))
    return url


def public_url(url: SplitResult) -> str:
    """A URL without its user, password, query and fragment."""
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def target(location: str) -> str:
    """The target of a redirect, without user, password and query.

    >>> target("https://me:hush@a.test/b?key=hush"), target("/b?key=hush"), target("")
    ('https://a.test/b', '/b', 'nowhere')
    """
    try:
        url = urlsplit(location)
        return (public_url(url) if url.netloc else url.path) or "nowhere"
    except ValueError:
        return "no URL"
