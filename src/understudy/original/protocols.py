"""How endpoints are asked: what goes into a request and where its answer holds the outputs, a class per protocol.

A missing value is `null` in JSON and an empty field in CSV. JSON has no infinity: a row that holds one is not sent.
What cannot be read is quoted whole; who shows it first has to hide what is secret in it, and only then to cut it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from understudy import checks
from understudy.errors import OriginalError, SettingError
from understudy.original.decode import word_reader

if TYPE_CHECKING:
    import pandas as pd

# A pandas column's kind, by `infer_dtype`, and its tensor in V2. All missing: nothing but words can be missing at will.
DATATYPES = {
    "boolean": "BOOL",
    "integer": "INT64",
    "floating": "FP64",
    "mixed-integer-float": "FP64",
    "string": "BYTES",
    "empty": "BYTES",
}


class MalformedAnswer(Exception):
    """An answer that cannot be read: the cause in a word or two, what was found, and whether to ask the same again."""

    def __init__(self, cause: str, found: str, again: bool = True):
        super().__init__(f"{cause}: {found}")
        self.cause, self.found, self.again = cause, found, again


class Wire:
    """What one protocol puts on the wire. `ticket` is new for every request: what tells its answer from another's."""

    content_type = "application/json"

    def endpoint(self, path: str) -> str:
        """The path to post to, from the one that was given."""
        return path

    def encode(self, rows: Any, ticket: str) -> bytes:
        """The body of a request for these rows."""
        return json.dumps(self.question(rows, ticket), allow_nan=False, separators=(",", ":")).encode()

    def decode(self, body: bytes, n: int, ticket: str) -> list[Any]:
        """The n outputs in an answer, one label or one list of scores for each row."""
        return _outputs(self.outputs(_loaded(body), n, ticket), n)

    def question(self, rows: Any, ticket: str) -> Any:
        """The JSON of a request."""
        raise NotImplementedError

    def outputs(self, answer: Any, n: int, ticket: str) -> Any:
        """What the JSON of an answer holds for the rows, in their order."""
        raise NotImplementedError


class Instances(Wire):
    """TensorFlow Serving and Vertex AI.

    >>> Instances().question(np.array([[0.5, 1.0]]), "")
    {'instances': [[0.5, 1.0]]}
    """

    def question(self, rows: Any, ticket: str) -> Any:
        """Rows as lists, or as objects where columns have names."""
        return {"instances": _lists(rows) if isinstance(rows, np.ndarray) else _objects(rows)}

    def outputs(self, answer: Any, n: int, ticket: str) -> Any:
        """The predictions."""
        return _at(answer, "predictions")


class MLflow(Wire):
    """The scoring server of MLflow, and Databricks. Under a signature, it takes a gap in a boolean column for false.

    >>> MLflow().endpoint("/serving-endpoints/iris")
    '/serving-endpoints/iris/invocations'
    """

    def endpoint(self, path: str) -> str:
        """The path with /invocations at its end."""
        return path if path.endswith("/invocations") else path.rstrip("/") + "/invocations"

    def question(self, rows: Any, ticket: str) -> Any:
        """A data frame split into columns and data, or plain inputs."""
        if isinstance(rows, np.ndarray):
            return {"inputs": _lists(rows)}
        return {"dataframe_split": {"columns": [str(name) for name in rows.columns], "data": _lists(rows)}}

    def outputs(self, answer: Any, n: int, ticket: str) -> Any:
        """The predictions."""
        return _at(answer, "predictions")


class Seldon(Wire):
    """Seldon Core's first protocol."""

    def question(self, rows: Any, ticket: str) -> Any:
        """Rows as an ndarray, beside the names of their columns where they have some."""
        names = {} if isinstance(rows, np.ndarray) else {"names": [str(name) for name in rows.columns]}
        return {"data": {**names, "ndarray": _lists(rows)}}

    def outputs(self, answer: Any, n: int, ticket: str) -> Any:
        """The ndarray or the tensor."""
        data = _at(answer, "data")
        if isinstance(data, dict) and "tensor" in data:
            return _unflattened(_at(data, "tensor.values"), _at(data, "tensor.shape"), n)
        return _at(data, "ndarray")


