"""A finished copy with everything known about it: saved as a directory, loaded back the same. No pickle."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ectype._common import manifest
from ectype._common.atomic_io import as_path, replace_together
from ectype._common.bounded_io import UNREADABLE, check_type, parse_json
from ectype._common.manifest import RUN, Anchor, Key
from ectype._kernel import KERNEL_VERSION
from ectype._legacy.names import with_versions_of_today
from ectype._version import __version__
from ectype.certificate.certificate import Certificate
from ectype.certificate.diagnosis import Advice, Diagnosis
from ectype.certificate.repeats import Repeats
from ectype.errors import DirectoryError, warn
from ectype.ledger import LEDGER, Purpose, chain_anchor, read_answers
from ectype.metrics import efficiency
from ectype.models.base import check_answers, model_of
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.training_rows import TrainingRows
from ectype.original import LabelledRows, Labels, Original
from ectype.original.labels import MOST_BYTES as MOST_LABEL_BYTES
from ectype.original.labels import kind_of
from ectype.original.vendor import VENDOR
from ectype.plan.settings import AUTO, BLEND
from ectype.runs import formatting
from ectype.runs.directory import FILES, claim, held
from ectype.runs.run_json import check_records
from ectype.space import FeatureView, Space
from ectype.types import Json, Label

# Of copy.json.
FORMAT = 1
# Where run.json says which rows taught the copy, and for which purposes a ledger has such rows.
TRAINING_ROWS, TAUGHT = "training_rows", (Purpose.GIVEN, Purpose.CHECK, Purpose.TRAINING)
# What the labels of a copy may be, by the kind of their type; and the most bytes that they may take.
KINDS = {"b": "booleans", "U": "words", **dict.fromkeys("iuf", "numbers")}
# The parts of a result that run.json holds as they are.
PLAIN = ("settings", "queries", "stopped", "seconds", "peak_mb", "tried", "versions")


@dataclass(frozen=True)
class Record:
    """One iteration of a run, as it stands in `history` and in history.jsonl.

    >>> from ectype import Space, copy_classifier
    >>> result = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), budget=300, preset="fast")
    >>> [(record.iteration, record.queries, record.kept) for record in result.history]
    [(0, 100, 100), (1, 200, 200), (2, 300, 300)]
    """

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
    moved: float
    """The distance between the parameters before and after this round."""
    epochs: int
    seconds: float
    accuracy: float | None = None
    """On the test data, where some was given."""
    agreement: float | None = None
    """On the test data: how often the copy answers as the original did, where its answers were given too."""
    test_rho: float | None = None
    """On the test data: the mean of rho, likewise."""
    test_risk: float | None = None
    """On the test data: the empirical fidelity error, the mean of rho^2, likewise."""


@cache
def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = {name: version(name) for name in ("numpy", "scikit-learn")}
    return {"python": platform.python_version(), "kernel": str(KERNEL_VERSION), **packages}


@dataclass(frozen=True, repr=False)
class Result:
    """What a run produced: the copy, its certificate, its history, and what it cost.

    >>> from ectype import Space, copy_classifier
    >>> result = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), budget=300, preset="fast")
    >>> result.copy.predict([[-1.0], [1.0]]).tolist(), result.family, result.stopped
    ([False, True], 'mlp', 'budget')
    """

    copy: CopyClassifier
    certificate: Certificate | None
    history: list[Record]
    space: Space
    settings: dict[str, Any]
    queries: dict[str, int]
    stopped: str
    seconds: float
    peak_mb: float | None
    """The most memory that the process held, in MB, where the system says so."""
    repeats: Repeats | None = None
    """How consistently the original answered the same rows."""
    diagnosis: Diagnosis | None = None
    """Why the target was missed, if it was."""
    advice: list[Advice] = field(default_factory=list)
    """What would make the copy more faithful, and by how much."""
    tried: list[dict[str, Any]] = field(default_factory=list)
    """The models that the copy was chosen from, where there was a choice, that one first: family, teacher, fidelity on
    the certificate's rows, bytes, and the latency of a single row in milliseconds."""
    ms: float | None = None
    """The latency of a single row, in milliseconds, where the copy was made."""
    refreshed: dict[str, Any] | None = None
    """Of a refreshed copy: the run it started from, the check of its original, and the flips."""
    remade: dict[str, Any] | None = None
    """Of a copy that was made of another run's answers: which run's."""
    given: dict[str, Any] | None = None
    """Of a run that was given answers: how many are used, what was left out and why, and where they are from."""
    vendor: dict[str, Any] | None = None
    """How its original is opened, without secrets, where it was opened by its name: `Vendor.of_run` reads it."""
    directory: Path | None = field(default=None, compare=False, repr=False)
    """Where its run is kept, ledger and all, if it is: a report finds the answers there."""
    asked: dict[str, LabelledRows] = field(default_factory=dict, compare=False, repr=False)
    """By purpose, the rows and answers that no ledger holds, the first 16 MB of each: a report is made from them."""
    left_over: int = field(default=0, compare=False, repr=False)
    """What the call that gave this result left over of its budget, because it was less than a batch."""
    checked: bool = True
    """Whether the files it was loaded from have checksums; those of version 0.1 do not."""
    signature: str = "none"
    """Of a result that was loaded: what is known of its signature."""
    versions: dict[str, str] = field(default_factory=lambda: {"ectype": __version__, **_versions()})

    @property
    def kept(self) -> int:
        """How many points the sample set held at the end."""
        return self.history[-1].kept

    @property
    def trend(self) -> list[tuple[int, float]]:
        """Fidelity by the number of queries, after every round that was measured.

        A copy that was made of another run's answers has none: the rounds are of that run, and led to its copy.
        """
        if self.remade is not None:
            return []
        return [(one.queries, one.fidelity) for one in self.history if one.fidelity is not None]

    @property
    def supplied(self) -> list[dict[str, Any]]:
        """What is known of answers that were given: to the run, and to its remake."""
        return [found for found in (self.given, (self.remade or {}).get("answers")) if found is not None]

    @property
    def eff(self) -> float:
        """The paper's eff: the share of points saved, over all rounds, against keeping every one."""
        given = 0 if self.given is None else self.given["used"]
        points = [0, *(given + record.queries for record in self.history)]
        return efficiency([record.kept for record in self.history], np.diff(points))

    @property
    def family(self) -> str:
        """The family that the copy belongs to."""
        if self.tried:
            return str(self.tried[0]["family"])
        return BLEND if self.settings.get("to") in (BLEND, AUTO) else "mlp"

    def __repr__(self) -> str:
        return f"Result({formatting.short(self)})"

    def __str__(self) -> str:
        return formatting.text(self)

    def _repr_html_(self) -> str:
        return formatting.html(self)

    def plot(self, what: str | None = None, axes: Any = None) -> Any:
        """Draw with matplotlib: `fidelity` by the number of queries, or the copy's `decisions` over two columns.

        If nothing is said, it is the decisions where there are two columns of numbers, else the fidelity. Gives the
        axes: those given, or new ones.

        >>> from ectype import Space, copy_classifier
        >>> result = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), budget=300, preset="fast")
        >>> result.plot().get_xlabel()
        'queries'
        """
        from ectype.runs.plots import plot

        return plot(self, what, axes)

    def report(self, path: str | Path = "report.html", original: Original | None = None) -> Path:
        """Write the page about this copy, one self-contained HTML file; gives its path.

        With the original, whose answers should be free, its decisions over two columns are drawn beside the copy's.
        What drives the decisions is read off the run's answers: those in its directory or, of a run without one, those
        that the result still has. A result that was loaded from what `save` wrote has none, and its page says less.
        """
        from ectype.report import write_report

        title = f"A copy of {self.settings['original']}"
        return write_report(path, {self.settings["method"]: self}, original=original, title=title)

    def summary(self) -> dict[str, Any]:
        """The outcome in the shape that `--json` prints."""
        return {
            "queries": self.queries,
            "kept": self.kept,
            "eff": round(self.eff, 4),
            "family": self.family,
            "tried": self.tried,
            "repeats": None if self.repeats is None else {**asdict(self.repeats), "ceiling": self.repeats.ceiling},
            "certificate": None if self.certificate is None else self.certificate.as_json(),
            "diagnosis": None if self.diagnosis is None else asdict(self.diagnosis),
            "advice": [asdict(one) for one in self.advice],
            "seconds": round(self.seconds, 3),
            "peak_mb": None if self.peak_mb is None else round(self.peak_mb, 1),
            "stopped": self.stopped,
            **({"answers": self.supplied[-1]} if self.supplied else {}),
            **({} if self.remade is None else {"remade": self.remade}),
        }

    def save(self, path: str | Path, key: Key | None = None) -> Path:
        """Write the run's directory: all of it, or nothing, also if the process is killed or the power fails.

        A directory that holds the same run is written over; one that holds anything else is refused. With a key, all
        of it is signed.
        """
        path = claim(path, self.settings)
        with held(path):
            return self.commit(path, key)

    def commit(self, path: Path, key: Key | None = None) -> Path:
        """Write the files of a run whose directory this process holds."""
        there = chain_anchor(path / LEDGER) if (path / LEDGER).is_file() else None
        with replace_together(path) as folder:
            self._write(folder, there, key)
        return path

    def _write(self, path: Path, ledger: Anchor | None, key: Key | None) -> None:
        shape, numbers = self.copy.model.state()
        arrays = _save_arrays(numbers)
        (path / "copy.safetensors").write_bytes(arrays)
        about = {
            "format": FORMAT,
            "kind": self.copy.model.kind,
            **shape,
            "classes": {"type": self.copy.classes.dtype.str, "values": self.copy.classes.tolist()},
            "sha256": hashlib.sha256(arrays).hexdigest(),
        }
        _write_json(path / "copy.json", about)
        (path / "space.json").write_text(self.space.to_json() + "\n", encoding="utf-8")
        with open(path / "history.jsonl", "w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(asdict(record)) + "\n" for record in self.history)
        proof = None if self.certificate is None else self.certificate.as_json()
        plain = {key: getattr(self, key) for key in PLAIN}
        parts = {"repeats": self.repeats, "diagnosis": self.diagnosis}
        records = {name: None if part is None else asdict(part) for name, part in parts.items()}
        advice = [asdict(one) for one in self.advice]
        found = {"refreshed": self.refreshed, "remade": self.remade, "advice": advice, "ms": self.ms}
        found |= {} if self.given is None else {"given": self.given}
        found |= {} if self.vendor is None else {VENDOR: self.vendor}
        known = self.copy.training_rows
        found |= {} if known is None else {TRAINING_ROWS: known.as_json()}
        more = {**records, "certificate": proof, **found}
        files = {name: manifest.file_entry(name, (path / name).read_bytes()) for name in FILES if name != RUN}
        chained = {"files": files, "ledger": None if ledger is None else asdict(ledger)}
        _write_json(path / RUN, manifest.seal({"format": manifest.FORMAT, **plain, **more, **chained}, key))


def load(path: str | Path, types: Sequence[str] = ()) -> Result:
    """Read a directory that `save` wrote; `types` are classes from outside scikit-learn that you trust.

    >>> from tempfile import TemporaryDirectory
    >>> from ectype import Space, copy_classifier
    >>> result = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), budget=300, preset="fast")
    >>> with TemporaryDirectory() as folder:
    ...     again = load(result.save(f"{folder}/my-copy"))
    >>> again.certificate == result.certificate
    True
    """
    path = as_path(path)
    run = with_versions_of_today(manifest.read_run(path))
    files = {name: manifest.read_file(path / name, run) for name in FILES if name != RUN}
    about = manifest.json_of(path / "copy.json", files["copy.json"])
    if about.get("format") != FORMAT:
        hint = "use the ectype that wrote it, or a newer one"
        raise DirectoryError(f"{path / 'copy.json'}: format", f"{FORMAT}", about.get("format"), hint)
    try:
        space = Space.from_json(files["space.json"].decode())
        result = _build(path, run, about, files, space, types)
    except UNREADABLE as error:
        hint = "copy again, or restore it from a backup"
        found = f"{type(error).__name__}: {error}"
        raise DirectoryError(str(path), "a directory written by save", found, hint) from error
    if not manifest.is_checked(run):
        warn(f"{path} was written by version 0.1, without checksums: damage to it would not be noticed")
    return result


def _build(path: Path, run: Json, about: Json, files: dict[str, bytes], space: Space, types: Sequence[str]) -> Result:
    data = files["copy.safetensors"]
    found = hashlib.sha256(data).hexdigest()
    if found != about["sha256"]:
        hint = "the file was changed or damaged; copy again"
        raise DirectoryError(str(path / "copy.safetensors"), f"sha256 {about['sha256']}", found, hint)
    arrays = _load_arrays(data)
    classes = _classes(about["classes"]["values"], about["classes"]["type"])
    history = [Record(**parse_json(line)) for line in files["history.jsonl"].decode().splitlines()]
    if not history:
        raise ValueError("history.jsonl has no iteration")
    exclude = run["settings"].get("exclude", [])
    view, excluded = FeatureView(space, exclude), tuple(space.names.index(name) for name in exclude)
    model = model_of(about, arrays, view.encoding.width, len(classes), types)
    check_answers(model, view.encoding.width)
    known = _training_rows(path, run, excluded)
    check_records(run, RUN)
    result = Result(
        copy=CopyClassifier(model, classes, view.space, excluded, known),
        certificate=None if run["certificate"] is None else _certificate(run["certificate"], classes),
        history=history,
        space=space,
        repeats=None if run["repeats"] is None else Repeats(**run["repeats"]),
        diagnosis=None if run.get("diagnosis") is None else Diagnosis(**run["diagnosis"]),
        refreshed=run.get("refreshed"),
        ms=run.get("ms"),
        remade=run.get("remade"),
        given=run.get("given"),
        vendor=run.get(VENDOR),
        directory=path,
        advice=[Advice(**one) for one in run.get("advice", [])],
        checked=manifest.is_checked(run),
        signature=manifest.signature_of(run),
        **{key: run[key] for key in PLAIN},
    )
    check_type(result, Result, RUN)
    return result


def _classes(values: list[Label], kind: str) -> np.ndarray:
    """The labels of a copy, in order and each once; what they take is known before an array is made of them."""
    labels, dtype = Labels(values).classes, np.dtype(kind)
    if KINDS.get(dtype.kind) != kind_of(labels) or dtype.itemsize * len(values) > MOST_LABEL_BYTES:
        raise ValueError(f"classes of type {kind}")
    if labels.tolist() != values or (classes := labels.astype(dtype)).tolist() != values:
        raise ValueError(f"classes of type {kind} that are not in order, or not each once")
    return classes


def _certificate(content: Json, classes: np.ndarray) -> Certificate:
    """A certificate; those of earlier versions do not say which labels they did not measure."""
    return Certificate.from_json(content).among(classes.tolist())


def _training_rows(path: Path, run: Json, excluded: tuple[int, ...]) -> TrainingRows | None:
    """The rows that taught a copy; of a run of an earlier version, those in its ledger, where there is one."""
    if TRAINING_ROWS in run:
        known = TrainingRows.from_json(run[TRAINING_ROWS])
        if known.excluded != excluded:
            raise ValueError(f"training rows without the columns {known.excluded}, of a copy without {excluded}")
        return known
    if not (path / LEDGER).is_file():
        return None
    found = read_answers(path / LEDGER)
    return TrainingRows.of([found[purpose][0] for purpose in TAUGHT if purpose in found], excluded=excluded)


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
