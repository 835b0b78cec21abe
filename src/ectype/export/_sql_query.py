"""Copies of every family as a query: networks layer by layer, trees one after the other, blends member by member.

The first stage reads raw columns into the numbers of the space's matrix. Trees compare these with thresholds that split
doubles exactly where the copy does; their sums are exact in any order. All else is computed in double, where the copy
has float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype._kernel import LEAF, PiecewiseLinear
from ectype.algorithm.mlp import Network
from ectype.conditions.partitions import Cells, cells_of, inputs_of
from ectype.export._sql import SqlCondition, column_in, condition, literal_labels, sum_of
from ectype.export._sql_cte import QueryStages
from ectype.export._sql_dialects import Dialect
from ectype.export._sql_trees import check_size, step_of, tree_text
from ectype.models.base import Model
from ectype.models.blend import FLOOR, Blend
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.linear import Linear
from ectype.models.rbf import RadialModel
from ectype.models.trees import Trees
from ectype.space import CLIP_DEVIATIONS, UNKNOWN_LEVEL

# Exponents are kept within: some databases refuse what underflows. Mish is 0, or its argument, further out.
DEEP, FLAT = -700.0, 40.0
# Arguments of GREATEST at a time.
ARGUMENTS = 100
HEAD = """-- The label that the copy gives to every row of the table {table}, which has the columns
-- {columns}.
-- Dialect {dialect}. A gap is NULL; the label is NULL where a column is NULL that must not be missing.
"""


def query(copy: CopyClassifier, dialect: Dialect, table: str, keep: Sequence[str]) -> str:
    """The copy's columns or those to keep, and the label, for every row of a table."""
    shown = list(keep) or list(copy.space.names)
    stages = QueryStages(dialect, table, shown)
    read = _Read(copy, stages)
    scores = read.scores(copy.model)
    top = stages.add(_greatest(dialect, list(scores.values())), scores.values())
    labels = literal_labels(dialect, copy.classes)
    cases = [f"WHEN {name} = {top} THEN {labels[code]}" for code, name in scores.items()]
    refused = [f"WHEN {read.absent} = 1 THEN NULL"] if read.absent else []
    result = " ".join(["CASE", *refused, *cases, "END"])
    uses = [top, *scores.values(), *([read.absent] if read.absent else [])]
    label = "label"
    while label in (name.lower() for name in shown):
        label += "_"
    columns = ", ".join(copy.space.names).replace("\n", " ").replace("\r", " ")
    head = HEAD.format(table=table, columns=columns, dialect=dialect.name)
    return f"{head}{dialect.head}{stages.text(label, result, uses)}\n"


