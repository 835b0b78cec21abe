"""The bearer token of an endpoint, which nobody is ever shown."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from urllib.parse import quote

from understudy.errors import SettingError

# The most characters of what an endpoint said that an error quotes.
QUOTED = 300


class Token:
    """A bearer token from an environment variable; without a variable, none is sent."""

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

    def quoted(self, text: str) -> str:
        """What an endpoint said, fit to be shown. It is cut last: half a token would not be found any more."""
        words = " ".join(self._hidden(text).split())
        return words if len(words) <= QUOTED else f"{words[:QUOTED]}..."

    def _hidden(self, text: str) -> str:
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
