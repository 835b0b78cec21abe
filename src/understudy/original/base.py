"""What every original is: rows in, labels out, answers checked, queries counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from understudy.errors import OriginalError, SettingError


class Labels:
    """The classes an original may answer, and their codes 0, 1, ... inside the algorithm.

    >>> labels = Labels(["no", "yes"])
    >>> labels.encode(np.array(["yes", "no", "yes"]))
    array([1, 0, 1], dtype=int32)
    >>> labels.decode(np.array([1, 0]))
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, classes: Iterable[Any]):
        self.classes = _label_array(list(classes), "classes")
        if len(self.classes) == 0:
            raise SettingError("classes", "at least one label", "none")
        try:
            self.classes = np.unique(self.classes)  # sorted, as scikit-learn orders them
        except TypeError as error:
            raise SettingError("classes", "labels of one type", f"{list(classes)[:5]}") from error

    def __len__(self) -> int:
        return len(self.classes)

    def encode(self, answers: np.ndarray) -> np.ndarray:
        """Codes of labels; a label that was never declared is an error."""
        undeclared = "declare every class: Original(..., classes=[...])"
        try:
            codes = np.minimum(np.searchsorted(self.classes, answers), len(self) - 1)
            known = self.classes[codes] == answers
        except TypeError as error:
            raise OriginalError(
                "the original's answers", f"labels among {self}", f"labels of type {answers.dtype}", undeclared
            ) from error
        if not np.all(known):
            row = int(np.argmin(known))
            raise OriginalError(
                f"the original's answer to row {row}",
                f"a label among {self}",
                repr(answers[row].item() if hasattr(answers[row], "item") else answers[row]),
                undeclared,
            )
        return codes.astype(np.int32)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Labels of codes, in the type the original answers."""
        return self.classes[codes]

    def __str__(self) -> str:
        shown = [repr(label) for label in self.classes[:8].tolist()]
        return "[" + ", ".join(shown) + (", ...]" if len(self) > 8 else "]")


class Original:
    """A classifier that may only be asked for hard labels.

    `predict` takes rows and gives one label per row. `classes` declares the labels it may answer; undeclared, the
    labels of the first batch are taken to be all of them.

    >>> parity = Original(lambda rows: rows[:, 0] > 0)
    >>> parity.label(np.array([[1.0], [-1.0]]))
    array([1, 0], dtype=int32)
    >>> parity.labels.classes
    array([False,  True])
    """

    def __init__(
        self,
        predict: Callable[[Any], Any],
        classes: Iterable[Any] | None = None,
        *,
        d: int | None = None,
        names: Sequence[str] | None = None,
        name: str = "original",
    ):
        self.predict, self.d, self.name = predict, d, name
        self.names = None if names is None else tuple(names)
        self._labels = None if classes is None else Labels(classes)

    @property
    def labels(self) -> Labels:
        """The labels it may answer, declared or seen in the first batch."""
        if self._labels is None:
            raise OriginalError(self.name, "declared classes, or a first batch of answers", "neither")
        return self._labels

    def label(self, rows: Any) -> np.ndarray:
        """The codes of the original's answers to these rows."""
        n, width = rows.shape
        try:
            answers = self.predict(rows)
        except Exception as error:
            raise OriginalError(
                self.name,
                f"labels for {n} rows of {width} columns",
                f"{type(error).__name__}: {error}",
                "check that the space has the columns the original was trained on",
            ) from error
        checked = _checked_answers(answers, n, self.name, declared=self._labels)
        if self._labels is None:
            self._labels = Labels(checked)
        return self._labels.encode(checked)


def _label_array(answers: Any, where: str) -> np.ndarray:
    array = np.asarray(answers)
    if array.dtype.kind in "biu" or array.dtype.kind == "U":
        return array
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise OriginalError(
                where,
                "labels",
                f"NaN in row {int(np.argmax(np.isnan(array)))}",
                "see why the original gives no answer there",
            )
        return array
    if array.dtype.kind in "OST":
        values = array.tolist()
        for row, value in enumerate(values):
            if value is None or value != value:
                raise OriginalError(where, "labels", f"{value} in row {row}", "see why there is no answer there")
        kinds = {type(value) for value in values}
        if kinds <= {str} or kinds <= {bool} or kinds <= {int} or kinds <= {bytes}:
            return np.array(values)
        return array
    raise OriginalError(where, "labels that are numbers, strings or booleans", f"values of type {array.dtype}")


def _checked_answers(answers: Any, n: int, where: str, declared: Labels | None) -> np.ndarray:
    """One label per row, or an error that says what came instead."""
    shape = np.shape(answers)
    hint = "wrap it in a function that returns one label per row, e.g. by argmax over the scores"
    if len(shape) == 2:
        raise OriginalError(
            f"{where}'s answers",
            f"one label per row, {n} in all",
            f"a table of shape {shape}: scores or one-hot rows",
            hint,
        )
    if shape != (n,):
        raise OriginalError(
            f"{where}'s answers",
            f"one label per row, {n} in all",
            f"answers of shape {shape}",
            "check that the original answers every row it is given, in order",
        )
    array = _label_array(answers, f"{where}'s answers")
    scores = array.dtype.kind == "f" and not np.all(array == np.round(array))
    if scores and (declared is None or not np.isin(array, declared.classes).all()):
        raise OriginalError(
            f"{where}'s answers",
            "labels",
            f"fractions such as {array[array != np.round(array)][0]}: scores or probabilities",
            "wrap it in a function that decides, e.g. score >= 0.5",
        )
    return array
