"""The form in which a row is tried: a field for every column that the copy sees, and rows to begin with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ectype.conditions.formatting import word
from ectype.report._answers import PaidAnswers
from ectype.report._bins import unit_of
from ectype.report._differences import Row, numbers_of
from ectype.report._embedded_model import EmbeddedModel, embed_model
from ectype.space import Boolean, Category, Column
from ectype.types import Json

# Rows that the page compares with the copy's own answers, and tries.
ROWS = 24
# The part of a column's values that a slider covers.
INSIDE = (0.005, 0.995)


@dataclass(frozen=True)
class Field:
    """A field of the form."""

    name: str
    kind: str
    """`number`, or `choice`."""
    gap: bool
    low: float
    high: float
    step: float
    unit: int
    """The milliseconds that its numbers count, where they are dates or timestamps; else 1."""
    options: list[tuple[int, str]]


@dataclass(frozen=True)
class TryForm:
    """The form, and the copy; or why the copy is not there."""

    fields: list[Field]
    copy: EmbeddedModel | None
    why_not: str
    data: Json


def form_of(evidence: PaidAnswers, drawn: np.ndarray, examples: list[Row]) -> TryForm:
    """The form of a copy. `drawn` are rows of the space."""
    result = evidence.result
    copy, found = result.copy, embed_model(result.copy)
    if isinstance(found, str):
        return TryForm([], None, found, {})
    places = [result.space.names.index(name) for name in copy.space.names]
    fields = [_field(column, drawn[:, j]) for column, j in zip(copy.space.columns, places, strict=True)]
    rows = drawn[:ROWS].copy()
    for field, j in zip(fields, places, strict=True):
        rows[:, j] = np.round(rows[:, j], 1 - round(np.log10(field.step)))  # finer than a slider's step by a digit
    chances = evidence.chances(rows).astype(float)
    data = {
        **found.about,
        "rows": [numbers_of(row) for row in rows[:, places].tolist()],
        "chances": np.round(chances, 9).tolist(),
        "examples": [row.numbers for row in examples],
        "support": copy.support.as_json(),
    }
    return TryForm(fields, found, "", data)


def _field(column: Column, drawn: np.ndarray) -> Field:
    gap = bool(column.missing)
    if isinstance(column, Category):
        options = [(code, word(level)) for code, level in enumerate(column.levels)]
        return Field(column.name, "choice", gap, 0, 0, 1, 1, [*options, (-1, "another level")])
    if isinstance(column, Boolean):
        return Field(column.name, "choice", gap, 0, 0, 1, 1, [(0, "false"), (1, "true")])
    there = drawn[~np.isnan(drawn)]
    low, high = (float(end) for end in np.quantile(there, INSIDE, method="nearest"))
    unit = unit_of(column)
    if column.kind == "integer" or unit != 1:
        return Field(column.name, "number", gap, low, max(high, low + 1), 1, unit, [])
    step = 10.0 ** np.floor(np.log10(max(high - low, 1e-12, 1e-12 * abs(high)) / 100))
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step
    return Field(column.name, "number", gap, _round(low, step), _round(high, step), float(step), 1, [])


def _round(number: float, step: float) -> float:
    return float(np.round(number, int(max(0, -np.log10(step)))))
