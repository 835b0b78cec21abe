"""Requests as HTML forms and URLs have them: names and values, percent-encoded."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from ectype.errors import OriginalError
from ectype.original.protocols.json_outputs import quote_json


def form(question: object) -> bytes:
    """Fields and their values; a list repeats its field, an object puts its own fields in, and a gap is left out.

    >>> form({"version": 2, "row": {"age": 3.5, "member": True, "city": None}, "tag": ["a", "b"]})
    b'version=2&age=3.5&member=true&tag=a&tag=b'
    """
    if not isinstance(question, dict):
        raise OriginalError("request", "an object, to be sent as fields", quote_json(question))
    return urlencode(list(_fields(question))).encode()


def _fields(question: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in question.items():
        if isinstance(value, dict):
            yield from _fields(value)
        else:
            for single in value if isinstance(value, list) else [value]:
                if isinstance(single, (list, dict)):
                    raise OriginalError("request", f"a value in the field {name}", quote_json(single))
                if single is not None:
                    yield name, single if isinstance(single, str) else quote_json(single)
