"""Rows that an original holds in memory: nearest neighbours, support vectors, the context of an in-context model.

Asked about a row that it was trained on, such an original repeats what it was told of that row. That says little of how
it decides about others, so such rows neither teach a copy nor certify it, as far as they can be found. Behind an
endpoint, or inside a function, nobody can look.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType, NoneType
from typing import Any

import numpy as np

from ectype.types import Table

# Packages whose classifiers read their training table for every answer, perhaps in a form that rows are not found in.
IN_CONTEXT = ("tabpfn", "tabpfn_extensions", "tabicl", "tabdpt")
# How deep a model is searched, and the most parts of it.
DEPTH, MOST = 8, 20_000


def rows_in_memory(model: object, table: Table) -> np.ndarray:
    """Which rows of a table, as the model takes them, stand in the model.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rows = np.array([[0.0], [1.0], [2.0]])
    >>> rows_in_memory(KNeighborsClassifier(1).fit(rows[:2], [0, 1]), rows).tolist()
    [True, True, False]
    """
    found = np.zeros(len(table), bool)
    for part, seen in _views(model, table):
        wanted = _as_bytes(seen)
        for held in _matrices(part, seen.shape[1]):
            found |= np.isin(wanted, _as_bytes(held))
    return found


def reads_its_context(model: object) -> bool:
    """Whether a model, or one inside it, is known to read its training table for every answer."""
    return any(type(part).__module__.partition(".")[0] in IN_CONTEXT for part in _parts(model))


def _views(model: object, table: object) -> Iterator[tuple[object, np.ndarray]]:
    """The model with the rows as it takes them, and the last step of each pipeline in it with the rows as that does."""
    for part in _parts(model):
        steps = getattr(part, "steps", None)
        if isinstance(steps, list) and steps:
            last, seen = steps[-1][1], _transformed(steps[:-1], table)
            yield from () if seen is None else [(last, seen)]
    plain = _numbers(table)
    yield from () if plain is None else [(model, plain)]


def _transformed(steps: list[Any], table: Any) -> np.ndarray | None:
    """The rows after all but the last step of a pipeline; None if it does not take them as they are."""
    try:
        for _, step in steps:
            table = table if step in (None, "passthrough") else step.transform(table)
    except Exception:  # it stands behind something else, or takes other rows: the original will say so itself
        return None
    return _numbers(table)


def _numbers(table: Any) -> np.ndarray | None:
    """A table as a matrix in single precision; None if it holds anything but numbers."""
    try:
        found = np.asarray(table.toarray() if hasattr(table, "toarray") else table, np.float32)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 else None


def _parts(model: object) -> Iterator[object]:
    """A model and all that it consists of, whatever that is called."""
    seen, waiting = set[int](), [(model, 0)]
    while waiting and len(seen) < MOST:
        value, depth = waiting.pop()
        if id(value) in seen or isinstance(value, (str, bytes, int, float, bool, type, ModuleType, NoneType)):
            continue
        seen.add(id(value))
        yield value
        if depth < DEPTH:
            waiting += [(part, depth + 1) for part in _inside(value)]


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, np.ndarray):  # boosting has its trees in one
        return value.ravel().tolist() if value.dtype == object else []
    return [] if callable(value) and not hasattr(value, "fit") else list(getattr(value, "__dict__", {}).values())


def _matrices(model: object, d: int) -> Iterator[np.ndarray]:
    """Matrices of so many columns that a model holds, in single precision: some keep their rows so."""
    for part in _parts(model):
        shape = getattr(part, "shape", None)
        if isinstance(shape, tuple) and shape[1:] == (d,) and hasattr(part, "__array__"):
            with suppress(Exception):  # an array of somebody's, which may refuse to be one of ours
                held = np.asarray(part)
                if held.dtype.kind in "biuf":
                    yield held.astype(np.float32)


def _as_bytes(rows: np.ndarray) -> np.ndarray:
    """Each row as one value that can be compared."""
    rows = np.ascontiguousarray(rows + np.float32(0))  # in which 0.0 is -0.0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