class _Read:
    """Raw columns as numbers, and what models make of them."""

    def __init__(self, copy: CopyClassifier, stages: QueryStages):
        self._copy, self._stages, self._dialect = copy, stages, stages.dialect
        self._cells = cells_of(copy.space, copy.encoding, {})
        self._columns = [self._column(cells) for cells in self._cells]
        self._inputs: dict[int, str] = {}
        self.absent = self._absent()

    def scores(self, model: Model) -> dict[int, str]:
        """The number of every class that may win; the highest does."""
        if isinstance(model, Blend):
            return self._pooled(model)
        if isinstance(model, Network):
            return self._network(model)
        if isinstance(model, Linear):
            return self._linear(model)
        if isinstance(model, RadialModel):
            return self._radial(model)
        assert isinstance(model, Trees)
        return self._trees(model)

    # --- raw columns ---

    def _column(self, cells: Cells) -> SqlCondition:
        """A number as it is, a boolean as 0 or 1, a level by its position."""
        raw, dialect = column_in(self._dialect, cells), self._dialect
        if not cells.levels:
            name = self._stages.first(dialect.double(dialect.identifier(cells.column.name)))
            return SqlCondition(name, name, [], dialect)
        codes = [str(code) for code in range(len(cells.levels))]
        cases = [f" WHEN {raw.value} = {level} THEN {code}" for level, code in zip(raw.levels, codes, strict=True)]
        name = self._stages.first(f"CASE WHEN {raw.gap} IS NULL THEN NULL{''.join(cases)} ELSE {UNKNOWN_LEVEL} END")
        return SqlCondition(name, name, codes, dialect)

    def _absent(self) -> str:
        """Whether a column is NULL that must not be missing; empty if none must not."""
        needed = [column_in(self._dialect, cells).gap for cells in self._cells if not cells.gap]
        if not needed:
            return ""
        return self._stages.first(f"CASE WHEN {' OR '.join(f'{name} IS NULL' for name in needed)} THEN 1 ELSE 0 END")

    # --- a copy's inputs ---

    def _input(self, k: int) -> str:
        if k not in self._inputs:
            encoding = self._copy.encoding
            j = int(encoding.sources[k])
            own = k < len(encoding.numbers) and not self._cells[j].levels
            text = self._standardised(j, k) if own else self._by_cell(j, k)
            self._inputs[k] = self._stages.add(text, [self._columns[j].value])
        return self._inputs[k]

    def _standardised(self, j: int, k: int) -> str:
        """Clipped first: what is too far out would overflow in some databases."""
        encoding, dialect, name = self._copy.encoding, self._dialect, self._columns[j].value
        center, scale = float(encoding.center[k]), float(encoding.scale[k])
        low, high = dialect.number(center - CLIP_DEVIATIONS * scale), dialect.number(center + CLIP_DEVIATIONS * scale)
        near = dialect.least(dialect.greatest(name, low), high)
        text = f"({near} - {dialect.factor(center)}) / {dialect.number(scale)}"
        return f"CASE WHEN {name} IS NULL THEN {dialect.number(0.0)} ELSE {text} END" if self._cells[j].gap else text

    def _by_cell(self, j: int, k: int) -> str:
        cells, number = self._cells[j], self._dialect.number
        values = inputs_of(cells, j, self._copy.encoding)[:, k].astype(float)
        cases = []
        for value in np.unique(values[values != 0]).tolist():
            where = condition(cells, values == value, self._columns[j])
            cases.append(f" WHEN {where or '1 = 1'} THEN {number(value)}")
        return f"CASE{''.join(cases)} ELSE {number(0.0)} END" if cases else number(0.0)

    # --- models ---

    def _network(self, model: Network) -> dict[int, str]:
        names = [self._input(k) for k in range(self._copy.encoding.width)]
        if model.pieces is not None:
            names += self._pieces(model.pieces, names)
        *hidden, last = model.mlp.layers(model.theta)
        for layer in hidden:
            names = [self._activated(model.activation, text, names) for text in self._sums(names, *layer)]
        return dict(enumerate(self._stages.add(text, names) for text in self._sums(names, *last)))

    def _pieces(self, pieces: PiecewiseLinear, inputs: list[str]) -> list[str]:
        dialect, found = self._dialect, []
        zero, one = dialect.number(0.0), dialect.number(1.0)
        for column, slope, shift in zip(pieces.column, pieces.slope, pieces.shift, strict=True):
            name = inputs[column]
            line = f"{dialect.times(_short(slope), name)} + {dialect.factor(_short(shift))}"
            found.append(self._stages.add(dialect.least(dialect.greatest(line, zero), one), [name]))
        return found

    def _sums(self, names: list[str], weights: np.ndarray, biases: np.ndarray) -> list[str]:
        """For each of several outputs, a bias and the weighted numbers."""
        times, number = self._dialect.times, self._dialect.number
        return [
            sum_of([number(_short(bias)), *(times(_short(w), n) for w, n in zip(row, names, strict=True) if w)])
            for row, bias in zip(weights.T, biases, strict=True)
        ]

    def _activated(self, activation: str, text: str, uses: list[str]) -> str:
        dialect, stages = self._dialect, self._stages
        if activation == "relu":
            return stages.add(dialect.greatest(text, dialect.number(0.0)), uses)
        name = stages.add(text, uses)  # it is used twice
        near = dialect.least(dialect.greatest(name, dialect.number(-FLAT)), dialect.number(FLAT))
        one, two = dialect.number(1.0), dialect.number(2.0)
        bend = f"({one} - {two} / (POWER({one} + EXP({near}), {two}) + {one}))"
        return stages.add(f"{name} * {bend}", [name])

    def _linear(self, model: Linear) -> dict[int, str]:
        codes = np.flatnonzero(np.isfinite(model.biases)).tolist()
        names = [self._input(k) for k in range(self._copy.encoding.width)]
        texts = self._sums(names, model.weights[:, codes], model.biases[codes])
        return {code: self._stages.add(text, names) for code, text in zip(codes, texts, strict=True)}

    def _radial(self, model: RadialModel) -> dict[int, str]:
        """Squares of distances by products, which take less room."""
        dialect, stages, centres = self._dialect, self._stages, model.centres.astype(float)
        names = [self._input(k) for k in range(self._copy.encoding.width)]
        square = stages.add(sum_of([f"{name} * {name}" for name in names]), names)
        near = []
        for centre in centres:
            parts = [square, dialect.number(float(centre @ centre))]
            parts += [dialect.times(-2 * c, name) for c, name in zip(centre.tolist(), names, strict=True) if c]
            far = f"{dialect.factor(-model.gamma)} * {sum_of(parts)}"
            within = dialect.least(dialect.greatest(far, dialect.number(DEEP)), dialect.number(0.0))
            near.append(stages.add(f"EXP({within})", [square, *names]))
        texts = self._sums(near, model.weights * model.sharpness, model.offset * model.sharpness)
        return dict(enumerate(stages.add(text, near) for text in texts))

    def _trees(self, model: Trees) -> dict[int, str]:
        """A sum over all trees for every class that may win."""
        check_size(model, self._dialect)
        inner = np.flatnonzero(model.feature != LEAF)
        tested = model.feature[inner]
        compared = {int(f): model.threshold[inner[tested == f]] for f in np.unique(tested)}
        cells = cells_of(self._copy.space, self._copy.encoding, compared)
        texts = tree_text(model, cells, self._copy.encoding, self._columns, self._dialect)
        uses, step = [column.value for column in self._columns], self._dialect.number(step_of(model))
        return {code: self._stages.add(f"{sum_of(parts)} * {step}", uses) for code, parts in texts.items()}

    def _pooled(self, blend: Blend) -> dict[int, str]:
        """The sum of all members' opinions, as logarithms, each times its power."""
        dialect = self._dialect
        parts: list[list[str]] = [[] for _ in range(blend.n_c)]
        uses: list[set[str]] = [set() for _ in range(blend.n_c)]
        for member, power in zip(blend.members, blend.powers.tolist(), strict=True):
            said, total = self._opinions(member)
            for code in range(blend.n_c):
                opinion = dialect.number(FLOOR)
                if code in said:
                    opinion = dialect.greatest(f"{said[code]} / {total}", dialect.number(FLOOR))
                    uses[code] |= {said[code], total}
                parts[code].append(f"{dialect.factor(power)} * LN({opinion})")
        return {code: self._stages.add(sum_of(parts[code]), uses[code]) for code in range(blend.n_c) if uses[code]}

    def _opinions(self, member: Model) -> tuple[dict[int, str], str]:
        """What a member says to the classes, and the sum of that: probabilities are their quotients."""
        dialect, stages, scores = self._dialect, self._stages, self.scores(member)
        if not (isinstance(member, Trees) and member.link == "shares"):
            top = stages.add(_greatest(dialect, list(scores.values())), scores.values())
            deep = dialect.number(DEEP)
            scores = {
                code: stages.add(f"EXP({dialect.greatest(f'{name} - {top}', deep)})", [name, top])
                for code, name in scores.items()
            }
        return scores, stages.add(sum_of(list(scores.values())), scores.values())


def _greatest(dialect: Dialect, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    while len(names) > ARGUMENTS:
        names = [_greatest(dialect, names[at : at + ARGUMENTS]) for at in range(0, len(names), ARGUMENTS)]
    return dialect.greatest(*names)


def _short(number: np.floating) -> float:
    """The double with the fewest digits that is this float32; a double as it is."""
    return float(str(number))
