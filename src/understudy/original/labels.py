"""Labels: what an original may answer, and the codes that stand for it inside the algorithm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from understudy.errors import OriginalError, SettingError
from understudy.types import Label

# What a label may be. Anything else could not be written to a file and read back the same.
LABEL_TYPES = (bool, int, float, str)
# The most characters of a label. NumPy keeps as many for every row as the longest has, four bytes each.
MOST_CHARACTERS = 1000


class Labels:
    """The classes an original may answer, sorted, and their codes 0, 1, ... inside the algorithm.

    >>> labels = Labels(["no", "yes"])
    >>> labels.encode(np.array(["yes", "no", "yes"]))
    array([1, 0, 1], dtype=int32)
    >>> labels.decode(np.array([1, 0]))
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, classes: Iterable[Label]):
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


def refuse_long(labels: object) -> None:
    """ValueError if a label is too long, before an array is made of them.

    >>> refuse_long(["good", "bad " * 1000])
    Traceback (most recent call last):
        ...
    ValueError: a text of 4000 characters in row 1, where labels have at most 1000
    """
    if isinstance(labels, np.ndarray) and (labels.dtype.kind != "U" or labels.dtype.itemsize <= 4 * MOST_CHARACTERS):
        labels = labels if labels.dtype.kind == "O" else ()
    for row, label in enumerate(labels if isinstance(labels, (list, tuple, np.ndarray)) else ()):
        if isinstance(label, str) and len(label) > MOST_CHARACTERS:
            found = f"a text of {len(label)} characters in row {row}"
            raise ValueError(f"{found}, where labels have at most {MOST_CHARACTERS}")


def label_array(labels: object) -> np.ndarray:
    """Labels as an array of booleans, whole numbers, numbers or strings; ValueError says what else they are."""
    refuse_long(labels)
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        raise ValueError(f"a masked value in row {int(np.argmax(np.ma.getmaskarray(labels)))}")
    array = np.asarray(labels)
    if isinstance(labels, (list, tuple)) or array.dtype.kind not in "biufU":
        return _from_values(labels if isinstance(labels, (list, tuple)) else array.tolist())
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), bool)
    if missing.any():
        raise ValueError(f"NaN in row {int(np.argmax(missing))}")
    return array


def _from_values(values: Sequence[object]) -> np.ndarray:
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
