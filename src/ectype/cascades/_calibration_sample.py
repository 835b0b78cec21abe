"""The sample that certifies a cascade: held-out rows with the original's answers; unlabelled rows for thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ectype.algorithm.uncertainty import margins
from ectype.cascades._routing import HeldOutMargins
from ectype.certificate.certificate import Certificate
from ectype.certificate.certify import allowance_for
from ectype.certificate.user_sample import UserSample
from ectype.ledger import LEDGER, Purpose, open_session, read_answers
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import CHUNK, LabelledRows, Labels, Original, concatenate_labels
from ectype.progress import ROWS, show_progress
from ectype.queries import Queries
from ectype.rng import Stream, stream
from ectype.runs.result import Result
from ectype.space import Space
from ectype.types import Answered, Json, Label
from ectype.types import Rows as UserRows

# Where the held-out rows are from, in words.
RUN, FRESH, OWN = "held-out rows of the run", "fresh rows of the space", "rows of your own"
# Unlabelled rows of the space that make the thresholds; they cost no query.
FREE = 50_000


@dataclass(frozen=True)
class CalibrationSample:
    """Held-out rows, and the margins of unlabelled ones."""

    held: HeldOutMargins
    source: str
    grid: np.ndarray
    """Margins of unlabelled rows of the space, which the thresholds are made from."""
    population: np.ndarray
    """Margins of rows that show what share is answered alone: those of the space, or of the user."""
    queries: int = 0
    """Rows that were asked for it."""
    among: float = 1.0
    """How many copies this one was selected from by the same rows: the error allowance is shared out among them."""
    left_out: dict[str, int] = field(default_factory=dict)
    """How many of the user's rows were left out, by reason, such as that they taught the copy."""


def has_held_out_rows(result: Result) -> bool:
    """Whether the rows of the run's own certificate are there, with their answers."""
    return result.certificate is not None and _held_out(result, result.certificate) is not None


def sample_from_run(result: Result) -> CalibrationSample | None:
    """The rows of the run's own certificate, at no query; None if they are not kept."""
    found = None if result.certificate is None else _held_out(result, result.certificate)
    if found is None or result.certificate is None:
        return None
    free = _unlabelled_margins(result)
    return CalibrationSample(_compare(result, *found), RUN, free, free, among=_selected_from(result.certificate))


def sample_from_space(result: Result, original: Original, n: int, seed: int, progress: bool) -> CalibrationSample:
    """n fresh rows of the space, asked now."""
    with _queries(result, original, n, seed) as queries, show_progress("cascade", n, wanted=progress, step=ROWS):
        told = list(queries.fresh(Purpose.CASCADE, n, stream(seed, Stream.CASCADE)))
    rows, labels = np.concatenate([rows for rows, _ in told]), concatenate_labels([said.labels for _, said in told])
    free = _unlabelled_margins(result)
    return CalibrationSample(_compare(result, rows, labels), FRESH, free, free, n)


def sample_from_rows(
    result: Result, original: Original, rows: UserRows, seed: int, progress: bool
) -> CalibrationSample:
    """Rows of the user's own, each distinct one asked once, without those that taught the copy."""
    sample = UserSample.of(original, result.space, rows, "rows")
    sample = sample.without_training_rows(result.copy.training_rows).some("rows")
    n, about = sample.distinct, {"rows": sample.digest}
    with _queries(result, original, n, seed, about) as queries, show_progress("cascade", n, wanted=progress, step=ROWS):
        sample = sample.ask(queries, Purpose.CASCADE)
    assert sample.answers is not None
    held = _compare(result, sample.rows, sample.answers)
    return CalibrationSample(held, OWN, _unlabelled_margins(result), held.margins, n, left_out=dict(sample.left_out))


def predict_with_margins(copy: CopyClassifier, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The copy's probabilities for rows of all columns, and the margins that decide who answers.

    No row outside the space is answered by the copy, however large its margin.
    """
    seen = np.delete(matrix, copy.excluded, axis=1) if copy.excluded else matrix
    chances = np.asarray(copy.model.probabilities(copy.encoding(seen)), float)
    return chances, np.where(copy.support.outside(seen), -np.inf, margins(chances))


def _compare(result: Result, rows: np.ndarray, labels: np.ndarray) -> HeldOutMargins:
    chances, sure = predict_with_margins(result.copy, rows)
    return HeldOutMargins(sure, Labels(result.copy.classes).find(labels) == chances.argmax(axis=1), labels)


def _unlabelled_margins(result: Result) -> np.ndarray:
    """The margins of unlabelled rows of the space; a part at a time, since encoded rows may be wide."""
    rows = result.space.sample(FREE, stream(result.settings.get("seed", 0), Stream.GRID))
    parts = (rows[at : at + CHUNK] for at in range(0, FREE, CHUNK))
    return np.concatenate([predict_with_margins(result.copy, part)[1] for part in parts])


def _answers(result: Result) -> dict[str, LabelledRows]:
    """The answers of the run by purpose, from its ledger or, without one, from memory."""
    path = None if result.directory is None else result.directory / LEDGER
    return read_answers(path) if path is not None and path.is_file() else result.asked


@contextmanager
def _queries(result: Result, original: Original, n: int, seed: int, about: Json | None = None) -> Iterator[Queries]:
    """Queries that are kept beside the run, if it has a directory.

    A server that is started again is certified by the answers that it paid for, as by those of the run; not so an
    original in memory, which cannot be told from another of its name.
    """
    folder, known = result.directory, bool(original.opened or original.fingerprint)
    folder = folder if folder is not None and folder.is_dir() else None
    about = {"n": n, "seed": seed, **(about or {})}
    with open_session(folder, Purpose.CASCADE, original, result.space, about, ends=not known) as ledger:
        limits = {Purpose.CASCADE: n}
        yield Queries(original, result.space, limits, ledger, seed, allowance_for(original, limits))


def _selected_from(proof: Certificate) -> float:
    """The divisor of the certificate's Bonferroni correction: of how many copies its rows selected this one."""
    return 1.0 if proof.level is None else (1 - proof.confidence) / (1 - proof.level)


def _held_out(result: Result, proof: Certificate) -> Answered | None:
    """The certificate's rows, as they were drawn, and their answers.

    A ledger has each row once. Where the space draws some rows twice, they are drawn again as the run drew them, and
    found in the ledger; a refreshed run drew otherwise, and has none then.
    """
    found = _answers(result)
    if Purpose.CERTIFICATE not in found:
        return None
    rows, said = found[Purpose.CERTIFICATE]
    if len(rows) == proof.n:
        return rows, said.labels
    known = dict[bytes, Label]()
    for purpose, (told, said) in found.items():
        if purpose != Purpose.REPEAT:
            known |= dict(zip(map(np.ndarray.tobytes, told), said.labels.tolist(), strict=True))
    drawn = _draw_again(result.space, proof.n, result.settings.get("seed", 0))
    labels = [known.get(row.tobytes()) for row in drawn]
    return None if any(label is None for label in labels) else (drawn, np.array(labels))


def _draw_again(space: Space, n: int, seed: int) -> np.ndarray:
    rng = stream(seed, Stream.HELD_OUT, 0)
    return np.concatenate([space.sample(min(CHUNK, n - at), rng) for at in range(0, n, CHUNK)])
