"""A finished copy with everything known about it: saved as a directory, loaded back the same. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from understudy._version import __version__
from understudy.certificate import Certificate
from understudy.classifier import CopyClassifier
from understudy.errors import DirectoryError
from understudy.hypothesis.mlp import MLP
from understudy.space import Space

FORMAT = 1
# What a run's directory holds, in the order it is written; a report may lie beside it.
FILES = ("copy.safetensors", "copy.json", "space.json", "history.jsonl", "run.json")
# The parts of a result that run.json holds as they are.
PLAIN = ("settings", "queries", "stopped", "seconds", "peak_mb", "first_answers", "versions")


@dataclass(frozen=True)
class Record:
    """One iteration of a run, as it stands in `history` and in history.jsonl."""

    iteration: int
    queries: int
    kept: int
    dropped: int
    lam: float
    mean_rho: float
    """Mean of rho over the sample set, after training."""
    risk: float
    """R_emp over the sample set, after training."""
    fidelity: float | None
    """On the held-out rows of the certificate."""
    accuracy: float | None
    """On the test data, where some was given."""
    moved: float
    """How far the parameters went in this round."""
    epochs: int
    seconds: float


@dataclass(frozen=True)
class Result:
    """What a run produced: the copy, its certificate, its history, and what it cost."""

    copy: CopyClassifier
    certificate: Certificate | None
    history: list[Record]
    space: Space
    settings: dict[str, Any]
    queries: dict[str, int]
    stopped: str
    seconds: float
    peak_mb: float
    first_answers: list[Any]
    """The original's answers to the first few rows, by which it is recognised."""
    versions: dict[str, str] = field(default_factory=lambda: {"understudy": __version__, **_versions()})

    @property
    def kept(self) -> int:
        """How many points the sample set held at the end."""
        return self.history[-1].kept

    def summary(self) -> dict[str, Any]:
        """The outcome in the shape that `--json` prints."""
        return {
            "queries": self.queries,
            "kept": self.kept,
            "certificate": None if self.certificate is None else self.certificate.as_json(),
            "seconds": round(self.seconds, 3),
            "peak_mb": round(self.peak_mb, 1),
            "stopped": self.stopped,
        }

    def save(self, path: str | Path) -> Path:
        """Write the run's directory; run.json comes last, so that a directory with one is whole.

        A directory that holds the same run is written over; one that holds anything else is refused.
        """
        path = claim(path, self.settings)
        with _errors_of(path):
            new = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=path))
            try:
                self._write(work)
                for name in FILES:
                    os.replace(work / name, path / name)
            finally:
                shutil.rmtree(work, ignore_errors=True)
                if new and not any(path.iterdir()):
                    path.rmdir()
        return path

    def _write(self, path: Path) -> None:
        arrays = _save_arrays({"theta": self.copy.theta, "center": self.copy.center, "scale": self.copy.scale})
        (path / "copy.safetensors").write_bytes(arrays)
        about = {
            "format": FORMAT,
            "family": "mlp",
            "hidden": list(self.copy.network.hidden),
            "classes": {"type": self.copy.classes.dtype.str, "values": self.copy.classes.tolist()},
            "names": self.copy.names,
            "sha256": hashlib.sha256(arrays).hexdigest(),
        }
        _write_json(path / "copy.json", about)
        self.space.save(path / "space.json")
        with open(path / "history.jsonl", "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(asdict(record)) + "\n" for record in self.history)
        proof = None if self.certificate is None else self.certificate.as_json()
        plain = {key: getattr(self, key) for key in PLAIN}
        _write_json(path / "run.json", {"format": FORMAT, **plain, "certificate": proof})


def load(path: str | Path) -> Result:
    """Read a directory that `save` wrote."""
    path = _as_path(path)
    run, about = _read_json(path / "run.json"), _read_json(path / "copy.json")
    for name, content in (("run.json", run), ("copy.json", about)):
        if content.get("format") != FORMAT:
            hint = "use the understudy that wrote it, or a newer one"
            raise DirectoryError(f"{path / name}: format", f"{FORMAT}", content.get("format"), hint)
    space = Space.load(path / "space.json")
    try:
        return _build(path, run, about, space)
    except (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        hint = "copy again, or restore it from a backup"
        found = f"{type(error).__name__}: {error}"
        raise DirectoryError(str(path), "a directory written by save", found, hint) from error


def _build(path: Path, run: dict[str, Any], about: dict[str, Any], space: Space) -> Result:
    data = (path / "copy.safetensors").read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != about["sha256"]:
        hint = "the file was changed or damaged; copy again"
        raise DirectoryError(str(path / "copy.safetensors"), f"sha256 {about['sha256']}", found, hint)
    arrays = _load_arrays(data)
    classes = np.array(about["classes"]["values"], dtype=np.dtype(about["classes"]["type"]))
    if classes.dtype.kind not in "biufU" or classes.ndim != 1:
        raise ValueError(f"classes of type {classes.dtype}")
    network = MLP(space.d, tuple(about["hidden"]), len(classes))
    if arrays["theta"].shape != (network.size,):
        raise ValueError(f"{arrays['theta'].shape} parameters for a network of {network.size}")
    history = [Record(**json.loads(line)) for line in (path / "history.jsonl").read_text("utf-8").splitlines()]
    if not history:
        raise ValueError("history.jsonl has no iteration")
    names = None if about["names"] is None else tuple(about["names"])
    return Result(
        copy=CopyClassifier(network, arrays["theta"], classes, arrays["center"], arrays["scale"], names),
        certificate=None if run["certificate"] is None else Certificate.from_json(run["certificate"]),
        history=history,
        space=space,
        **{key: run[key] for key in PLAIN},
    )


def claim(path: str | Path, settings: dict[str, Any]) -> Path:
    """Make sure that a run with these settings can be written here; nothing is left behind.

    The directory must be writable, and free or hold the very run that the settings describe.
    """
    path = _as_path(path)
    with _errors_of(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            _refuse_other(path, settings)
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
            os.rmdir(tempfile.mkdtemp(prefix=".unfinished-", dir=path))
        finally:
            for folder in missing:
                if folder.is_dir():
                    folder.rmdir()
    return path


def _refuse_other(path: Path, settings: dict[str, Any]) -> None:
    if not path.is_dir():
        raise DirectoryError(str(path), "a directory", "a file", "choose another name")
    if not (path / "run.json").is_file():
        expected = "a new or empty directory, or one with the same run"
        raise DirectoryError(str(path), expected, "other files", "choose another directory")
    there = _read_json(path / "run.json").get("settings")
    if not isinstance(there, dict):
        raise DirectoryError(str(path / "run.json"), "the settings of a run", repr(there)[:80])
    keys = [key for key in sorted({*there, *settings}) if there.get(key) != settings.get(key)]
    if keys:
        found = ", ".join(f"{key} {there.get(key)!r} (now {settings.get(key)!r})" for key in keys)
        hint = "choose another directory, or use the same settings"
        raise DirectoryError(str(path), "a new directory, or one with the same run", f"a run with {found}", hint)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Turn what the file system says into an error of ours."""
    try:
        yield
    except (OSError, ValueError) as error:
        hint = "choose another directory, or make room in this one"
        raise DirectoryError(str(path), "a directory that can be written", str(error), hint) from error


def _as_path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise DirectoryError("directory", "a path", repr(path))
    return Path(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = "name the directory that --out or save wrote"
        raise DirectoryError(str(path), "a file of a finished run", "nothing", hint) from error
    except (OSError, ValueError, RecursionError) as error:
        raise DirectoryError(str(path), "a JSON document", str(error)) from error
    if not isinstance(content, dict):
        raise DirectoryError(str(path), "a JSON object", type(content).__name__)
    return content


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _save_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    from safetensors.numpy import save

    # safetensors writes the memory behind an array, whatever its strides: a view would be saved as other numbers.
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _load_arrays(data: bytes) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(data)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"python": platform.python_version(), **{name: version(name) for name in ("jax", "numpy", "scikit-learn")}}
