"""Fingerprints of originals: digests, so that neither secrets nor models are written down."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np

from ectype.types import Json

if TYPE_CHECKING:
    from ectype.original.base import Original

# Of what may be secret no more than 32 bits are told: enough to tell two values apart, too few to find one.
TOLD = 8
# Measured, not learned: they differ from one fit to the next of the same model.
_MEASURED = ("cv_results_", "refit_time_")


def identity_of(original: Original) -> Json:
    """The identity of an original: its name, the file or fit behind it, and how it was opened.

    >>> from ectype.original import open_original
    >>> sorted(identity_of(open_original("ectype.toy_problems:spirals")))
    ['classes', 'fingerprint', 'opened', 'original']
    """
    classes = None if original.declared is None else original.declared.classes.tolist()
    found: Json = {"original": original.name, "fingerprint": original.fingerprint, "classes": classes}
    fitted = None if original.fingerprint is not None else fitted_of(original.model)
    opened = {**original.opened, **({} if fitted is None else {"fitted": fitted})}
    return {**found, **({"opened": opened} if opened else {})}


def digest(value: object) -> str:
    """A short digest of a JSON value.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 2, "b": 1})
    True
    """
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:TOLD]


def query_of(text: str) -> dict[str, str]:
    """A URL's query by the names of its parameters, in any order; of their values, and of other words, a digest.

    >>> sorted(query_of("model=a&key=hush")), query_of("model=a") == query_of("model=b")
    (['key', 'model'], False)
    """
    pairs = parse_qsl(text, keep_blank_values=True)
    found = {name: digest([value for key, value in pairs if key == name]) for name, _ in pairs}
    return found if all("=" in part for part in text.split("&")) else {"": digest(text)}


def source_of(module: ModuleType) -> str | None:
    """A digest of a module's source, if it has one."""
    try:
        return digest(inspect.getsource(module))
    except (OSError, TypeError):
        return None


def fitted_of(model: object) -> str | None:
    """A digest of a fitted estimator: its parameters and its learned attributes.

    By scikit-learn's convention, what was learned has a name that ends with an underscore. None if there is nothing to
    go by: functions are told apart by their names alone.
    """
    hashed = sha256()
    parts = list(_parts(model, "", set())) if _is_fitted(model) else []
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()[: 2 * TOLD] if parts else None


def _is_fitted(value: object) -> bool:
    return hasattr(value, "predict") or hasattr(value, "get_params")


def _parts(value: object, name: str, seen: set[int]) -> Iterator[bytes]:
    """The comparable parts of a value as bytes, each under its name, in a fixed order."""
    if isinstance(value, (bool, int, float, str, bytes, np.generic, type(None))):
        yield f"{name}={value!r};".encode()
    elif isinstance(value, np.ndarray) and value.dtype.names:  # by field: what lies between them is anything
        for field in value.dtype.names:
            yield from _parts(value[field], f"{name}.{field}", seen)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{name}:{value.dtype.str}{value.shape}".encode() + value.tobytes()
    elif isinstance(value, (list, tuple, np.ndarray)):
        for place, part in enumerate(value):
            yield from _parts(part, f"{name}.{place}", seen)
    elif id(value) not in seen:  # estimators may hold each other
        seen.add(id(value))
        yield from _inside(value, name, seen)


def _inside(value: Any, name: str, seen: set[int]) -> Iterator[bytes]:
    """The same of an estimator, or of the arrays of a tree."""
    found: Mapping[str, object] = {}
    if _is_fitted(value):
        yield f"{name}:{type(value).__qualname__};".encode()
        given = value.get_params(deep=False) if hasattr(value, "get_params") and not isinstance(value, type) else {}
        learned = getattr(value, "__dict__", {})
        found = {**given, **{key: learned[key] for key in learned if key.endswith("_") and not key.startswith("_")}}
    elif type(value).__module__ == "sklearn.tree._tree":
        found = value.__getstate__()
    for key in sorted(set(found) - set(_MEASURED)):
        yield from _parts(found[key], f"{name}.{key}", seen)
