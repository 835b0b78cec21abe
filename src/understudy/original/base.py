"""What every original is: rows in, labels out, answers checked."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from understudy.errors import OriginalError, SettingError

# What a label may be. Anything else could not be written to a file and read back the same.
LABEL_TYPES = (bool, int, float, str)
# Rows asked at once, unless an original says otherwise: bounds what a space and an original need in memory.
CHUNK = 8192


class Labels:
    """The classes an original may answer, sorted, and their codes 0, 1, ... inside the algorithm.

    >>> labels = Labels(["no", "yes"])
    >>> labels.encode(np.array(["yes", "no", "yes"]))
    array([1, 0, 1], dtype=int32)
    >>> labels.decode(np.array([1, 0]))
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, classes: Iterable[Any]):
        try:
            listed = np.asarray(classes) if isinstance(classes, np.ndarray) else list(classes)
            array = label_array(listed)
        except (TypeError, ValueError) as error:
            raise SettingError("classes", "labels of one type", str(error)) from error
        if array.ndim != 1 or len(array) == 0:
            raise SettingError("classes", "at least one label", f"an array of shape {array.shape}")
        self.classes = np.unique(array)  # sorted, as scikit-learn orders them

    def __len__(self) -> int:
        return len(self.classes)

    def find(self, answers: np.ndarray) -> np.ndarray:
        """Codes of labels, -1 for a label that is not among the classes."""
        if (answers.dtype.kind == "U") != (self.classes.dtype.kind == "U"):
            return np.full(len(answers), -1, np.int32)
        codes = np.minimum(np.searchsorted(self.classes, answers), len(self) - 1)
        return np.where(self.classes[codes] == answers, codes, -1).astype(np.int32)

    def encode(self, answers: np.ndarray) -> np.ndarray:
        """Codes of labels; a label that was never declared is an error."""
        codes = self.find(answers)
        if (codes < 0).any():
            row = int(np.argmin(codes))
            where, hint = f"the original's answer to row {row}", "declare every class with classes=[...] or --classes"
            raise OriginalError(where, f"a label among {self}", repr(answers[row].item()), hint)
        return codes

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Labels of codes, in the type the original answers."""
        return self.classes[codes]

    def __str__(self) -> str:
        shown = [repr(label) for label in self.classes[:8].tolist()]
        return "[" + ", ".join(shown) + (", ...]" if len(self) > 8 else "]")


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
        predict: Callable[[Any], Any],
        classes: Iterable[Any] | None = None,
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
        self.stored: tuple[Any, np.ndarray] | None = None  # rows and their answers, if these are all that can be asked

    def but(self, classes: Iterable[Any] | None = None, name: str | None = None) -> Self:
        """The same original under other declared classes, or another name."""
        other = copy.copy(self)
        other.declared = self.declared if classes is None else Labels(classes)
        other.name = name or self.name
        return other

    def answer(self, rows: Any) -> np.ndarray:
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
        where, per_row = f"{self.name}'s answers", f"one label per row, {n} in all"
        try:
            shape = np.shape(answers)
        except ValueError as error:
            raise OriginalError(where, per_row, "rows of different lengths") from error
        if len(shape) == 2 and shape[1] != 1:
            hint = 'say how to read them: decode="argmax" or --decode argmax takes the class of the highest'
            raise OriginalError(where, per_row, f"a table of shape {shape}: scores or one-hot rows", hint)
        if shape not in ((n,), (n, 1)):
            hint = "check that it answers every row it is given, in order"
            raise OriginalError(where, per_row, f"answers of shape {shape}", hint)
        try:
            array = label_array(answers if len(shape) == 1 else np.asarray(answers)[:, 0])
        except (TypeError, ValueError) as error:
            raise OriginalError(where, "labels", str(error), "see what the original returns for these rows") from error
        self._refuse_scores(array, where)
        return array

    def _refuse_scores(self, array: np.ndarray, where: str) -> None:
        fractions = array[array != np.round(array)] if array.dtype.kind == "f" else array[:0]
        if len(fractions) and (self.declared is None or (self.declared.find(array) < 0).any()):
            found = f"fractions such as {fractions[0]}: scores or probabilities"
            hint = 'say how to read them: decode="threshold" or --decode threshold takes those of at least 0.5'
            raise OriginalError(where, "labels", found, hint)


def label_array(labels: Any) -> np.ndarray:
    """Labels as an array of booleans, whole numbers, numbers or strings; ValueError says what else they are."""
    if np.ma.is_masked(labels):
        raise ValueError(f"a masked value in row {int(np.argmax(np.ma.getmaskarray(labels)))}")
    array = np.asarray(labels)
    if isinstance(labels, (list, tuple)) or array.dtype.kind not in "biufU":
        return _from_values(labels if isinstance(labels, (list, tuple)) else array.tolist())
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), bool)
    if missing.any():
        raise ValueError(f"NaN in row {int(np.argmax(missing))}")
    return array


def _from_values(values: Sequence[Any]) -> np.ndarray:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    for row, value in enumerate(plain):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            raise ValueError(f"{value} in row {row}")
        if isinstance(value, float) and math.isnan(value):
            raise ValueError(f"NaN in row {row}")
    kinds = {next((kind for kind in LABEL_TYPES if type(value) is kind), type(value)) for value in plain}
    if not kinds <= set(LABEL_TYPES) or (len(kinds) > 1 and kinds != {int, float}):
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"values of type {found}, where labels are all booleans, all numbers or all strings")
    return np.array(plain)
