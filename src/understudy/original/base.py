"""What every original is: rows in, labels out, answers checked."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias, cast

import numpy as np

from understudy.errors import OriginalError
from understudy.original.labels import Labels, label_array
from understudy.types import Classes, Frame, Table

# Rows asked at once, unless an original says otherwise: bounds what a space and an original need in memory.
CHUNK = 8192

Predict: TypeAlias = Callable[[Any], object]
"""From rows, as an original takes them, to its answers, which may be anything until they are checked."""


class Original:
    """A classifier that may only be asked for hard labels.

    `predict` takes rows and gives one label per row. `classes` declares the labels it may answer; undeclared, they are
    those that it answers.

    What a run needs to know to ask well: `request_rows`, the most rows it takes at once; `concurrency`, how many such
    requests it may have at the same time (above 1, `predict` is called from several threads); `fingerprint`, what tells
    this very model from another of the same name, where that is known.

    `failures` counts by cause the attempts that came to nothing, even where a later one succeeded.

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
        self.failures: Counter[str] = Counter()
        self.stop: Callable[[], None] = lambda: None  # gives up requests that wait for another attempt
        self.stored: tuple[Frame, np.ndarray] | None = (
            None  # rows and their answers, if these are all that can be asked
        )

    def but(self, classes: Classes = None, name: str | None = None) -> Self:
        """The same original under other declared classes, or another name."""
        other = copy.copy(self)
        other.declared = self.declared if classes is None else Labels(classes)
        other.name = name or self.name
        return other

    def answer(self, rows: Table) -> np.ndarray:
        """The original's labels for these rows, one each, or an error that says what came instead."""
        n, width = rows.shape
        try:
            answers = self.predict(rows)
        except OriginalError:  # what it could say better itself
            raise
        except Exception as error:
            expected, found = f"labels for {n} rows of {width} columns", f"{type(error).__name__}: {error}"
            hint = "check that it is fitted, and that the space has the columns it takes"
            raise OriginalError(self.name, expected, found, hint) from error
        return self._checked(answers, n)

    def _checked(self, answers: object, n: int) -> np.ndarray:
        """Answers as labels, if they are n of them."""
        where, shape = f"{self.name}'s answers", self._shape(answers, n)
        try:
            array = label_array(answers if len(shape) == 1 else np.asarray(answers)[:, 0])
        except (TypeError, ValueError) as error:
            raise OriginalError(where, "labels", str(error), "see what the original returns for these rows") from error
        self._refuse_scores(array, where)
        return array

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
            raise OriginalError(where, per_row, f"answers of shape {shape}", hint)
        return shape

    def _refuse_scores(self, array: np.ndarray, where: str) -> None:
        fractions = array[array != np.round(array)] if array.dtype.kind == "f" else array[:0]
        if len(fractions) and (self.declared is None or (self.declared.find(array) < 0).any()):
            found = f"fractions such as {fractions[0]}: scores or probabilities"
            hint = 'say how to read them: decode="threshold" or --decode threshold takes those of at least 0.5'
            raise OriginalError(where, "labels", found, hint)
