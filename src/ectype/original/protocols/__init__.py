"""How endpoints are asked: what goes into a request and where its answer holds the outputs, a class per protocol.

A missing value is `null` in JSON and an empty field in CSV. JSON has no infinity: a row that holds one is not sent.
What cannot be read is quoted whole; who shows it first has to hide what is secret in it, and only then to cut it.
"""

from __future__ import annotations

from ectype._common import validation
from ectype.errors import SettingError
from ectype.original.protocols.base import HttpProtocol
from ectype.original.protocols.csv import Csv, SageMaker
from ectype.original.protocols.json_outputs import MalformedAnswer, Output
from ectype.original.protocols.plain_json import AzureML, Instances, MLflow, Seldon
from ectype.original.protocols.presets import NAMED, PRESETS, preset
from ectype.original.protocols.template import Templated
from ectype.original.protocols.v2 import V2
from ectype.types import Classes

__all__ = [
    "PROTOCOLS",
    "V2",
    "AzureML",
    "Csv",
    "HttpProtocol",
    "Instances",
    "MLflow",
    "MalformedAnswer",
    "Output",
    "SageMaker",
    "Seldon",
    "Templated",
    "wire",
]

_PLAIN: dict[str, type[HttpProtocol]] = {
    "instances": Instances,
    "vertex": Instances,
    "mlflow": MLflow,
    "azureml": AzureML,
    "seldon": Seldon,
}
_CSV: dict[str, type[Csv]] = {"csv": Csv, "sagemaker": SageMaker}
PROTOCOLS = ("v2", *_PLAIN, *_CSV, *PRESETS, "template")
# Which protocols an option is for.
_OWNERS = {"template": ("template",), "output": ("v2", *PRESETS), "input": ("v2", *NAMED)}


def wire(
    protocol: str | None,
    *,
    template: object = None,
    input: str | None = None,
    output: str | None = None,
    classes: Classes = None,
) -> HttpProtocol:
    """The protocol of this name, checked; `classes` gives the labels of a CSV answer their type.

    >>> wire("instances").decode(b'{"predictions": ["a", "b"]}', 2, "")
    ['a', 'b']
    """
    kind = validation.choice("protocol", protocol, PROTOCOLS)
    for option, value in (("template", template), ("input", input), ("output", output)):
        owners = _OWNERS[option]
        if value is not None and kind not in owners:
            raise SettingError(option, f"protocol={' or '.join(map(repr, owners))} beside it", f"protocol={kind!r}")
    if kind in PRESETS:
        return preset(kind, input, output)
    if kind == "template":
        return Templated(template)
    if kind in _CSV:
        return _CSV[kind](classes)
    return V2(output, input) if kind == "v2" else _PLAIN[kind]()
