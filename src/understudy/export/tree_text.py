"""Trees as nested CASE expressions over the numbers of a space's matrix, one for every tree and class."""

from __future__ import annotations

import numpy as np

from understudy.engine.trees import LEAF
from understudy.export.columns import Written, condition
from understudy.export.dialects import Dialect
from understudy.logic.cells import Cells, inputs_of
from understudy.models.trees import Trees
from understudy.space.encoding import Encoding


def tree_text(
    model: Trees, cells: list[Cells], encoding: Encoding, columns: list[Written], dialect: Dialect
) -> dict[int, list[str]]:
    """By class, its base score and what each tree adds; classes that cannot win have none.

    All in whole numbers, which any database reads exactly: multiples of `step_of(model)`.
    """
    step = step_of(model)
    nodes = _Nodes(model, step, _conditions(model, cells, encoding, columns), dialect)
    bases = (model.base / step).tolist()
    found = {code: [dialect.number(base)] for code, base in enumerate(bases) if np.isfinite(base)}
    for root, output in zip(model.roots.tolist(), model.outputs.tolist(), strict=True):
        for k in range(model.values.shape[1]):
            text = nodes.text(root, k)
            if text:
                found[output + k].append(text)
    return found


def step_of(model: Trees) -> float:
    """The largest power of two of which all that is added is a multiple."""
    added = np.concatenate([model.base[np.isfinite(model.base)], model.values[model.values != 0]])
    return 1.0 / max(number.as_integer_ratio()[1] for number in np.unique(added).tolist())


def _conditions(model: Trees, cells: list[Cells], encoding: Encoding, columns: list[Written]) -> list[str]:
    """For every node, when a row goes left; empty at leaves, and where every row does."""
    seen = [inputs_of(cell, j, encoding) for j, cell in enumerate(cells)]
    sources, known, found = encoding.sources, dict[tuple[int, float], str](), []
    for feature, threshold in zip(model.feature.tolist(), model.threshold.tolist(), strict=True):
        if feature == LEAF:
            found.append("")
            continue
        if (feature, threshold) not in known:
            j = int(sources[feature])
            known[feature, threshold] = _left(cells[j], seen[j][:, feature] <= np.float32(threshold), columns[j])
        found.append(known[feature, threshold])
    return found


def _left(cells: Cells, inside: np.ndarray, column: Written) -> str:
    if inside.all():
        return "1 = 1"
    return condition(cells, inside, column) if inside.any() else "1 = 0"


class _Nodes:
    """The nodes of trees, with what they add to the classes."""

    def __init__(self, model: Trees, step: float, conditions: list[str], dialect: Dialect):
        self._left, self._right = model.left.tolist(), model.right.tolist()
        self._conditions, self._dialect = conditions, dialect
        same = np.where((model.feature == LEAF)[:, None], model.values / step, np.nan)
        for node in np.flatnonzero(model.feature != LEAF)[::-1]:  # children come after their parents
            left, right = model.left[node], model.right[node]
            same[node] = np.where(same[left] == same[right], same[left], np.nan)
        self._same = same.T.tolist()

    def text(self, root: int, k: int) -> str:
        """What a tree adds to its k-th class; empty for nothing."""
        return "" if self._same[k][root] == 0 else self._nested(root, k, self._dialect.nesting)

    def _nested(self, node: int, k: int, room: int) -> str:
        value = self._same[k][node]
        if value == value:  # all leaves below add the same
            return self._dialect.number(value)
        if not room:
            return self._flat(node, k)
        left, right = (self._nested(side[node], k, room - 1) for side in (self._left, self._right))
        return f"CASE WHEN {self._conditions[node]} THEN {left} ELSE {right} END"

    def _flat(self, root: int, k: int) -> str:
        """One CASE. Leaves come from left to right, so that a turn to the right needs no condition: left has failed."""
        cases, waiting = list[str](), [(root, "")]
        while waiting:
            node, path = waiting.pop()
            value = self._same[k][node]
            if value == value:
                cases.append(f"WHEN {path or '1 = 1'} THEN {self._dialect.number(value)}")
                continue
            joined = f"{path} AND {self._conditions[node]}" if path else self._conditions[node]
            waiting += [(self._right[node], path), (self._left[node], joined)]
        return f"CASE {' '.join(cases)} END"
