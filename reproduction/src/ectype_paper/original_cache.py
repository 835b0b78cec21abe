"""Fitted originals, kept between runs: a file for each, found by the content of all that went into it.

These files are pickles, the only ones that are ever written. They lie in a directory that nobody but its owner may
write to, and the bytes that are loaded are those whose hash was written beside them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ectype._common.atomic_io import write_bytes, write_text
from ectype.errors import DirectoryError
from ectype_paper.originals import FAMILIES, FOLDS, GRID_ROWS, Estimator, family_of, original
from ectype_paper.problems import Problem, digest

LIBRARIES = ("joblib", "numpy", "scipy", "scikit-learn", "xgboost-cpu", "xgboost")


def cached_original(problem: Problem, family: str | None = None, folder: str | Path | None = None) -> Estimator:
    """The fitted original of a problem, from the cache if it is there; else it is fitted and kept."""
    place = _private(default_folder() if folder is None else Path(folder))
    if place is None:
        return original(problem, family)
    path = place / f"{content_key(problem, family)}.joblib"
    found = _load(path)
    if found is None:
        found = original(problem, family)
        _keep(path, found)
    return found


def content_key(problem: Problem, family: str | None = None) -> str:
    """A hash of what decides how an original turns out: rows, family, grid, parameters, seeds and libraries."""
    chosen = family_of(problem, family)
    estimator, grid = FAMILIES[chosen].estimator(), FAMILIES[chosen].grid
    content = {
        "rows": digest(problem.X_train, problem.y_train),
        "family": chosen,
        "estimator": f"{type(estimator).__module__}.{type(estimator).__qualname__}",
        "parameters": {name: repr(value) for name, value in estimator.get_params().items()},
        "grid": grid,
        "search": [FOLDS, GRID_ROWS],
        "versions": _versions(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def default_folder() -> Path | None:
    """The user's cache directory for originals, unless there is none or caches are turned off."""
    if os.environ.get("ECTYPE_NO_CACHE"):
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        return None
    return Path(base) / "ectype" / "originals"


def _private(folder: Path | None) -> Path | None:
    """The folder, made if need be, if it is this user's and nobody else may write to it."""
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except OSError:
        return None
    if not hasattr(os, "getuid"):  # whose it is cannot be told
        return None
    return folder if about.st_uid == os.getuid() and not about.st_mode & 0o022 else None


def _load(path: Path) -> Estimator | None:
    """What the file holds, if its bytes are those that were written; else nothing."""
    import joblib

    try:
        content, expected = path.read_bytes(), _hash_file(path).read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return joblib.load(io.BytesIO(content)) if hashlib.sha256(content).hexdigest() == expected else None


def _keep(path: Path, fitted: Estimator) -> None:
    """Write a fitted original and its hash; without room for them there is no cache, and no error."""
    import joblib

    content = io.BytesIO()
    joblib.dump(fitted, content, compress=3)
    with suppress(DirectoryError):
        write_bytes(path, content.getvalue())
        write_text(_hash_file(path), hashlib.sha256(content.getvalue()).hexdigest() + "\n")


def _hash_file(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
