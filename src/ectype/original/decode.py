"""How an original's outputs become labels: as they are, by the highest score, or by a threshold. Never guessed.

`scores` is the highest score too; a copy then learns from the scores themselves as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import numpy as np

from ectype._common import validation
from ectype.errors import OriginalError, SettingError
from ectype.original.base import Original
from ectype.original.labels import Labels, label_array
from ectype.original.options import THRESHOLD
from ectype.types import Classes, Label

DECODINGS = ("label", "argmax", "threshold", "scores")
# How CSV writes booleans and numbers. What begins with a zero names something.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Label]], ...] = (
    (re.compile("true|false", re.IGNORECASE), lambda text: text.lower() == "true"),
    (re.compile("-?[1-9][0-9]{0,17}|0"), int),
    (re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE), float),
)

Decode = Callable[[object], object]
"""From an original's outputs to labels."""


def check_decoding(decode: str | None) -> str:
    """A valid name of a decoding; `label` if none is given."""
    return validation.choice("decode", "label" if decode is None else decode, DECODINGS)


def decoder(decode: str | None, classes: Classes = None, threshold: float | None = None) -> Decode:
    """The function from raw outputs to labels that a decoding names.

    `argmax` and `threshold` take the labels from `classes`, in the order of the original's outputs (for a threshold:
    below it, then at or above it); without classes they are 0, 1, ...

    >>> decoder("argmax", ["no", "yes"])([[0.9, 0.1], [0.2, 0.8]]).tolist()
    ['no', 'yes']
    >>> decoder("threshold", threshold=0.7)([0.6, 0.7]).tolist()
    [0, 1]
    """
    kind = check_decoding(decode)
    if threshold is not None and kind != "threshold":
        raise SettingError("threshold", "decode='threshold' beside it", f"decode={decode!r}")
    if kind == "label":
        return lambda outputs: outputs
    listed = None if classes is None else list(classes)
    labels = None if listed is None else Labels(listed).decode(Labels(listed).find(label_array(listed)))
    if kind == "scores" and labels is None:
        hint = "name them with classes=[...] or --classes"
        raise SettingError("classes", "the labels in the order of the scores", "none", hint)
    if kind in ("argmax", "scores"):
        return lambda outputs: _argmax(_scores(outputs, labels), labels)
    if labels is not None and len(labels) != 2:
        raise SettingError("classes", "two labels to tell apart by a threshold", f"{len(labels)}")
    cut = validation.number("threshold", THRESHOLD if threshold is None else threshold, "a number", -np.inf, np.inf)
    return lambda outputs: _threshold(_second(outputs, labels), labels, cut)


def with_decoding(
    original: Original, classes: Classes, decode: str | None = None, threshold: float | None = None
) -> Original:
    """An original whose outputs are read in this way; `classes`, where given, in the order of its outputs."""
    listed = None if classes is None else list(classes)
    read, known = decoder(decode, listed, threshold), listed
    if decode in ("argmax", "threshold") and listed is None:
        known = [0, 1] if decode == "threshold" else None
    elif listed is None and original.declared is not None:
        known = original.declared.classes.tolist()
    predict, other = original.predict, original.replace()
    other.predict = lambda rows: read(predict(rows))
    other.declared = None if known is None else Labels(known)
    other.predict_with_scores = original.predict_with_scores if decode in (None, "label") and listed is None else None
    if decode == "scores":
        assert listed is not None
        named = label_array(listed)
        other.predict_with_scores, other.scored = lambda rows: _with_scores(read, predict(rows), named), True
    return other


def _with_scores(read: Decode, outputs: object, labels: np.ndarray) -> tuple[object, object]:
    """Labels, and the scores in the order of the sorted classes."""
    return read(outputs), _scores(outputs, labels)[:, np.argsort(labels)]


