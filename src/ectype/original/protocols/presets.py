"""Protocols that are one template, by name."""

from __future__ import annotations

from ectype.original.protocols.template import Templated
from ectype.original.protocols.template_schema import Template
from ectype.types import Json

# Named after a form of requests, for endpoints of one's own: --output says where the answer holds the outputs.
FORMS: dict[str, Json] = {
    "object": {"request": "$row", "rows": "objects"},
    "columns": {"request": "$rows", "rows": "columns"},
    "lines": {"request": "$row", "body": "lines"},
    "form": {"request": "$row", "rows": "objects", "body": "form"},
    "query": {"request": "$row", "rows": "objects", "body": "query"},
}
# Named after a server. TorchServe's handlers get the body of a request as one row, LitServe's the whole of it.
SERVERS: dict[str, Json] = {
    "torchserve": {"request": "$row"},
    "litserve": {"request": {"input": "$row"}, "answer": "output"},
    "bentoml": {"request": {"input_data": "$rows"}},
}
# What a user may call otherwise: the one key of the request, which is the name of an argument there.
NAMED = ("litserve", "bentoml")
PRESETS = {**FORMS, **SERVERS}


def preset(name: str, given: str | None = None, output: str | None = None) -> Templated:
    """The protocol of this name, with another name for its input and another path to its outputs.

    >>> import numpy as np
    >>> preset("litserve", "x").encode(np.array([[0.5, 1.0]]), "")
    b'{"x":[0.5,1.0]}'
    """
    described = dict(PRESETS[name])
    if given is not None:
        (value,) = described["request"].values()
        described["request"] = {given: value}
    return Templated(Template.model_validate(described).at(output))
