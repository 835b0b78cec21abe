"""A label left among the columns: what the first answers show of it.

A column of labels has the labels' own words, and says the same as the answers far more often than chance would have it.
A flag with the same words says so less often, and a name says nothing: `y` may be a coordinate, and `cut` the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ectype._common.formatting import join_names, percent
from ectype.original import Labels
from ectype.space import Boolean, Category, Column, Number, Space

# Rows that it takes to tell that a column and the label go together.
ENOUGH = 50
# Agreement beyond chance (Cohen's kappa) from which a column is named, of stored answers and of an original that is
# asked: below it, columns that are no labels agree as well (tools/label_warnings.py). An original that was fitted on
# its label hardly looks at anything else.
STORED, ASKED = 0.9, 0.96
HOW = "leave it out: Space.from_data(frame.drop(columns=[...])), or `ectype space ... --drop`"


class Leak(NamedTuple):
    """A column that is the label, as it seems."""

    name: str
    agrees: float
    """The share of answers that it tells."""
    beyond: float
    """The same beyond chance: 1 for all, 0 for as many as chance would have it."""


def leaked(
    space: Space, rows: np.ndarray, answers: np.ndarray, declared: Labels | None = None, stored: bool = False
) -> list[Leak]:
    """The columns that tell the answers to these rows as hardly anything but the label does.

    Of an original that is asked, those with the labels' own words: it may well decide by a single column, but hardly by
    one whose values are its labels. Of stored answers also those whose values go with the labels one to one.
    """
    classes = np.unique(answers)
    wanted = {*map(str, classes.tolist()), *map(str, [] if declared is None else declared.classes.tolist())}
    if len(answers) < ENOUGH or len(classes) < 2:
        return []
    found = []
    for j, column in enumerate(space.columns):
        words = _words(column, rows[:, j])
        there = {*words.tolist()} - {""}
        if len(there & wanted) > 1 and (there <= wanted or wanted <= there):
            leak = _agreeing(column.name, words, answers.astype(str))
        elif stored and len(there) == len(classes):
            leak = _agreeing(column.name, _translated(words, answers), answers.astype(str))
        else:
            continue
        if leak.beyond >= (STORED if stored else ASKED):
            found.append(leak)
    return found


def _agreeing(name: str, words: np.ndarray, answers: np.ndarray) -> Leak:
    """How often words are the answers, and how often beyond chance."""
    same = float((words == answers).mean())
    chance = sum(float((words == label).mean() * (answers == label).mean()) for label in np.unique(answers))
    return Leak(name, same, (same - chance) / max(1 - chance, 1e-12))


def _translated(words: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Words as the answers that most rows with them have, if no two have the same."""
    labels, codes = np.unique(answers, return_inverse=True)
    values, places = np.unique(words, return_inverse=True)
    counts = np.zeros((len(values), len(labels)), int)
    np.add.at(counts, (places, codes), 1)
    meant = counts.argmax(axis=1)
    known = values != ""
    if len({*meant[known].tolist()}) < known.sum():
        return np.full(len(words), "")
    return np.where(known[places], labels.astype(str)[meant[places]], "")


def _words(column: Column, values: np.ndarray) -> np.ndarray:
    """A column's values as labels are written; nothing for a gap, or for a number that is none of a few whole ones."""
    if isinstance(column, (Boolean, Category)):
        levels = [False, True] if isinstance(column, Boolean) else [*column.levels]
        written = np.array([*map(str, levels), ""])
        return written[np.where(np.isnan(values) | (values < 0), len(levels), values).astype(int)]
    assert isinstance(column, Number)
    if column.values is None or any(value != int(value) for value in column.values):
        return np.full(len(values), "")
    return np.array(["" if value != value else str(int(value)) for value in values])


def warning(leaks: Sequence[Leak], n: int) -> str:
    """What to say of columns that may be the label."""
    named = join_names([f"{leak.name!r} (in {percent(leak.agrees)})" for leak in leaks])
    said = f"tells the original's label in nearly all of the first {n} rows: {named}"
    return f"a column {said}. If that is the label itself, {HOW}; else there is nothing to do"
