"""How endpoints are asked: what goes into a request and where its answer holds the outputs, a class per protocol.

A missing value is `null` in JSON and an empty field in CSV. JSON has no infinity: a row that holds one is not sent.
What cannot be read is quoted whole; who shows it first has to hide what is secret in it, and only then to cut it.
"""

from __future__ import annotations

from understudy import checks
from understudy.errors import SettingError
from understudy.original.protocols.answers import MalformedAnswer, Output
from understudy.original.protocols.base import Wire
from understudy.original.protocols.csv import Csv
from understudy.original.protocols.plain import Instances, MLflow, Seldon
from understudy.original.protocols.template import Templated
from understudy.original.protocols.v2 import V2
from understudy.types import Classes

__all__ = [
    "PROTOCOLS",
    "V2",
    "Csv",
    "Instances",
    "MLflow",
    "MalformedAnswer",
    "Output",
    "Seldon",
    "Templated",
    "Wire",
    "wire",
]

PROTOCOLS = ("v2", "instances", "mlflow", "seldon", "csv", "template")


def wire(protocol: str | None, *, template: object = None, output: str | None = None, classes: Classes = None) -> Wire:
    """The protocol of this name, checked; `classes` gives the labels of a CSV answer their type.

    >>> wire("instances").decode(b'{"predictions": ["a", "b"]}', 2, "")
    ['a', 'b']
    """
    kind = checks.choice("protocol", protocol, PROTOCOLS)
    for option, value, owner in (("template", template, "template"), ("output", output, "v2")):
        if value is not None and kind != owner:
            raise SettingError(option, f"protocol={owner!r} beside it", f"protocol={kind!r}")
    if kind == "template":
        return Templated(template)
    if kind == "csv":
        return Csv(classes)
    return V2(output) if kind == "v2" else {"instances": Instances, "mlflow": MLflow, "seldon": Seldon}[kind]()
