"""The form in which a row is tried: a field for every column that the copy sees, and the copy that answers it.

The copy is its `state` and its encoding as JSON values, with its arrays deflated; `page/scorer.js` computes its
probabilities. Nothing is rounded: an array is stored in a smaller type only where every number of it survives.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from dataclasses import dataclass

import numpy as np

from ectype._kernel import LEAF
from ectype.conditions.formatting import word
from ectype.models.base import Model
from ectype.models.blend import FLOOR
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.sklearn_model import SklearnModel
from ectype.report._answers import PaidAnswers
from ectype.report._bins import unit_of
from ectype.report._differences import Row, numbers_of
from ectype.space import CLIP_DEVIATIONS, Boolean, Category, Column, Encoding
from ectype.types import Json

# Rows that the page compares with the copy's own answers, and tries.
ROWS = 24
# The part of a column's values that a slider covers.
INSIDE = (0.005, 0.995)
# The most characters that a copy may take in a page, and how hard zlib tries: beyond this it gains next to nothing.
MOST, LEVEL = 1_500_000, 6
# Whole numbers, from the smallest type on.
WHOLE = tuple(np.dtype(name) for name in ("u1", "i1", "<u2", "<i2", "<i4"))


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


def build_form(paid: PaidAnswers, drawn: np.ndarray, examples: list[Row]) -> TryForm:
    """The form of a copy. `drawn` are rows of the space."""
    result = paid.result
    copy, found = result.copy, embed_model(result.copy)
    if isinstance(found, str):
        return TryForm([], None, found, {})
    places = [result.space.names.index(name) for name in copy.space.names]
    fields = [_field(column, drawn[:, j]) for column, j in zip(copy.space.columns, places, strict=True)]
    rows = drawn[:ROWS].copy()
    for field, j in zip(fields, places, strict=True):
        rows[:, j] = np.round(rows[:, j], 1 - round(np.log10(field.step)))  # finer than a slider's step by a digit
    chances = paid.probabilities(rows).astype(float)
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


@dataclass(frozen=True)
class EmbeddedModel:
    """A copy in text: what it is as JSON values, and its arrays as base64 of deflated bytes."""

    about: Json
    data: str


def embed_model(copy: CopyClassifier) -> EmbeddedModel | str:
    """The copy for a page; or why it is not there.

    >>> from ectype.models.families import constant
    >>> from ectype.space import Space
    >>> found = embed_model(CopyClassifier(constant(1, 2), np.array(["no", "yes"]), Space.normal(1)))
    >>> found.about["classes"], found.about["model"]["kind"]
    (['no', 'yes'], 'trees')
    """
    model = copy.model
    if isinstance(model, SklearnModel):
        name = type(model.estimator).__name__
        return (
            f"The copy is a {name} of scikit-learn, kept as it is. A page can compute networks, trees, forests, "
            "boosting, linear and radial models, and blends of them; copied to one of these (remake, --to), it could "
            "be tried here."
        )
    about, arrays = model.state()
    layout, parts = list[Json](), list[bytes]()
    for name, array in {**arrays, **_relative(model, arrays)}.items():
        stored = _smallest(array)
        layout.append({"name": name, "type": stored.dtype.str.lstrip("<|"), "n": stored.size})
        parts.append(stored.tobytes())
    data = b64encode(zlib.compress(b"".join(parts), LEVEL)).decode()
    if len(data) > MOST:
        return (
            f"The copy would take {len(data) / 1e6:.1f} MB of this page, more than the {MOST / 1e6:g} MB that are "
            "allowed for it. `ectype serve` answers rows over HTTP."
        )
    said = {
        "classes": [word(label) for label in copy.classes.tolist()],
        "encoding": encoding_of(copy.encoding),
        "inputs": copy.encoding.width,
        "model": {"kind": model.kind, "floor": FLOOR, **about},
        "arrays": layout,
    }
    return EmbeddedModel(said, data)


def encoding_of(encoding: Encoding) -> Json:
    """How rows become a model's inputs, as JSON values."""
    return {
        "numbers": list(encoding.numbers),
        "center": encoding.center.tolist(),
        "scale": encoding.scale.tolist(),
        "far": CLIP_DEVIATIONS,
        "ordered": list(encoding.ordered),
        "absent": list(encoding.absent),
        "levels": [list(pair) for pair in encoding.levels],
        "nearest": [[j, order.tolist(), middles.tolist()] for j, order, middles in encoding.nearest],
        "gaps": list(encoding.gaps),
    }


def _relative(model: Model, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The children of tree nodes as distances from their parents, which are small; 0 at leaves."""
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        prefix, _, last = name.rpartition(".")
        if last in ("left", "right"):
            feature = arrays[f"{prefix}.feature" if prefix else "feature"]
            found[name] = np.where(feature == LEAF, 0, array - np.arange(len(array)))
    return found


def _smallest(array: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type that holds every one."""
    flat = np.ascontiguousarray(array).ravel()
    if flat.dtype.kind == "f":
        with np.errstate(over="ignore"):
            single = flat.astype("<f4")
        return single if np.array_equal(single.astype("<f8"), flat.astype("<f8"), equal_nan=True) else flat
    low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
    return flat.astype(next(kind for kind in WHOLE if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max))
