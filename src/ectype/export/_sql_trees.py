"""Trees as nested CASE expressions over the numbers of a space's matrix, one for every tree and class."""

from __future__ import annotations

import numpy as np

from ectype import progress
from ectype._kernel import LEAF
from ectype.conditions.partitions import Cells, inputs_of
from ectype.errors import ExportError
from ectype.export._sql import SqlCondition, below, condition, too_large
from ectype.export._sql_dialects import Dialect
from ectype.models.trees import Trees
from ectype.space import Encoding

# The most bits of a denominator that a float can hold: below, numbers are subnormal.
MOST_BITS = 1023
# What a node is written as, without its condition and what follows from it.
FRAME = "CASE WHEN  THEN  ELSE  END"
# What holds for every row, and for none.
EVERY, NONE = "1 = 1", "1 = 0"


def check_size(model: Trees, dialect: Dialect) -> None:
    """Refuse at once what is far too large: where two leaves differ below a node, it is written for each such class."""
    inner = np.flatnonzero(model.feature != LEAF)
    above = inner[(model.feature[model.left[inner]] == LEAF) & (model.feature[model.right[inner]] == LEAF)]
    differ = model.values[model.left[above]] != model.values[model.right[above]]
    _check_bytes(int(differ.sum()) * len(FRAME + EVERY + "00"), len(model.feature), dialect)


def _check_bytes(least: int, nodes: int, dialect: Dialect) -> None:
    if least > dialect.bytes:
        found = f"more than that: its trees have {nodes} nodes"
        raise too_large(dialect, f"at most {dialect.bytes} bytes, which is what it takes", found)


def tree_text(
    model: Trees, cells: list[Cells], encoding: Encoding, columns: list[SqlCondition], dialect: Dialect
) -> dict[int, list[str]]:
    """By class, its base score and what each tree adds; classes that cannot win have none.

    All in whole numbers, which any database reads exactly: multiples of `step_of(model)`.
    """
    step = step_of(model)
    nodes = _Nodes(model, step, _conditions(model, cells, encoding, columns), dialect)
    bases = (model.base / step).tolist()
    found = {code: [dialect.number(base)] for code, base in enumerate(bases) if np.isfinite(base)}
    for t, (root, output) in enumerate(zip(model.roots.tolist(), model.outputs.tolist(), strict=True)):
        progress.report_activity(f"tree {t + 1} of {len(model.roots)} is written")
        for k in range(model.values.shape[1]):
            text = nodes.text(root, k)
            if text:
                found[output + k].append(text)
    return found


def step_of(model: Trees) -> float:
    """The largest power of two of which all that is added is a multiple."""
    added = np.concatenate([model.base[np.isfinite(model.base)], model.values[model.values != 0]])
    parts = max(number.as_integer_ratio()[1] for number in np.unique(added).tolist())
    if parts.bit_length() > MOST_BITS:
        least = f"one of {abs(added[added != 0]).min():.3g}"
        raise ExportError("sql", "weights of trees that are 0 or far from it", least, "export it as ONNX or C instead")
    return 1.0 / parts


def _conditions(model: Trees, cells: list[Cells], encoding: Encoding, columns: list[SqlCondition]) -> list[str]:
    """For every node, when a row goes left; empty at leaves."""
    found = np.full(len(model.feature), "", object)
    seen = [inputs_of(cell, j, encoding) for j, cell in enumerate(cells)]
    for feature in np.unique(model.feature[model.feature != LEAF]).tolist():
        j, nodes = int(encoding.sources[feature]), model.feature == feature
        thresholds, which = np.unique(model.threshold[nodes], return_inverse=True)
        own = feature < len(encoding.numbers) and not cells[j].levels
        texts = (_ascending if own else _any_way)(cells[j], seen[j][:, feature], thresholds, columns[j])
        found[nodes] = np.array(texts, object)[which.ravel()]
    return found.tolist()


def _ascending(cells: Cells, seen: np.ndarray, thresholds: np.ndarray, column: SqlCondition) -> list[str]:
    """When a number goes left at each of several thresholds: in its first cells, as inputs ascend with numbers."""
    numbers = seen[:-1] if cells.gap else seen
    counts = np.searchsorted(numbers, thresholds, side="right").tolist()
    gaps = (seen[-1] <= thresholds).tolist() if cells.gap else [False] * len(counts)
    return [
        (below(cells, count, gap, column) or EVERY) if count or gap else NONE
        for count, gap in zip(counts, gaps, strict=True)
    ]


def _any_way(cells: Cells, seen: np.ndarray, thresholds: np.ndarray, column: SqlCondition) -> list[str]:
    """The same for an input that may be of any cells."""
    sides = (seen <= threshold for threshold in thresholds)
    return [(condition(cells, side, column) or EVERY) if side.any() else NONE for side in sides]


class _Nodes:
    """The nodes of trees, with what they add to the classes."""

    def __init__(self, model: Trees, step: float, conditions: list[str], dialect: Dialect):
        self._left, self._right = model.left.tolist(), model.right.tolist()
        self._conditions, self._dialect = conditions, dialect
        inner = np.flatnonzero(model.feature != LEAF)[::-1].tolist()  # children come after their parents
        self._same = (model.values / step).T.tolist()
        for same in self._same:
            for node in inner:
                left = same[self._left[node]]
                same[node] = left if left == same[self._right[node]] else np.nan
        _check_bytes(self._least_bytes(model, dialect.bytes), len(self._left), dialect)  # before any of it is written

    def _least_bytes(self, model: Trees, most: int) -> int:
        """How many bytes all texts take at least, with numbers of one digit; counted until they are too many."""
        lengths, total = np.array([len(text) for text in self._conditions]), 0
        for same in self._same:
            nodes, values, level = model.roots, np.array(same), 0
            paths = np.zeros(len(nodes), int)  # the bytes of conditions that lead to a node within one CASE
            while len(nodes) and total <= most:
                split = np.isnan(values[nodes])
                total += int((paths[~split] + 1).sum())
                nodes, paths = nodes[split], paths[split]
                here, nested = lengths[nodes], level < self._dialect.nesting
                total += int((here + len(FRAME)).sum()) if nested else 0
                nodes = np.concatenate([model.left[nodes], model.right[nodes]])
                paths, level = np.concatenate([paths if nested else paths + here, paths]), level + 1
        return total

    def text(self, root: int, k: int) -> str:
        """The expression of a tree for its k-th class; empty if it adds nothing."""
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
