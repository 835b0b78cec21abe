"""Originals that are Python objects: a fitted estimator, or a function from rows to labels."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Unpack

import numpy as np

from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.decode import with_decoding
from ectype.original.fingerprint import source_of
from ectype.original.options import LabelReader
from ectype.types import Classes


def as_original(model: object, classes: Classes = None, name: str | None = None) -> Original:
    """Wrap a fitted estimator or a function rows -> labels; an `Original` passes through.

    >>> as_original(lambda rows: ["a"] * len(rows), classes=["a", "b"]).declared.classes
    array(['a', 'b'], dtype='<U1')
    """
    if isinstance(model, Original):
        return model if classes is None and name is None else model.replace(classes, name)
    if hasattr(model, "predict") and not isinstance(model, type):
        declared = getattr(model, "classes_", None) if classes is None else classes
        if isinstance(declared, list) and any(np.ndim(part) for part in declared):
            several, hint = "a classifier of several outputs at once", "copy each output by itself"
            raise SettingError("original", "one label per row", several, hint)
        found = Original(
            model.predict,
            declared,
            d=getattr(model, "n_features_in_", None),
            names=getattr(model, "feature_names_in_", None),
            name=name or type(model).__name__,
        )
        found.model = model
        if classes is None and hasattr(model, "predict_proba"):
            found.predict_with_scores = lambda rows: (model.predict(rows), _sorted(model.predict_proba(rows), declared))
        return found
    if callable(model) and not isinstance(model, type):
        return Original(model, classes, name=name or str(getattr(model, "__name__", type(model).__name__)))
    hint = f"open it: ec.open_original({model!r})" if isinstance(model, str) else ""
    hint = "give its copy: result.copy" if hasattr(model, "certificate") else hint
    expected = "a fitted estimator or a function rows -> labels"
    raise SettingError(name or "original", expected, repr(model)[:80], hint)


def _sorted(scores: object, classes: Classes) -> object:
    """Scores in the order of sorted classes; scikit-learn's are so already, and what does not fit is refused later."""
    found, order = np.asarray(scores), np.argsort(np.asarray(classes))
    unsorted = order.ndim == 1 and (np.diff(order) < 0).any()
    return found[:, order] if unsorted and found.shape[1:] == order.shape else scores


def open_python(
    spec: str,
    classes: Classes = None,
    *,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    **reading: Unpack[LabelReader],
) -> Original:
    """The fitted classifier or function that `package.module:name` names; with an engine, workers answer for it."""
    module, colon, name = spec.partition(":")
    if not (colon and name and all(part.isidentifier() for part in module.split("."))):
        raise SettingError("original", "package.module:name", repr(spec))
    try:
        found = import_module(module)
    except Exception as error:
        expected = f"a module {module} that can be imported"
        raise SettingError("original", expected, f"{type(error).__name__}: {error}") from error
    if not hasattr(found, name):
        raise SettingError("original", f"something called {name} in {module}", "nothing")
    original = with_decoding(as_original(getattr(found, name), name=spec), classes, **reading)
    original.opened = {"source": source_of(found)}
    if engine is None:
        if workers is not None or scheduler is not None:
            given = "workers" if workers is not None else "scheduler"
            raise SettingError("engine", f"local or dask, since {given} is given", "none")
        return original
    from ectype.original.worker_pool import OriginalReference, with_workers
    from ectype.workers import open_engine

    listed = None if classes is None else tuple(classes)
    named = OriginalReference(spec, listed, tuple(sorted(reading.items())), tuple(filter(None, sys.path)))
    return with_workers(original, named, open_engine(engine, workers, scheduler))
