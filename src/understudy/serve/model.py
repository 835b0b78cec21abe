"""A copy as a model of the Open Inference Protocol V2: its metadata, and from the body of a request to the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from understudy.models.classifier import CopyClassifier
from understudy.serve.messages import Refusal, shown
from understudy.serve.reading import Reader, Rows, datatype
from understudy.serve.tensors import read_tensor
from understudy.space.wire import of_labels
from understudy.types import Json

LABELS, SCORES = "predict", "predict_proba"


@dataclass(frozen=True)
class Question:
    """A request that was read: its id, its rows, and the outputs that are wanted."""

    id: str | None
    rows: Rows
    wanted: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """The body of an answer, and the codes of the copy's labels."""

    body: bytes
    codes: np.ndarray


class Model:
    """A copy under a name and a version. It holds no state: any thread may ask it."""

    def __init__(self, copy: CopyClassifier, name: str, version: str, most_rows: int):
        self.copy, self.name, self.version, self.most_rows = copy, name, version, most_rows
        self._read = Reader(copy.space)
        self.answer(Question(None, Rows(copy.space.sample(1, np.random.default_rng(0)), []), (SCORES,)))  # it can

    def metadata(self) -> Json:
        """What the protocol tells of a model: its inputs and outputs, -1 for the number of rows."""
        space, classes = self.copy.space, self.copy.classes
        inputs = [{"name": "inputs", "datatype": "FP64", "shape": [-1, space.d]}]
        if space.frame:
            inputs = [{"name": c.name, "datatype": datatype(c), "shape": [-1, 1]} for c in space.columns]
        listed = {"parameters": {"classes": classes.tolist()}}
        return {
            "name": self.name,
            "versions": [self.version],
            "platform": f"understudy_{self.copy.model.kind}",
            "inputs": inputs,
            "outputs": [
                {"name": LABELS, "datatype": of_labels(classes).v2, "shape": [-1], **listed},
                {"name": SCORES, "datatype": "FP64", "shape": [-1, len(classes)], **listed},
            ],
        }

    def question(self, body: bytes) -> Question:
        """What the body of a request asks, or a `Refusal` that says what is wrong with it."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refusal("body", "JSON", f"{type(error).__name__}: {str(error)[:100]}") from None
        if not isinstance(content, dict):
            raise Refusal("body", "an object", shown(content))
        identity, wanted = content.get("id"), _wanted(content.get("outputs"))
        if identity is not None and not isinstance(identity, str):
            raise Refusal("id", "a string", shown(identity))
        inputs = content.get("inputs")
        if not isinstance(inputs, list) or not inputs:
            raise Refusal("inputs", "a list of tensors", shown(inputs))
        tensors = [read_tensor(tensor, f"inputs[{place}]") for place, tensor in enumerate(inputs)]
        rows = tensors[0].rows
        if any(tensor.rows != rows for tensor in tensors):
            raise Refusal("inputs", "as many rows in every input", "different numbers of rows")
        if rows == 0:
            raise Refusal("inputs", "at least one row", "none")
        if rows > self.most_rows:
            raise Refusal("inputs", f"at most {self.most_rows} rows", rows, "ask in several requests", status=413)
        return Question(identity, self._read(tensors), wanted)

    def answer(self, question: Question) -> Answer:
        """The copy's answer: its labels, its probabilities, or both."""
        probabilities = self.copy.model.probabilities(self.copy.encoding(question.rows.matrix))
        codes = probabilities.argmax(axis=1)
        outputs = [self._labels(codes) if name == LABELS else _scores(probabilities) for name in question.wanted]
        echoed = {} if question.id is None else {"id": question.id}
        content = {"model_name": self.name, "model_version": self.version, **echoed, "outputs": outputs}
        return Answer(json.dumps(content, separators=(",", ":")).encode(), codes)

    def _labels(self, codes: np.ndarray) -> Json:
        kind = of_labels(self.copy.classes).v2
        mark = {"parameters": {"content_type": "str"}} if kind == "BYTES" else {}
        data = self.copy.classes[codes].tolist()
        return {"name": LABELS, "datatype": kind, "shape": [len(codes)], **mark, "data": data}


def _scores(probabilities: np.ndarray) -> Json:
    data = probabilities.astype(np.float64).ravel().tolist()
    return {"name": SCORES, "datatype": "FP64", "shape": list(probabilities.shape), "data": data}


def _wanted(outputs: object) -> tuple[str, ...]:
    if outputs is None or outputs == []:
        return (LABELS,)
    if not isinstance(outputs, list):
        raise Refusal("outputs", "a list", shown(outputs))
    names: dict[str, None] = {}  # each once, in their order
    for output in outputs:
        name = output.get("name") if isinstance(output, dict) else output
        if not isinstance(name, str) or name not in (LABELS, SCORES):
            raise Refusal("outputs", f"the names {LABELS} or {SCORES}", shown(name))
        names[name] = None
    return tuple(names)