class V2(Wire):
    """The Open Inference Protocol: KServe, MLServer, Triton.

    An array goes as one tensor, a data frame as one per column, with MLServer's and KServe's own mark for a data frame.
    The protocol has no word for missing values. MLServer (1.7.1 was checked) reads `null` as NaN in FP64 tensors, and
    as None or NaN in BYTES, depending on its pandas; it fails on one in INT64 and takes one in BOOL for false, so such
    rows are not sent. Other servers were not checked and may refuse `null`.

    >>> V2().endpoint("/v2/models/iris")
    '/v2/models/iris/infer'
    """

    def __init__(self, output: str | None = None):
        self.output = output

    def endpoint(self, path: str) -> str:
        """The path of the model with /infer at its end."""
        match = re.fullmatch(r"(.*/v2/models/[^/]+(?:/versions/[^/]+)?)(?:/infer)?/?", path)
        if match is None:
            raise SettingError("original", "a model's URL, .../v2/models/NAME[/versions/V]", f"the path {path!r}")
        return match[1] + "/infer"

    def question(self, rows: Any, ticket: str) -> Any:
        """Tensors, and the output that is wanted."""
        wanted = {} if self.output is None else {"outputs": [{"name": self.output}]}
        if isinstance(rows, np.ndarray):
            data = [value for row in _lists(rows) for value in row]
            mark = {"parameters": {"content_type": "np"}}
            tensor = {"name": "input-0", "shape": list(rows.shape), "datatype": "FP64", **mark, "data": data}
            return {"id": ticket, "inputs": [tensor], **wanted}
        tensors = [_tensor(str(name), rows.iloc[:, j]) for j, name in enumerate(rows.columns)]
        return {"id": ticket, "parameters": {"content_type": "pd"}, "inputs": tensors, **wanted}

    def outputs(self, answer: Any, n: int, ticket: str) -> Any:
        """The only output, or the one that was asked for."""
        if isinstance(answer, dict) and answer.get("id", ticket) not in (ticket, None, ""):
            raise MalformedAnswer("wrong id", f"the answer to another request, {_quoted(answer['id'])}")
        tensors = _at(answer, "outputs")
        names = [_at(tensor, "name") for tensor in tensors] if isinstance(tensors, list) else []
        chosen = [place for place, name in enumerate(names) if self.output in (None, name)]
        if len(chosen) != 1:
            wanted = "one output" if self.output is None else f"one output {self.output!r}"
            listed = ", ".join(map(_quoted, names)) or "none"
            raise MalformedAnswer("not an answer", f"not {wanted} (name it with output) but {listed}", again=False)
        tensor = tensors[chosen[0]]
        return _unflattened(_at(tensor, "data"), _at(tensor, "shape"), n)


class Csv(Wire):
    """Rows as CSV, under a header where columns have names; an answer of one line for each row.

    CSV has no types: labels are words, unless declared classes say what else they are.

    >>> Csv(classes=[0, 1]).decode(b"1\\n0\\n", 2, "")
    [1, 0]
    """

    content_type = "text/csv"

    def __init__(self, classes: Iterable[Any] | None = None):
        self.read = word_reader(classes)

    def encode(self, rows: Any, ticket: str) -> bytes:
        """The rows as CSV."""
        import pandas as pd

        named = not isinstance(rows, np.ndarray)
        return str(pd.DataFrame(rows).to_csv(index=False, header=named, lineterminator="\n")).encode()

    def decode(self, body: bytes, n: int, ticket: str) -> list[Any]:
        """One label for each line, or one list of scores where a line has several fields."""
        try:
            lines = [line for line in csv.reader(io.StringIO(body.decode("utf-8-sig"), newline="")) if line]
        except (csv.Error, UnicodeDecodeError) as error:
            raise MalformedAnswer("not CSV", str(error)) from None
        read = [[self._field(row, field.strip()) for field in line] for row, line in enumerate(lines)]
        return _outputs([line[0] if len(line) == 1 else line for line in read], n)

    def _field(self, row: int, text: str) -> Any:
        if text.lower() in ("", "nan"):
            return None
        try:
            return self.read(text)
        except ValueError:
            found = f"in row {row}, where the declared classes are of another type, {_quoted(text)}"
            raise MalformedAnswer("not a label", found, again=False) from None


