"""Probabilities that an original gives beside its labels: checked, and compared with these labels."""

from __future__ import annotations

import numpy as np

from ectype.errors import OriginalError, SettingError
from ectype.original.labels import Labels

# Probabilities in single precision, or rounded to three digits, may add up to a little more or less than one.
SUM = 0.01
# How far below the highest the label's own probability may be: where two are equal, either may be the label.
TIE = 1e-6


def probabilities(scores: object, n: int, classes: Labels, name: str) -> np.ndarray:
    """Scores as float32 probabilities, a row each; an error if they are anything else.

    >>> probabilities([[0.25, 0.75]], 1, Labels(["no", "yes"]), "original").tolist()
    [[0.25, 0.75]]
    """
    where, k = f"{name}'s scores", len(classes)
    try:
        table: np.ndarray = np.asarray(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise OriginalError(where, "a table of numbers", str(error)) from error
    if table.shape != (n, k):
        hint = "name its classes in the order of its scores, all of them, with classes=[...] or --classes"
        raise OriginalError(where, f"a score for each of {k} classes, {n} rows", f"shape {table.shape}", hint)
    infinite = (~np.isfinite(table)).any(axis=1)
    _refuse(where, infinite, table, "finite numbers", "see what it answers to such rows")
    hint = "give probabilities: decode='argmax' (--decode argmax) is for other scores, which teach no more than labels"
    odd = np.abs(table.sum(axis=1) - 1) > SUM
    _refuse(where, odd | (table < -SUM).any(axis=1), table, "probabilities, which sum to one", hint)
    table = np.clip(table, 0.0, None)
    return (table / table.sum(axis=1, keepdims=True)).astype(np.float32)


def _refuse(where: str, odd: np.ndarray, table: np.ndarray, expected: str, hint: str) -> None:
    if odd.any():
        row = int(odd.argmax())
        raise OriginalError(where, expected, f"{np.round(table[row], 6).tolist()} in row {row}", hint)


def refuse_other_labels(labels: np.ndarray, scores: np.ndarray, classes: Labels) -> None:
    """Refuse scores whose highest is not the label: a copy that learned from them would decide by another rule.

    >>> refuse_other_labels(np.array(["no"]), np.array([[0.4, 0.6]]), Labels(["no", "yes"]))
    Traceback (most recent call last):
        ...
    ectype.errors.SettingError: scores: expected the label to have the highest score, found the label 'no' with \
0.4 and 'yes' with 0.6, and the like in 1 of 1 rows; leave out scores: its labels follow another rule
    """
    own = np.take_along_axis(scores, classes.encode(labels)[:, None], 1)[:, 0]
    odd = own < scores.max(axis=1) - TIE
    if not odd.any():
        return
    row = int(odd.argmax())
    best = int(scores[row].argmax())
    found = (
        f"the label {labels[row].item()!r} with {own[row]:.4g} and {classes.classes[best].item()!r} with "
        f"{scores[row, best]:.4g}, and the like in {int(odd.sum())} of {len(odd)} rows"
    )
    hint = "leave out scores: its labels follow another rule"
    raise SettingError("scores", "the label to have the highest score", found, hint)
