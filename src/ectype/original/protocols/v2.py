"""The Open Inference Protocol V2."""

from __future__ import annotations

import re

import numpy as np

from ectype.errors import OriginalError, SettingError
from ectype.original.protocols.base import HttpProtocol
from ectype.original.protocols.json_outputs import MalformedAnswer, at, quote_json, unflatten
from ectype.original.protocols.json_rows import cells, lists
from ectype.space import BOOL_TYPE, FLOAT64_TYPE, INT64_TYPE, STRING_TYPE, wire_type_of_values
from ectype.types import Json, Series, Table


class V2(HttpProtocol):
    """The Open Inference Protocol: KServe, MLServer, Triton.

    An array goes as one tensor, a data frame as one per column, with MLServer's and KServe's own mark for a data frame.
    The protocol has no word for missing values. MLServer (1.7.1 was checked) reads `null` as NaN in FP64 tensors, and
    as None or NaN in BYTES, depending on its pandas; it fails on one in INT64 and takes one in BOOL for false, so such
    rows are not sent. Other servers were not checked and may refuse `null`.

    >>> V2().endpoint("/v2/models/iris")
    '/v2/models/iris/infer'
    """

    def __init__(self, output: str | None = None, given: str | None = None):
        name, _, kind = ("input-0" if given is None else given).rpartition(":")
        self.output, self.input, self.datatype = output, name, kind
        if kind not in ("FP32", "FP64"):
            self.input, self.datatype = given or "input-0", FLOAT64_TYPE.v2

    def endpoint(self, path: str) -> str:
        """The path of the model with /infer at its end."""
        match = re.fullmatch(r"(.*/v2/models/[^/]+(?:/versions/[^/]+)?)(?:/infer)?/?", path)
        if match is None:
            raise SettingError("original", "a model's URL, .../v2/models/NAME[/versions/V]", f"the path {path!r}")
        return match[1] + "/infer"

    def question(self, rows: Table, ticket: str) -> Json:
        """Tensors, and the output that is wanted."""
        wanted = {} if self.output is None else {"outputs": [{"name": self.output}]}
        if isinstance(rows, np.ndarray):
            data = [value for row in lists(rows) for value in row]
            mark = {"parameters": {"content_type": "np"}}
            tensor = {"name": self.input, "shape": list(rows.shape), "datatype": self.datatype, **mark, "data": data}
            return {"id": ticket, "inputs": [tensor], **wanted}
        tensors = [_tensor(str(name), rows.iloc[:, j]) for j, name in enumerate(rows.columns)]
        return {"id": ticket, "parameters": {"content_type": "pd"}, "inputs": tensors, **wanted}

    def outputs(self, answer: object, n: int, ticket: str) -> list[object]:
        """The only output, or the one that was asked for."""
        if isinstance(answer, dict) and answer.get("id", ticket) not in (ticket, None, ""):
            raise MalformedAnswer("wrong id", f"the answer to another request, {quote_json(answer['id'])}")
        found = at(answer, "outputs")
        tensors = found if isinstance(found, list) else []
        names = [at(tensor, "name") for tensor in tensors]
        chosen = [tensor for tensor, name in zip(tensors, names, strict=True) if self.output in (None, name)]
        if len(chosen) != 1:
            wanted = "one output" if self.output is None else f"one output {self.output!r}"
            listed = ", ".join(map(quote_json, names)) or "none"
            raise MalformedAnswer("not an answer", f"not {wanted} (name it with output) but {listed}", again=False)
        return unflatten(at(chosen[0], "data"), at(chosen[0], "shape"), n)


def _tensor(name: str, column: Series) -> Json:
    """A column as a V2 tensor. Its datatype depends on its own type alone, so that no row changes another's."""
    import pandas as pd

    typed = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    kind = wire_type_of_values(typed)
    if kind is None:
        raise OriginalError(f"column {name}", "words, booleans or numbers", f"the type {typed.dtype}")
    data = cells(f"column {name}", column)
    if None in data and kind in (INT64_TYPE, BOOL_TYPE):
        hint = "the protocol v2 cannot say missing there: describe the column as float64, or use another protocol"
        raise OriginalError(f"column {name}", f"a value in every row of {kind.v2}", "a missing value", hint)
    mark = {"parameters": {"content_type": "str"}} if kind == STRING_TYPE else {}
    return {"name": name, "shape": [len(data), 1], "datatype": kind.v2, **mark, "data": data}
