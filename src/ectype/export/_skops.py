"""A copy as a skops file, for Python with ectype: `load_skops` gives the classifier back.

A copy is arrays and a space, not a scikit-learn estimator, which could not hold how columns are encoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED

import numpy as np

from ectype._legacy.skops_names import FORMER, former_names
from ectype.errors import ExportError
from ectype.models.base import model_of
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.sklearn_model import SklearnModel
from ectype.space import Space
from ectype.types import Table

# The classes that a copy is made of, by the names that its file says.
TYPES = (
    "ectype.algorithm.mlp.MLP",
    "ectype.algorithm.mlp.Network",
    "ectype._kernel.PiecewiseLinear",
    "ectype.models.blend.Blend",
    "ectype.models.copy_classifier.CopyClassifier",
    "ectype.models.sklearn_model.SklearnModel",
    "ectype.models.linear.Linear",
    "ectype.models.rbf.RadialModel",
    "ectype.models.trees.Trees",
    "ectype.space.Boolean",
    "ectype.space.Category",
    "ectype.space.Date",
    "ectype.space.Number",
    "ectype.space.Space",
)
TRUSTED = [*TYPES, *FORMER]


def skops_bytes(copy: CopyClassifier) -> bytes:
    """The bytes of the file, without cached properties of the copy."""
    import skops.io

    model = copy.model
    if not isinstance(model, SklearnModel):
        about, arrays = model.state()
        model = model_of({"kind": model.kind, **about}, arrays, copy.encoding.width, len(copy.classes))
    space = Space.model_construct(**{name: getattr(copy.space, name) for name in Space.model_fields})
    return skops.io.dumps(CopyClassifier(model, copy.classes, space, copy.excluded), compression=ZIP_DEFLATED)


def skops_answers(copy: CopyClassifier, path: Path, rows: Table) -> np.ndarray:
    """A skops file's answers to rows as in production."""
    from ectype.original.skops_trust import TRUSTED as PARTS

    own = [] if not isinstance(copy.model, SklearnModel) else [*PARTS, _name(copy.model.estimator)]
    return load_copy(path, own).predict(rows)


def load_copy(path: str | Path, trusted: Iterable[str] = ()) -> CopyClassifier:
    """The copy in a skops file, which may hold these types beside those of a copy."""
    import skops.io

    with former_names():
        copy = skops.io.load(path, trusted=[*TRUSTED, *trusted])
    if not isinstance(copy, CopyClassifier):
        raise ExportError(str(path), "a copy that was exported as skops", type(copy).__name__)
    return copy


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
