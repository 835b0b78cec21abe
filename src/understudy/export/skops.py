"""A copy as a skops file, for Python with understudy: skops.io.load(file, trusted=TRUSTED) gives the classifier back.

A copy is arrays and a space, not a scikit-learn estimator, which could not hold how columns are encoded.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from zipfile import ZIP_DEFLATED

import numpy as np

from understudy.models.base import model_of
from understudy.models.classifier import CopyClassifier
from understudy.models.fitted import Fitted
from understudy.space import Space
from understudy.types import Table

TYPES = (
    "understudy.algorithm.network.MLP",
    "understudy.algorithm.network.Network",
    "understudy.engine.pieces.Pieces",
    "understudy.models.blend.Blend",
    "understudy.models.classifier.CopyClassifier",
    "understudy.models.fitted.Fitted",
    "understudy.models.linear.Linear",
    "understudy.models.radial.Radial",
    "understudy.models.trees.Trees",
    "understudy.space.columns.Boolean",
    "understudy.space.columns.Category",
    "understudy.space.columns.Date",
    "understudy.space.columns.Number",
    "understudy.space.space.Space",
)
# The former names of these modules, in files written by 0.1.
MOVED = {
    "understudy.classifier": "understudy.models.classifier",
    "understudy.columns": "understudy.space.columns",
    "understudy.hypothesis.estimator": "understudy.models.fitted",
    "understudy.hypothesis.linear": "understudy.models.linear",
    "understudy.hypothesis.mlp": "understudy.algorithm.network",
    "understudy.hypothesis.trees": "understudy.models.trees",
    "understudy.space": "understudy.space.space",
}
_FORMER = {new: old for old, new in MOVED.items()}
_PARTS = [kind.rpartition(".") for kind in TYPES]
TRUSTED = [*TYPES, *(f"{_FORMER[module]}.{name}" for module, _, name in _PARTS if module in _FORMER)]

for _old, _new in MOVED.items():
    sys.modules.setdefault(_old, import_module(_new))


def skops_bytes(copy: CopyClassifier) -> bytes:
    """The bytes of the file, without cached properties of the copy."""
    import skops.io

    model = copy.model
    if not isinstance(model, Fitted):
        about, arrays = model.state()
        model = model_of({"kind": model.kind, **about}, arrays, copy.encoding.width, len(copy.classes))
    space = Space.model_construct(**{name: getattr(copy.space, name) for name in Space.model_fields})
    return skops.io.dumps(CopyClassifier(model, copy.classes, space, copy.excluded), compression=ZIP_DEFLATED)


def skops_answers(copy: CopyClassifier, path: Path, rows: Table) -> np.ndarray:
    """A skops file's answers to rows as in production."""
    import skops.io

    from understudy.original.skops_types import TRUSTED as PARTS

    own = [] if not isinstance(copy.model, Fitted) else [*PARTS, _name(copy.model.estimator)]
    return skops.io.load(path, trusted=[*TRUSTED, *own]).predict(rows)


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
