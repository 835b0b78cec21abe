"""A label left among the columns: what can honestly be told of it, before anything is asked or from first answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.display import listed
from understudy.original import Labels
from understudy.space import Space
from understudy.space.columns import Boolean, Category, Column, Number

# What columns of labels are called, most often.
NAMES = ("label", "labels", "target", "class", "y", "outcome", "prediction", "predicted")
# Rows that it takes to tell that a column and the label go together.
ENOUGH = 50
HOW = "leave it out: Space.from_data(frame.drop(columns=[...])), or `understudy space ... --drop`"


def named_like_labels(names: Sequence[str]) -> list[str]:
    """Of columns, those that have the usual name of a label.

    >>> named_like_labels(["age", "Target"])
    ['Target']
    """
    return [name for name in names if name.lower() in NAMES]


def holding_labels(space: Space, labels: Labels) -> list[str]:
    """Columns whose values are the very labels; of labels that are no words, only those that are called like labels."""
    wanted = {str(label) for label in labels.classes.tolist()}
    names = space.names if labels.classes.dtype.kind == "U" else named_like_labels(space.names)
    return [c.name for c in space.columns if c.name in names and len(wanted) > 1 and _values(c) == wanted]


def _values(column: Column) -> set[str]:
    if isinstance(column, Category):
        return set(map(str, column.levels))
    if isinstance(column, Boolean):
        return {"True", "False"}
    assert isinstance(column, Number)
    return {str(int(value)) for value in column.values or () if value == int(value)}


def telling_labels(space: Space, rows: np.ndarray, answers: np.ndarray, alike: bool) -> list[str]:
    """Columns that have one value for each label, and another for each other, in all of these rows.

    `alike`: only those whose values are the labels. An original that is asked may well decide by a single column, but
    hardly one whose values are its labels.
    """
    known, codes = np.unique(answers, return_inverse=True)
    if len(answers) < ENOUGH or len(known) < 2:
        return []
    found, wanted = [], {str(label) for label in known.tolist()}
    for j, column in enumerate(space.columns):
        values, places = np.unique(rows[:, j], return_inverse=True)
        pairs = {*zip(places.tolist(), codes.tolist(), strict=True)}
        if len(values) == len(known) == len(pairs) and (not alike or _values(column) == wanted):
            found.append(column.name)
    return found


def warning(columns: Sequence[str], why: str) -> str:
    """What to say of columns that may be the label."""
    named = listed([*map(repr, columns)])
    return f"{named} {why}. If that is the label itself, {HOW}; else there is nothing to do"
