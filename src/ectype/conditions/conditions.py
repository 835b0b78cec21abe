"""A copy over raw columns: a tree as regions with a label each, a linear copy as additive scores.

Exact, or with numbers rounded for people; rows near a boundary may then change sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ectype._kernel import LEAF
from ectype.conditions.partitions import Cells, cells_of, inputs_of
from ectype.errors import SettingError
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.linear import Linear
from ectype.models.trees import Trees
from ectype.space import CLIP_DEVIATIONS

# Digits that rules for people keep: of a weight, or of a column's standard deviation.
DIGITS = 6


@dataclass(frozen=True)
class Region:
    """Rows with the same label: for each column that matters, which of its cells."""

    inside: dict[int, np.ndarray]
    code: int


@dataclass(frozen=True)
class DecisionRegions:
    """A tree: disjoint regions, over columns with these cells."""

    cells: list[Cells]
    regions: list[Region]

    def holds(self, region: Region, rows: np.ndarray) -> np.ndarray:
        """Which rows of a space's matrix lie in a region."""
        held = np.ones(len(rows), bool)
        for j, inside in region.inside.items():
            held &= inside[self.cells[j].of(rows[:, j])]
        return held


@dataclass(frozen=True)
class Term:
    """What a column adds to the score of every class: slope * (value - center) for a number, and an amount by cell."""

    cells: Cells
    slope: np.ndarray
    center: float
    reach: float
    """How far from the center a number still counts by its distance."""
    amounts: np.ndarray
    """A row for every cell; for a gap it is all that the column adds."""


@dataclass(frozen=True)
class AdditiveScores:
    """A linear copy: the class with the highest score wins; of equal ones, the first."""

    codes: np.ndarray
    """The classes that have a score; others were never answered."""
    start: np.ndarray
    terms: list[Term]


def expressible(copy: CopyClassifier) -> bool:
    """Whether a copy can be written as rules, or as one SQL expression."""
    model = copy.model
    return isinstance(model, Linear) or (isinstance(model, Trees) and len(model.roots) == 1 and model.link == "shares")


def logic_of(copy: CopyClassifier, digits: int | None = None) -> DecisionRegions | AdditiveScores:
    """The copy over raw columns: exact, or with numbers rounded to so many digits."""
    if not expressible(copy):
        hint = "make one of the same answers with ectype remake --to tree, or export as onnx, c or sql"
        named = {"mlp": "an mlp", "blend": "a blend", "radial": "radial functions"}
        kind = named.get(copy.model.kind, "a forest or boosting")
        raise SettingError("format", "a copy of the families tree or linear, for rules", kind, hint)
    if isinstance(copy.model, Linear):
        return _sums(copy, copy.model, digits)
    return _tree(copy, copy.model, digits)  # type: ignore[arg-type]


def _tree(copy: CopyClassifier, model: Trees, digits: int | None) -> DecisionRegions:
    encoding = copy.encoding
    label = _labels(model)
    inner = np.flatnonzero(label < 0)
    compared = {int(f): model.threshold[inner[model.feature[inner] == f]] for f in np.unique(model.feature[inner])}
    cells = cells_of(copy.space, encoding, compared)
    seen = [inputs_of(cell, j, encoding) for j, cell in enumerate(cells)]
    sources = encoding.sources
    regions: list[Region] = []
    waiting: list[tuple[int, dict[int, np.ndarray]]] = [(0, {})]
    while waiting:
        node, inside = waiting.pop()
        if label[node] >= 0:
            regions.append(Region(inside, int(label[node])))
            continue
        j = int(sources[model.feature[node]])
        left = seen[j][:, model.feature[node]] <= model.threshold[node]
        for child, side in ((model.right[node], ~left), (model.left[node], left)):
            both = inside.get(j, True) & side
            if both.any():
                waiting.append((int(child), {**inside, j: both}))
    if digits:
        cells = [replace(cell, cuts=_round_raw(cell.cuts, copy, j, digits)) for j, cell in enumerate(cells)]
    return DecisionRegions(cells, regions)


def _labels(model: Trees) -> np.ndarray:
    """The class of a leaf, or of a node whose leaves all agree; -1 for others."""
    label = np.where(model.feature == LEAF, model.values.argmax(axis=1), -1)
    for node in np.flatnonzero(model.feature != LEAF)[::-1]:  # children come after their parents
        left, right = label[model.left[node]], label[model.right[node]]
        label[node] = left if left == right else -1
    return label


def _sums(copy: CopyClassifier, model: Linear, digits: int | None) -> AdditiveScores:
    encoding = copy.encoding
    codes = np.flatnonzero(np.isfinite(model.biases))
    weights, terms = model.weights[:, codes], []
    for j, cells in enumerate(cells_of(copy.space, encoding, {})):
        own = np.flatnonzero(encoding.sources == j)
        slope, center, reach = np.zeros(len(codes)), 0.0, 0.0
        if not cells.levels:  # a number: its own input gives the slope, no amount by cell
            k = encoding.numbers.index(j)
            slope, center, own = weights[k] / encoding.scale[k], float(encoding.center[k]), own[own != k]
            reach = CLIP_DEVIATIONS * float(encoding.scale[k])
        amounts = inputs_of(cells, j, encoding)[:, own].astype(np.float64) @ weights[own]
        if digits:
            slope, amounts = _significant(slope, digits), _significant(amounts, digits)
            center = float(_round_raw(np.array([center]), copy, j, digits)[0])
            cells = replace(cells, cuts=_round_raw(cells.cuts, copy, j, digits))
        if slope.any() or amounts.any():
            terms.append(Term(cells, slope, center, reach, amounts))
    start = model.biases[codes]
    return AdditiveScores(codes, _significant(start, digits) if digits else start, terms)


def _round_raw(numbers: np.ndarray, copy: CopyClassifier, j: int, digits: int) -> np.ndarray:
    """Raw numbers of a column, rounded to so many digits of its standard deviation."""
    return np.round(numbers, digits - int(np.floor(np.log10(copy.space.moments[1][j]))))


def _significant(numbers: np.ndarray, digits: int) -> np.ndarray:
    return np.array([float(f"{number:.{digits}g}") for number in numbers.ravel()]).reshape(numbers.shape)