def word_reader(classes: Classes) -> Callable[[str], Label]:
    """From a word, as a program prints it or CSV has it, to a label of the type of the declared classes.

    ValueError says what the word should have been. Words for missing values are labels if they are declared.

    >>> word_reader([1, 2])("2"), word_reader(None)("2"), word_reader([True, False])("true")
    (2, '2', True)
    >>> word_reader(None)("nan")
    Traceback (most recent call last):
        ...
    ValueError: a label, or that word among the declared classes,
    """
    known = None if classes is None else Labels(classes).classes
    kind = "U" if known is None else known.dtype.kind
    words = set() if known is None else set(known.tolist())

    def word(text: str) -> str:
        if is_gap(text) and text not in words:
            raise ValueError("a label, or that word among the declared classes," if text.strip() else "a label")
        return text

    return {"b": _boolean, "i": _whole, "u": _whole, "f": _number}.get(kind, word)


def is_gap(text: str) -> bool:
    """Whether a word stands for a missing label."""
    return text.strip().lower() in ("", "nan")


def as_written(words: Sequence[str]) -> list[Label]:
    """Words as booleans or numbers, if they are and are told apart by them; else as they are.

    >>> as_written(["1", "0", "1"]), as_written(["01", "1"]), as_written(["1", "1.0"])
    ([1, 0, 1], ['01', '1'], ['1', '1.0'])
    """
    different = set(words)
    for form, read in _FORMS:
        found = {word: read(word) for word in different if form.fullmatch(word)}
        if len(different) == len(found) == len(set(found.values())):
            return [found[word] for word in words]
    return list(words)


def _boolean(text: str) -> bool:
    found = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    if found is None:
        raise ValueError("true, false, 1 or 0")
    return found


def _number(text: str) -> float:
    try:
        validation.numerals([text])
        return float(text)
    except ValueError as error:
        raise ValueError("a number") from error


def _whole(text: str) -> int:
    if re.fullmatch("[+-]?[0-9]{1,20}", text.strip()):  # floats are not exact beyond 2**53
        return int(text)
    number = _number(text)
    if not number.is_integer() or abs(number) >= 2**63:
        raise ValueError("a whole number")
    return int(number)


def _scores(outputs: object, labels: np.ndarray | None = None) -> np.ndarray:
    if isinstance(outputs, list) and outputs and all(isinstance(output, dict) for output in outputs):
        return _by_class(outputs, labels)
    try:
        scores = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OriginalError("the original's answers", "a table of scores", str(error)) from error
    if np.isnan(scores).any():
        row = int(np.argwhere(np.isnan(scores))[0][0])
        raise OriginalError("the original's answers", "scores", f"NaN in row {row}")
    return scores


def _second(outputs: object, labels: np.ndarray | None) -> np.ndarray:
    """The scores to compare with a threshold; of scores by class, those of the second."""
    found = _scores(outputs, labels)
    return found[:, 1] if isinstance(outputs, list) and outputs and isinstance(outputs[0], dict) else found


def _by_class(outputs: list[dict[str, float]], labels: np.ndarray | None) -> np.ndarray:
    """Scores that come by the name of their class, in the order of the classes; those that were left out are lowest."""
    where, hint = "the original's answers", "name its classes, all of them, with classes=[...] or --classes"
    if labels is None:
        raise OriginalError(where, "scores of classes that were named", f"the classes {list(outputs[0])[:8]}", hint)
    places = {label if isinstance(label, str) else json.dumps(label): at for at, label in enumerate(labels.tolist())}
    table = np.full((len(outputs), len(places)), -np.inf)
    for row, scores in enumerate(outputs):
        for name, score in scores.items():
            if name not in places:
                raise OriginalError(where, f"scores of the classes {list(places)[:8]}", f"{name!r} in row {row}", hint)
            table[row, places[name]] = score
    return table


def _argmax(scores: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    width = "at least 2 scores" if labels is None else f"{len(labels)} scores, one for each class"
    if scores.ndim != 2 or scores.shape[1] < 2 or (labels is not None and scores.shape[1] != len(labels)):
        raise OriginalError("the original's answers", f"{width}, in every row", f"an array of shape {scores.shape}")
    codes = scores.argmax(axis=1)
    return codes if labels is None else labels[codes]


def _threshold(scores: np.ndarray, labels: np.ndarray | None, cut: float) -> np.ndarray:
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1:
        hint = "use argmax for several scores a row"
        raise OriginalError("the original's answers", "one score per row", f"an array of shape {scores.shape}", hint)
    above = (scores >= cut).astype(int)
    return above if labels is None else labels[above]
