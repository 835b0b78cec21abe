"""Credentials: a bearer token and other headers. Their secrets are removed from every text that is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from ectype.errors import SettingError
from ectype.original.http.aws import Signer
from ectype.original.http.client import Signed
from ectype.original.http.headers import Header, headers_of, secret_of

# The most characters of what an endpoint said that an error quotes.
QUOTED = 300


class Credentials:
    """A bearer token from an environment variable, and headers of one's own; without a variable, no token is sent.

    A `signer` writes headers for each request by itself.
    """

    def __init__(
        self, variable: str | None = None, header: str | Iterable[str] | None = None, signer: Signer | None = None
    ):
        self._sent = headers_of(header)
        if variable is not None:
            secret = secret_of("token_env", str(variable))
            self._refuse_two()
            self._sent.append(Header("Authorization", f"Bearer {secret}", str(variable), (secret,)))
        self.variables = [sent.variable for sent in self._sent if sent.variable is not None]
        self._secrets = [secret for sent in self._sent for secret in sent.secrets]
        self.signed: Signed | None = None
        if signer is not None:
            self._refuse_two()
            self.variables.append("AWS_ACCESS_KEY_ID")
            self._secrets += signer.secrets
            self.signed = signer.headers

    def _refuse_two(self) -> None:
        if any(sent.name.lower() == "authorization" for sent in self._sent):
            hint = "leave out one: a token, a header, or the signature of requests to Amazon"
            raise SettingError("token_env", "one Authorization", "a header of that name beside it", hint)

    def headers(self, usual: Mapping[str, str]) -> dict[str, str]:
        """The headers of every request: the usual ones, replaced by the user's where both have a name."""
        named = {sent.name: sent.value for sent in self._sent}
        said = {name.lower() for name in named}
        return {**{name: value for name, value in usual.items() if name.lower() not in said}, **named}

    @property
    def advice(self) -> str:
        """Advice for a user whose access was denied."""
        if not self.variables:
            return (
                "no token was sent: name the environment variable that holds one with token_env or --token-env, "
                'or another header with header or --header "NAME: env:VARIABLE"'
            )
        return f"the token in the environment variable {' or '.join(self.variables)} was refused"

    def quoted(self, text: str) -> str:
        """An endpoint's text without secrets, shortened. It is cut last: half a token would not be found."""
        words = " ".join(self._hidden(text).split())
        return words if len(words) <= QUOTED else f"{words[:QUOTED]}..."

    def _hidden(self, text: str) -> str:
        """A text without the secrets, as they are or as JSON, Python or a URL would write them."""
        forms = {form for secret in self._secrets for form in _forms(secret)}
        for form in sorted(forms, key=len, reverse=True):  # the longest first: a shorter one may be a part of it
            text = text.replace(form, "***")
        return text


def _forms(secret: str) -> set[str]:
    escaped = json.dumps(secret)[1:-1]
    return {secret, escaped, escaped.replace("/", "\\/"), repr(secret)[1:-1], quote(secret, safe="")}
