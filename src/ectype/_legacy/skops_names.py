"""Names of classes in skops files of version 0.1, and where these classes are today."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

FORMER = {
    "understudy.classifier.CopyClassifier": "ectype.models.copy_classifier.CopyClassifier",
    "understudy.columns.Boolean": "ectype.space.Boolean",
    "understudy.columns.Category": "ectype.space.Category",
    "understudy.columns.Number": "ectype.space.Number",
    "understudy.hypothesis.estimator.Fitted": "ectype.models.sklearn_model.SklearnModel",
    "understudy.hypothesis.linear.Linear": "ectype.models.linear.Linear",
    "understudy.hypothesis.mlp.MLP": "ectype.algorithm.mlp.MLP",
    "understudy.hypothesis.mlp.Network": "ectype.algorithm.mlp.Network",
    "understudy.hypothesis.trees.Trees": "ectype.models.trees.Trees",
    "understudy.space.Space": "ectype.space.Space",
}


@contextmanager
def former_names() -> Iterator[None]:
    """Let the names of version 0.1 be imported for as long as a file is loaded.

    `understudy` belongs to another project today: what is imported under these names, if anything is, comes back.
    """
    modules: dict[str, ModuleType] = {}
    for old, new in FORMER.items():
        (place, name), (home, today) = old.rsplit(".", 1), new.rsplit(".", 1)
        setattr(modules.setdefault(place, ModuleType(place)), name, getattr(import_module(home), today))
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for former, module in before.items():
            if module is None:
                del sys.modules[former]
            else:
                sys.modules[former] = module
