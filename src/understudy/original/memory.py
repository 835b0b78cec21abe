"""Rows that an original holds in memory: nearest neighbours, support vectors, the context of an in-context model.

Asked about a row that it was trained on, such an original repeats what it was told of that row. That says little of how
it decides about others, so such rows neither teach a copy nor certify it, as far as they can be found. Behind an
endpoint, or inside a function, nobody can look.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from understudy.types import Table

# Packages whose classifiers read their training table for every answer, perhaps in a form that rows are not found in.
IN_CONTEXT = ("tabpfn", "tabpfn_extensions", "tabicl", "tabdpt")
# What scikit-learn's wrappers call the model inside them; and how deep models are searched.
INNER, DEPTH = ("estimator", "best_estimator_", "model"), 8


def remembered(model: object, table: Table) -> np.ndarray:
    """Which rows of a table, as the model takes them, stand in the model.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rows = np.array([[0.0], [1.0], [2.0]])
    >>> remembered(KNeighborsClassifier(1).fit(rows[:2], [0, 1]), rows).tolist()
    [True, True, False]
    """
    found = np.zeros(len(table), bool)
    for last, seen in _last_steps(model, table):
        wanted = _as_bytes(seen)
        for held in _matrices(last, seen.shape[1], set(), DEPTH):
            found |= np.isin(wanted, _as_bytes(held))
    return found


def reads_its_context(model: object) -> bool:
    """Whether a model, or one inside it, is known to read its training table for every answer."""
    return any(type(part).__module__.partition(".")[0] in IN_CONTEXT for part in _parts(model, set(), DEPTH))


def _last_steps(model: object, table: object) -> Iterator[tuple[object, np.ndarray]]:
    """The last step of a pipeline, or what is inside a wrapper, with the rows as it sees them."""
    for name in INNER:
        if hasattr(getattr(model, name, None), "predict"):
            yield from _last_steps(getattr(model, name), table)
            return
    if hasattr(model, "steps"):
        try:
            for _, step in model.steps[:-1]:
                table = table if step in (None, "passthrough") else step.transform(table)
        except Exception:  # a step of the user's that does not take them: the original will say so when it is asked
            return
        yield from _last_steps(model.steps[-1][1], table)
        return
    for member in getattr(model, "estimators_", None) or ():
        if hasattr(member, "predict"):
            yield from _last_steps(member, table)
    try:
        seen = np.asarray(table.toarray() if hasattr(table, "toarray") else table, np.float32)
    except (TypeError, ValueError):
        return
    if seen.ndim == 2:
        yield model, seen


def _parts(value: object, seen: set[int], depth: int) -> Iterator[object]:
    """A model and all that it consists of."""
    if depth == 0 or id(value) in seen or isinstance(value, (str, bytes, int, float, bool, type, type(None))):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inside: list[object] = list(value.values())
    elif isinstance(value, (list, tuple)):
        inside = list(value)
    else:
        inside = [] if isinstance(value, np.ndarray) else list(getattr(value, "__dict__", {}).values())
    for part in inside:
        yield from _parts(part, seen, depth - 1)


def _matrices(model: object, d: int, seen: set[int], depth: int) -> Iterator[np.ndarray]:
    """Matrices of so many columns that a model holds, as single precision: some keep their rows so."""
    for part in _parts(model, seen, depth):
        if getattr(part, "shape", ())[1:] == (d,) and hasattr(part, "__array__"):
            held = np.asarray(part)
            if held.dtype.kind in "biuf":
                yield held.astype(np.float32)


def _as_bytes(rows: np.ndarray) -> np.ndarray:
    """Each row as one value that can be compared."""
    rows = np.ascontiguousarray(rows + np.float32(0))  # in which 0.0 is -0.0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
