"""The labels of an original, and their codes inside the algorithm."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ectype._common.formatting import shorten
from ectype.errors import OriginalError, SettingError
from ectype.types import Label

# What a label may be. Anything else could not be written to a file and read back the same.
LABEL_TYPES = (bool, int, float, str)
# The most characters of a label. NumPy keeps as many for every row as the longest has, four bytes each.
MOST_CHARACTERS = 1000
# The most bytes of an array of all labels there are.
MOST_BYTES = 2**28
# What to do about answers that are no labels: said wherever they are refused.
HINT = "see what the original returns for these rows; a function around it can give its answers other names"
# What a label has no use for, and what it would be lost with: NumPy drops a NUL at the end of a text.
_ODD = re.compile("[\0\ud800-\udfff]")


class Labels:
    """The classes an original may answer, sorted, and their codes 0, 1, ... inside the algorithm.

    >>> labels = Labels(["no", "yes"])
    >>> labels.encode(np.array(["yes", "no", "yes"]))
    array([1, 0, 1], dtype=int32)
    >>> labels.decode(np.array([1, 0]))
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, classes: Iterable[Label]):
        if isinstance(classes, str):
            raise SettingError("classes", "a list of labels", repr(classes))
        try:
            array = classes_array(classes if isinstance(classes, np.ndarray) else list(classes))
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
        same = np.ones(len(answers), bool)
        if answers.dtype != self.classes.dtype and answers.dtype.kind != "U":
            answers, same = _cast(answers, self.classes.dtype)
        codes = np.minimum(np.searchsorted(self.classes, answers), len(self) - 1)
        return np.where(same & (self.classes[codes] == answers), codes, -1).astype(np.int32)

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


def _cast(numbers: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in another type, and which of them are the same there: beyond 2**53, neighbours become one float."""
    with np.errstate(all="ignore"):
        found = numbers.astype(dtype)
        return found, (found.astype(numbers.dtype) == numbers) & ((found < 0) == (numbers < 0))


def kind_of(labels: np.ndarray) -> str:
    """The kind of labels, in a word; labels of two kinds are never equal.

    >>> kind_of(np.array([1, 2])), kind_of(np.array(["1", "2"]))
    ('numbers', 'words')
    """
    return {"b": "booleans", "U": "words"}.get(labels.dtype.kind, "numbers")


def concatenate_labels(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Labels of several requests as one array; an error if two that differ would be one in it.

    >>> concatenate_labels([np.array(["no"]), np.array(["maybe"])])
    array(['no', 'maybe'], dtype='<U5')
    """
    there = [part for part in parts if len(part)] or list(parts[:1])
    if len({part.dtype.kind for part in there}) < 2:
        return np.concatenate(there)
    try:
        return label_array([label for part in there for label in part.tolist()])
    except ValueError as error:
        raise OriginalError("the original's answers", "labels of one type", str(error), HINT) from error


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


def classes_array(labels: Sequence[Any] | np.ndarray) -> np.ndarray:
    """All labels there are as an array; ValueError if it would take too much memory, before it is made.

    >>> classes_array(["x" * 1000, *map(str, range(100_000))])
    Traceback (most recent call last):
        ...
    ValueError: 100001 labels of up to 1000 characters, which take more than 268435456 bytes
    """
    if not isinstance(labels, np.ndarray):
        refuse_long(labels)
        longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
        if 4 * longest * len(labels) > MOST_BYTES:
            raise ValueError(
                f"{len(labels)} labels of up to {longest} characters, which take more than {MOST_BYTES} bytes"
            )
    return label_array(labels)


def label_array(labels: object) -> np.ndarray:
    """Labels as an array of booleans, whole numbers, numbers or strings; ValueError for anything else.

    No two labels become one in it: what an array cannot tell apart is refused.

    >>> label_array(["a\\0", "a"])
    Traceback (most recent call last):
        ...
    ValueError: 'a\\x00' in row 0: a text with a NUL character, which arrays and files drop or refuse
    """
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        raise ValueError(f"a masked value in row {int(np.argmax(np.ma.getmaskarray(labels)))}")
    if not hasattr(labels, "__array__"):
        refuse_long(listed := list(labels))  # type: ignore[call-overload]
        return _from_values(listed)
    refuse_long(array := np.asarray(labels))
    if array.dtype.kind not in "biufUO":  # NumPy's dates would become whole numbers
        raise ValueError(f"values of type {array.dtype}, where labels are all booleans, all numbers or all strings")
    if array.dtype.kind == "O":
        return _from_values(array.tolist())
    if array.dtype.kind == "f":
        return _as_double(array)
    if array.dtype.kind == "U":
        _refuse_odd(array.ravel().tolist())
    return array


def _from_values(values: Sequence[object]) -> np.ndarray:
    times = (np.datetime64, np.timedelta64)  # which become whole numbers
    plain = [
        value.item() if isinstance(value, np.generic) and not isinstance(value, times) else value for value in values
    ]
    for row, value in enumerate(plain):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            raise ValueError(f"{value} in row {row}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{'NaN' if math.isnan(value) else value} in row {row}")
    kinds = {next((kind for kind in LABEL_TYPES if type(value) is kind), type(value)) for value in plain}
    if not kinds <= set(LABEL_TYPES) or (len(kinds) > 1 and kinds != {int, float}):
        found = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"values of type {found}, where labels are all booleans, all numbers or all strings")
    if kinds == {str}:
        _refuse_odd(plain)
    return _of_numbers(plain, kinds) if int in kinds else np.array(plain)


def _of_numbers(values: Sequence[Any], kinds: set[type]) -> np.ndarray:
    """Whole numbers, perhaps with fractions among them, in a type that holds each of them exactly."""
    for dtype in (np.float64,) if float in kinds else (np.int64, np.uint64):
        with suppress(OverflowError):
            found = np.array(values, dtype)
            if found.tolist() == list(values):
                return found
    row = max((row for row, value in enumerate(values) if type(value) is int), key=lambda row: abs(values[row]))
    most = "at most 2**53 beside fractions" if float in kinds else "from -2**63 to 2**63 - 1, or from 0 to 2**64 - 1"
    large = f"a whole number of {values[row].bit_length()} bits in row {row}"
    raise ValueError(f"{large}, where labels are {most}; as words they may be any")


def _as_double(array: np.ndarray) -> np.ndarray:
    """Floats, if they are finite, and no finer than those of 64 bits."""
    wrong = ~np.isfinite(array)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{'NaN' if np.isnan(array.ravel()[row]) else array.ravel()[row]} in row {row}")
    if array.dtype.itemsize <= 8:
        return array
    double, same = _cast(array, np.dtype(np.float64))
    if not same.all():
        raise ValueError(f"{array[~same][0]} in row {int(np.argmin(same))}, with more digits than 64 bits have")
    return double


def _refuse_odd(texts: Sequence[Any]) -> None:
    """ValueError for a text that is not the same once it is in an array, or in a file."""
    with suppress(UnicodeEncodeError):
        if b"\0" not in "".join(texts).encode():
            return
    row = next(row for row, text in enumerate(texts) if _ODD.search(text))
    odd = "a NUL character" if "\0" in texts[row] else "half a surrogate pair"
    shown = shorten(repr(texts[row]), 80)
    raise ValueError(f"{shown} in row {row}: a text with {odd}, which arrays and files drop or refuse")