class Template(BaseModel):
    """A protocol of one's own, in JSON: the request, and where its answer holds what.

    In `request`, the string "$rows" stands for the rows, as lists or objects, and "$ids" for a list of their ids.
    `answer` is the path to the list of outputs; `label` and `id` are paths inside each of its elements. A path joins
    keys and positions by dots; the empty path is the thing itself. With ids, the outputs may come in any order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    request: Any
    rows: Literal["lists", "objects"]
    answer: str
    label: str | None = None
    id: str | None = None


class Templated(Wire):
    """A protocol that a template describes.

    >>> template = {"request": {"data": "$rows", "version": 2}, "rows": "lists", "answer": "results", "label": "class"}
    >>> wire = Templated(template)
    >>> wire.question(np.array([[0.5, 1.0]]), "")
    {'data': [[0.5, 1.0]], 'version': 2}
    >>> wire.decode(b'{"results": [{"class": "good"}]}', 1, "")
    ['good']
    """

    def __init__(self, template: Any):
        self.template = _template(template)

    def question(self, rows: Any, ticket: str) -> Any:
        """The template's request, filled in."""
        table = _lists(rows) if self.template.rows == "lists" else _objects(rows)
        return _filled(self.template.request, {"$rows": table, "$ids": _ids(ticket, len(rows))})

    def outputs(self, answer: Any, n: int, ticket: str) -> Any:
        """The elements' labels, in the order of the ids where there are some."""
        found = _counted(_at(answer, self.template.answer), n)
        labels = [_at(element, self.template.label or "") for element in found]
        if self.template.id is None:
            return labels
        ids = [_at(element, self.template.id) for element in found]
        places = {identity: place for place, identity in enumerate(map(_quoted, ids))}
        expected = [_quoted(identity) for identity in _ids(ticket, n)]
        if set(places) != set(expected):  # as many as rows, so this also finds an id that comes twice
            strange = next((identity for identity in places if identity not in set(expected)), "one id twice")
            raise MalformedAnswer("wrong id", f"not the ids of the request, but {strange}")
        return [labels[places[identity]] for identity in expected]


PROTOCOLS = ("v2", "instances", "mlflow", "seldon", "csv", "template")


def wire(
    protocol: str | None, *, template: Any = None, output: str | None = None, classes: Iterable[Any] | None = None
) -> Wire:
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


# --- rows into JSON -------------------------------------------------------------------------------------------------


def _lists(rows: Any) -> list[list[Any]]:
    columns = [_cells(f"column {name}", values) for name, values in _columns(rows)]
    return [list(row) for row in zip(*columns, strict=True)]


def _objects(rows: Any) -> list[dict[str, Any]]:
    names = [name for name, _ in _columns(rows)]
    return [dict(zip(names, row, strict=True)) for row in _lists(rows)]


def _columns(rows: Any) -> list[tuple[str, Any]]:
    """The columns by name; those of an array are called as a space calls them."""
    if isinstance(rows, np.ndarray):
        return [(f"x{j}", rows[:, j]) for j in range(rows.shape[1])]
    return [(str(name), rows.iloc[:, j]) for j, name in enumerate(rows.columns)]


def _cells(where: str, values: Any) -> list[Any]:
    """A column's values as JSON has them, None where they are missing."""
    import pandas as pd

    missing = pd.isna(values)
    return [
        None if gone else _cell(where, row, value)
        for row, (value, gone) in enumerate(zip(values.astype(object).tolist(), missing, strict=True))
    ]


def _cell(where: str, row: int, value: Any) -> str | bool | int | float:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, (str, bool, int)) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    expected, hint = "a word, a boolean, a finite number or a missing value", "JSON has no way to write it"
    raise OriginalError(where, expected, f"{plain!r} in row {row}", hint)


def _tensor(name: str, column: pd.Series) -> dict[str, Any]:
    """A column as a V2 tensor. Its datatype depends on its own type alone, so that no row changes another's."""
    import pandas as pd

    typed = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    datatype = DATATYPES.get(pd.api.types.infer_dtype(typed, skipna=True))
    if datatype is None:
        raise OriginalError(f"column {name}", "words, booleans or numbers", f"the type {typed.dtype}")
    data = _cells(f"column {name}", column)
    if None in data and datatype in ("INT64", "BOOL"):
        hint = "the protocol v2 cannot say missing there: describe the column as float64, or use another protocol"
        raise OriginalError(f"column {name}", f"a value in every row of {datatype}", "a missing value", hint)
    mark = {"parameters": {"content_type": "str"}} if datatype == "BYTES" else {}
    return {"name": name, "shape": [len(data), 1], "datatype": datatype, **mark, "data": data}


# --- outputs out of JSON --------------------------------------------------------------------------------------------


