"""A copy as a skops file, for Python with understudy: skops.io.load(file, trusted=TRUSTED) gives the classifier back.

Copies are arrays and a space, no estimators of scikit-learn's: its own classes could not hold how columns are encoded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import numpy as np

from understudy.classifier import CopyClassifier
from understudy.hypothesis import model_of
from understudy.hypothesis.estimator import Fitted
from understudy.space import Space

TRUSTED = [
    "understudy.classifier.CopyClassifier",
    "understudy.columns.Boolean",
    "understudy.columns.Category",
    "understudy.columns.Number",
    "understudy.hypothesis.estimator.Fitted",
    "understudy.hypothesis.linear.Linear",
    "understudy.hypothesis.mlp.MLP",
    "understudy.hypothesis.mlp.Network",
    "understudy.hypothesis.trees.Trees",
    "understudy.space.Space",
]


def skops_bytes(copy: CopyClassifier) -> bytes:
    """The file, without what the copy has worked out since it was made."""
    import skops.io

    model = copy.model
    if not isinstance(model, Fitted):
        about, arrays = model.state()
        model = model_of({"kind": model.kind, **about}, arrays, copy.encoding.width, len(copy.classes))
    space = Space.model_construct(**{name: getattr(copy.space, name) for name in Space.model_fields})
    return skops.io.dumps(CopyClassifier(model, copy.classes, space, copy.excluded), compression=ZIP_DEFLATED)


def skops_answers(copy: CopyClassifier, path: Path, rows: Any) -> np.ndarray:
    """What a skops file of a copy answers to rows as they come in production."""
    import skops.io

    from understudy.original.skops_types import TRUSTED as PARTS

    own = [] if not isinstance(copy.model, Fitted) else [*PARTS, _name(copy.model.estimator)]
    return skops.io.load(path, trusted=[*TRUSTED, *own]).predict(rows)


def _name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
