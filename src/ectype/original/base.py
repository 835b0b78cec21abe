"""An original: takes rows, gives labels and, on request, scores; its answers are checked."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np

from ectype.errors import AnswerCountError, OriginalError, SettingError
from ectype.original.attempt_meter import FREE, AttemptGate, AttemptMeter, GatedMeter, metered_by
from ectype.original.labels import HINT, Labels, concatenate_labels, kind_of, label_array, refuse_long
from ectype.original.scores import probabilities
from ectype.types import Classes, Frame, Json, Table

# Rows asked at once, unless an original says otherwise: bounds what a space and an original need in memory.
CHUNK = 8192

T = TypeVar("T")
Predict: TypeAlias = Callable[[Any], object]
"""From rows, as an original takes them, to its answers, which may be anything until they are checked."""

PredictWithScores: TypeAlias = Callable[[Any], tuple[object, object]]
"""From rows to labels and to probabilities, a column for each declared class; likewise unchecked."""


@dataclass(frozen=True)
class Answers:
    """Answers to some rows: labels and, if they were asked for, a probability for each class."""

    labels: np.ndarray
    scores: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def concatenate(cls, parts: Iterable[Answers]) -> Answers:
        """The answers to several parts of the rows, joined."""
        listed = list(parts)
        scores = [part.scores for part in listed if part.scores is not None]
        labels = concatenate_labels([part.labels for part in listed])
        return cls(labels, np.concatenate(scores) if len(scores) == len(listed) else None)


LabelledRows: TypeAlias = tuple[np.ndarray, Answers]
"""Rows of a space's matrix, or encoded, and the answers to them."""


def concatenate(chunks: Iterable[LabelledRows]) -> LabelledRows:
    """Chunks of labelled rows, joined."""
    rows, said = zip(*chunks, strict=True)
    return np.concatenate(rows), Answers.concatenate(said)