def _loaded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:  # ValueError: also a text that is not Unicode, or a too long number
        raise MalformedAnswer("not JSON", f"{error}, in {_quoted(body.decode(errors='replace'))}") from None


def _at(value: Any, path: str) -> Any:
    """What is at a path of keys and positions joined by dots."""
    found = value
    for part in path.split(".") if path else ():
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise MalformedAnswer("not an answer", f"no {path!r} in {_quoted(value)}", again=False) from None
    return found


def _quoted(value: Any) -> str:
    """A value as JSON."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "something nested too deeply"


def _counted(values: Any, n: int) -> list[Any]:
    if not isinstance(values, list):
        raise MalformedAnswer("not an answer", f"not a list of outputs but {_quoted(values)}", again=False)
    if len(values) != n:
        raise MalformedAnswer("wrong count", f"{len(values)} outputs for {n} rows")
    return values


def _outputs(values: Any, n: int) -> list[Any]:
    """n outputs, each a label or score, or all of them lists of as many."""
    found = _counted(values, n)
    widths = {len(value) if isinstance(value, list) else None for value in found}
    if len(widths) > 1:
        raise MalformedAnswer("wrong count", "rows of different lengths")
    for row, value in enumerate(found):
        for single in value if isinstance(value, list) else [value]:
            _check_output(single, row)
    return found


def _check_output(value: Any, row: int) -> None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise MalformedAnswer("NaN", f"in row {row}, {_quoted(value)}")
    if isinstance(value, str):
        # Neither survives on the way to a file: a lone surrogate is no text, and NumPy drops a NUL at the end.
        fine = "\0" not in value and not re.search("[\ud800-\udfff]", value)
    else:
        fine = isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63)
    if not fine:
        where = f"in row {row}" + (
            " (the protocol template can say where in it the label is)" * isinstance(value, dict)
        )
        raise MalformedAnswer("not a label", f"{where}, {_quoted(value)}", again=False)


def _unflattened(data: Any, shape: Any, n: int) -> list[Any]:
    """A tensor of one or two dimensions as labels or rows of scores; its data may be flat or nested."""
    if not isinstance(data, list) or not isinstance(shape, list) or len(shape) not in (1, 2):
        found = f"not data and their shape, of one or two dimensions, but {_quoted(shape)} and {_quoted(data)}"
        raise MalformedAnswer("not an answer", found, again=False)
    flat = data
    if len(shape) == 2 and data and all(isinstance(row, list) for row in data):
        flat = [value for row in data for value in row]
    width = shape[1] if len(shape) == 2 else 1
    if not all(type(size) is int and size >= 0 for size in shape) or shape[0] * width != len(flat):
        raise MalformedAnswer("wrong count", f"{len(flat)} outputs in a tensor of shape {_quoted(shape)}")
    if shape[0] != n:
        raise MalformedAnswer("wrong count", f"a tensor of shape {shape} for {n} rows")
    return flat if len(shape) == 1 else [flat[row * width : (row + 1) * width] for row in range(n)]


# --- templates ------------------------------------------------------------------------------------------------------


def _template(given: Any) -> Template:
    """A template from what it says, or from the JSON file that says it."""
    where = "template"
    if isinstance(given, (str, Path)):
        where = f"template {given}"
        try:
            given = json.loads(Path(given).read_text())
        except (OSError, ValueError, RecursionError) as error:
            raise SettingError(where, "a file of JSON", f"{type(error).__name__}: {error}") from error
    try:
        found = Template.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'it'}: {p['msg']}" for p in error.errors())
        raise SettingError(where, "request, rows, answer, and perhaps label and id", problems) from error
    try:
        text = json.dumps(found.request, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingError(where, "a request that is JSON", str(error)) from error
    if not _holds(found.request, "$rows"):
        raise SettingError(where, 'the string "$rows" in its request', text)
    if found.id is not None and not _holds(found.request, "$ids"):
        raise SettingError(where, 'the string "$ids" in its request, since id is given', "none")
    return found


def _holds(value: Any, word: str) -> bool:
    if isinstance(value, (list, dict)):
        return any(_holds(part, word) for part in (value.values() if isinstance(value, dict) else value))
    return bool(value == word)


def _filled(value: Any, words: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(part, words) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, words) for part in value]
    return words.get(value, value) if isinstance(value, str) else value


def _ids(ticket: str, n: int) -> list[str]:
    return [f"{ticket}-{row}" for row in range(n)]
