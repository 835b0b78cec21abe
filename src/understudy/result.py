"""A finished copy with everything known about it: saved as a directory, loaded back the same. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
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
# The types a label may have, by the name under which a saved copy remembers them.
LABEL_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


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
        """Write the run's directory: all of it or nothing.

        A directory that holds the same run is replaced; one that holds anything else is refused.
        """
        path = Path(path)
        refuse_other(path, self.settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            self._write(work)
            replaced = work.with_suffix(".replaced")
            if path.exists():
                os.rename(path, replaced)
            os.rename(work, path)
            shutil.rmtree(replaced, ignore_errors=True)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
        return path

    def _write(self, path: Path) -> None:
        path.chmod(0o755)
        arrays = _save_arrays({"theta": self.copy.theta, "center": self.copy.center, "scale": self.copy.scale})
        (path / "copy.safetensors").write_bytes(arrays)
        labels = self.copy.classes.tolist()
        _write_json(
            path / "copy.json",
            {
                "format": FORMAT,
                "family": "mlp",
                "hidden": list(self.copy.network.hidden),
                "classes": {"type": type(labels[0]).__name__, "values": labels},
                "names": self.copy.names,
                "sha256": hashlib.sha256(arrays).hexdigest(),
            },
        )
        self.space.save(path / "space.json")
        with open(path / "history.jsonl", "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(asdict(record)) + "\n" for record in self.history)
        _write_json(
            path / "run.json",
            {
                "format": FORMAT,
                "settings": self.settings,
                "versions": self.versions,
                **self.summary(),
            },
        )


def load(path: str | Path) -> Result:
    """Read a directory that `save` wrote."""
    path = Path(path)
    run, about = _read_json(path / "run.json"), _read_json(path / "copy.json")
    for name, content in (("run.json", run), ("copy.json", about)):
        if content.get("format") != FORMAT:
            raise DirectoryError(
                f"{path / name}: format",
                f"{FORMAT}",
                content.get("format"),
                "use the understudy that wrote it, or a newer one",
            )
    space = Space.load(path / "space.json")

    def build() -> Result:
        data = (path / "copy.safetensors").read_bytes()
        found = hashlib.sha256(data).hexdigest()
        if found != about["sha256"]:
            raise DirectoryError(
                str(path / "copy.safetensors"),
                f"sha256 {about['sha256']}",
                found,
                "the file was changed or damaged; copy again",
            )
        arrays = _load_arrays(data)
        kind = LABEL_TYPES[about["classes"]["type"]]
        classes = np.array([kind(value) for value in about["classes"]["values"]])
        network = MLP(space.d, tuple(about["hidden"]), len(classes))
        if arrays["theta"].shape != (network.size,):
            raise DirectoryError(str(path / "copy.safetensors"), f"{network.size} parameters", arrays["theta"].shape)
        names = None if about["names"] is None else tuple(about["names"])
        return Result(
            copy=CopyClassifier(network, arrays["theta"], classes, arrays["center"], arrays["scale"], names),
            certificate=None if run["certificate"] is None else Certificate.from_json(run["certificate"]),
            history=[
                Record(**json.loads(line)) for line in (path / "history.jsonl").read_text(encoding="utf-8").splitlines()
            ],
            space=space,
            **{key: run[key] for key in ("settings", "queries", "stopped", "seconds", "peak_mb", "versions")},
        )

    return _guarded(build, path)


def refuse_other(path: Path, settings: dict[str, Any]) -> None:
    """Raise unless the directory is free, or holds the very run that these settings describe."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / "run.json").is_file():
        raise DirectoryError(
            str(path), "a new or empty directory, or one with the same run", "other files", "choose another directory"
        )
    there = _read_json(path / "run.json").get("settings", {})
    other = {
        key: (there.get(key), settings.get(key))
        for key in sorted({*there, *settings})
        if there.get(key) != settings.get(key)
    }
    if other:
        found = ", ".join(f"{key} {was!r} (now {now!r})" for key, (was, now) in other.items())
        raise DirectoryError(
            str(path),
            "a new directory, or one with the same run",
            f"a run with {found}",
            "choose another directory, or use the same settings",
        )


def _guarded(build: Callable[[], Result], path: Path) -> Result:
    """Turn whatever a damaged directory provokes into one kind of error."""
    try:
        return build()
    except (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DirectoryError(
            str(path),
            "a directory written by save",
            f"{type(error).__name__}: {error}",
            "copy again, or restore it from a backup",
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DirectoryError(
            str(path), "a file of a finished run", "nothing", "name the directory that --out or save wrote"
        ) from error
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
