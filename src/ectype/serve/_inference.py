"""A copy under a name and a version: its metadata, requests as questions, and answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ectype.models.copy_classifier import CopyClassifier
from ectype.serve import _v2 as v2
from ectype.serve._http_types import HttpResponse, Refusal, too_many
from ectype.serve._plain_json import AnswerStyle, PlainRows, write_answer
from ectype.serve._row_parser import ParsedRows, RowParser, datatype
from ectype.serve._tensors import Tensor
from ectype.serve._v2 import LABELS, SCORES, WHO, InferRequest
from ectype.space import wire_type_of_labels
from ectype.types import Json

Write = Callable[[np.ndarray, np.ndarray, np.ndarray | None], HttpResponse]


class Question(NamedTuple):
    """A request that was read: its rows, and what writes the answer.

    That takes codes of labels, probabilities and, in a cascade, codes of who answered.
    """

    rows: ParsedRows
    writer: Write

    def write(self, codes: np.ndarray, probabilities: np.ndarray, by: np.ndarray | None) -> HttpResponse:
        """The answer; there is none if the copy computed no numbers, of which the first label would be said."""
        if not np.isfinite(probabilities).all():
            row = int(np.argmin(np.isfinite(probabilities).all(axis=1)))
            hint = "certify the copy: its numbers overflow here"
            raise Refusal(f"the copy's answer to row {row}", "probabilities", "no numbers", hint, status=500)
        return self.writer(codes, probabilities, by)


class Answer(NamedTuple):
    """The response, and the codes of its labels."""

    response: HttpResponse
    codes: np.ndarray

    @property
    def body(self) -> bytes:
        """The body of the response."""
        return self.response.body


class InferenceModel:
    """A copy under a name and a version. It holds no state: any thread may ask it."""

    def __init__(self, copy: CopyClassifier, name: str, version: str, most_rows: int):
        self.copy, self.name, self.version, self.most_rows = copy, name, version, most_rows
        self.cascaded = False
        self.plain = PlainRows(copy.space, most_rows)
        self._read, self._write = RowParser(copy.space), v2.InferResponseWriter(name, version, copy.classes)
        self.probabilities(copy.space.sample(1, np.random.default_rng(0)))  # it can

    def metadata(self) -> Json:
        """The model's metadata by V2: its inputs and outputs, with -1 for the number of rows."""
        space, classes = self.copy.space, self.copy.classes
        inputs = [{"name": "inputs", "datatype": "FP64", "shape": [-1, space.d]}]
        if space.frame:
            inputs = [{"name": c.name, "datatype": datatype(c), "shape": [-1, 1]} for c in space.columns]
        listed = {"parameters": {"classes": classes.tolist()}}
        who = [{"name": WHO, "datatype": "BYTES", "shape": [-1]}] if self.cascaded else []
        return {
            "name": self.name,
            "versions": [self.version],
            "platform": f"ectype_{self.copy.model.kind}",
            "inputs": inputs,
            "outputs": [
                {"name": LABELS, "datatype": wire_type_of_labels(classes).v2, "shape": [-1], **listed},
                {"name": SCORES, "datatype": "FP64", "shape": [-1, len(classes)], **listed},
                *who,
            ],
        }

    def question(self, body: bytes, json_size: int | None = None) -> Question:
        """Read a request of V2, or raise a `Refusal` that says what is wrong with it."""
        return self.question_of(v2.read_request(body, json_size))

    def question_of(self, asked: InferRequest) -> Question:
        """The question in a request of V2 that was read."""
        return Question(self.rows(asked.tensors), partial(self._write, asked))

    def plain_question(self, tensors: list[Tensor], style: AnswerStyle) -> Question:
        """The question that plain rows ask."""
        return Question(self.rows(tensors), partial(write_answer, style, self.copy.classes))

    def rows(self, tensors: list[Tensor]) -> ParsedRows:
        """The rows that tensors hold, if all have as many, and not too many."""
        rows = tensors[0].rows
        if any(tensor.rows != rows for tensor in tensors):
            raise Refusal("inputs", "as many rows in every input", "different numbers of rows")
        if rows == 0:
            raise Refusal("inputs", "at least one row", "none")
        if rows > self.most_rows:
            raise too_many(self.most_rows, rows)
        return self._read(tensors)

    def probabilities(self, matrix: np.ndarray) -> np.ndarray:
        """The copy's probabilities for rows of its space."""
        return self.copy.model.probabilities(self.copy.encoding(matrix))

    def answer(self, question: Question) -> Answer:
        """The copy's answer: its labels, its probabilities, or both."""
        probabilities = self.probabilities(question.rows.matrix)
        codes = probabilities.argmax(axis=1)
        return Answer(question.write(codes, probabilities, None), codes)