class Original:
    """A classifier that is asked for hard labels, and for nothing else unless the user says so.

    `predict` takes rows and gives one label per row. `classes` declares the labels it may answer; undeclared, they are
    those that it answers.

    What a run needs to know to ask well: `request_rows`, the most rows it takes at once; `concurrency`, how many such
    requests it may have at the same time (above 1, `predict` is called from several threads); `remote`, whether it is
    far enough that each of them may wait until its announcement is on disk; `fingerprint`, what tells this very model
    from another of the same name, where that is known; `opened`, what was said about how to ask it and to read its
    answers, as far as that decides what a label means; `model`, the object that answers, if it is one here.

    `gate`, if there is one, decides when a request may be sent: it may be shared with other runs.

    `failures` counts failed attempts by cause, even where a later attempt succeeded. `predict_with_scores` gives labels
    and probabilities, where the original has them; it is used once the original is `scored`.

    >>> sign = Original(lambda rows: rows[:, 0] > 0)
    >>> sign.answer(np.array([[1.0], [-1.0]]))
    array([ True, False])
    """

    def __init__(
        self,
        predict: Predict,
        classes: Classes = None,
        *,
        d: int | None = None,
        names: Sequence[str] | None = None,
        name: str = "original",
        request_rows: int = CHUNK,
        concurrency: int = 1,
        fingerprint: str | None = None,
    ):
        self.predict, self.d, self.name = predict, d, name
        self.names = None if names is None else tuple(names)
        self.declared = None if classes is None else Labels(classes)
        self.request_rows, self.concurrency, self.fingerprint = request_rows, concurrency, fingerprint
        self.remote = False
        self.gate: AttemptGate | None = None
        self.opened: Json = {}
        self.vendor: Json | None = None  # how to open it again, without secrets, where `open_original` opened it
        self.model: object = None
        self.failures: Counter[str] = Counter()
        self.predict_with_scores: PredictWithScores | None = None
        self.scored = False
        self._answered: str | None = None  # the kind of its labels, once it gave some
        self.stop: Callable[[], None] = lambda: None  # gives up requests that wait for another attempt
        self.reopen: Callable[[], Original] | None = None  # opens it again: one that failed is not asked any more
        self.stored: tuple[Frame, np.ndarray] | None = (
            None  # rows and their answers, if these are all that can be asked
        )

    def replace(self, classes: Classes = None, name: str | None = None) -> Self:
        """The same original under other declared classes, or another name."""
        other = copy.copy(self)
        other.declared = self.declared if classes is None else Labels(classes)
        other.name = name or self.name
        return other

    def with_scores(self, wanted: bool = True) -> Self:
        """The same original, asked for its probabilities too, or for labels alone."""
        if wanted and (self.predict_with_scores is None or self.declared is None):
            found = "labels alone" if self.predict_with_scores is None else "scores of classes that nobody named"
            hint = "leave out scores; or, if its outputs are scores, say decode='scores' (--decode scores) and classes"
            raise SettingError("scores", f"an original with a probability for each class: {self.name}", found, hint)
        other = self.replace()
        other.scored = wanted
        return other

    def query(self, rows: Table, meter: AttemptMeter = FREE) -> Answers:
        """The original's labels for these rows and, of one that is scored, the probabilities beside them.

        `meter` counts the attempts that this takes, if it may take more than one.
        """
        if self.gate is None:
            with metered_by(meter):
                return self._query(rows)
        behind = GatedMeter(meter, self.gate, len(rows))
        try:
            with metered_by(behind):
                if not self.remote:  # else every attempt comes to the meter by itself
                    behind.sending()
                return self._query(rows)
        finally:
            behind.leave()

    def _query(self, rows: Table) -> Answers:
        if not self.scored:
            return Answers(self.answer(rows))
        assert self.predict_with_scores is not None
        assert self.declared is not None
        labels, scores = self._called(self.predict_with_scores, rows)
        return Answers(self._checked(labels, len(rows)), probabilities(scores, len(rows), self.declared, self.name))

    def answer(self, rows: Table) -> np.ndarray:
        """The original's labels, one for each row; an error if it answers anything else."""
        return self._checked(self._called(self.predict, rows), len(rows))

    def _called(self, call: Callable[[Any], T], rows: Table) -> T:
        """Call the original with these rows; an exception becomes an OriginalError."""
        n, width = rows.shape
        try:
            return call(rows)
        except OriginalError:  # what it could say better itself
            raise
        except Exception as error:
            expected, found = f"labels for {n} rows of {width} columns", f"{type(error).__name__}: {error}"
            hint = "check that it is fitted, and that the space has the columns it takes"
            raise OriginalError(self.name, expected, found, hint) from error

    def _checked(self, answers: object, n: int) -> np.ndarray:
        """Answers as labels, if they are n of them."""
        where = f"{self.name}'s answers"
        try:
            refuse_long(answers)
            shape = self._shape(answers, n)
            array = label_array(answers if len(shape) == 1 else _first_column(answers))
        except (TypeError, ValueError) as error:
            raise OriginalError(where, "labels", str(error), HINT) from error
        self._refuse_scores(array, where)
        self._refuse_mixture(array, where)
        return array

    def _refuse_mixture(self, array: np.ndarray, where: str) -> None:
        """Refuse words after numbers, and the like: "1" and 1 would become one label."""
        kind = kind_of(array)
        if len(array) and self._answered not in (None, kind):
            found = f"{kind} such as {array[0].item()!r}"
            raise OriginalError(where, f"labels of one type, {self._answered} as before", found, HINT)
        self._answered = kind if len(array) else self._answered

    def _shape(self, answers: object, n: int) -> tuple[int, ...]:
        """The shape of answers, if it is one label per row."""
        where, per_row = f"{self.name}'s answers", f"one label per row, {n} in all"
        try:
            shape = np.shape(cast(np.ndarray, answers))
        except ValueError as error:
            raise OriginalError(where, per_row, "rows of different lengths") from error
        if len(shape) == 2 and shape[1] != 1:
            hint = 'say how to read them: decode="argmax" or --decode argmax takes the class of the highest'
            raise OriginalError(where, per_row, f"a table of shape {shape}: scores or one-hot rows", hint)
        if shape not in ((n,), (n, 1)):
            hint = "check that it answers every row it is given, in order"
            raise AnswerCountError(
                where, per_row, f"{shape[0]}" if len(shape) == 1 else f"answers of shape {shape}", hint
            )
        return shape

    def _refuse_scores(self, array: np.ndarray, where: str) -> None:
        fractions = array[array != np.round(array)] if array.dtype.kind == "f" else array[:0]
        if len(fractions) and (self.declared is None or (self.declared.find(array) < 0).any()):
            found = f"fractions such as {fractions[0]}: scores or probabilities"
            hint = 'say how to read them: decode="threshold" or --decode threshold takes those of at least 0.5'
            if ((array < 0) | (array > 1)).any():
                found = f"fractions such as {fractions[0]}: a regression, or scores"
                hint = "make classes of them, by a threshold or by bins (numpy.digitize), and copy that"
            raise OriginalError(where, "labels", found, hint)


def _first_column(answers: Any) -> object:
    """The only column of a table of answers; of lists, without an array in which labels of two types become one."""
    return [row[0] for row in answers] if isinstance(answers, (list, tuple)) else np.asarray(answers)[:, 0]
