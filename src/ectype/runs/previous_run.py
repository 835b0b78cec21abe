"""A finished run to continue from: its network, and everything that was answered."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ectype._common.atomic_io import as_path
from ectype._common.bounded_io import UNREADABLE, check_type, read_bytes
from ectype._common.manifest import RUN, read_json
from ectype.algorithm.mlp import PAPER_LAYERS, Network
from ectype.algorithm.sample_set import SampleSet
from ectype.certificate.user_sample import UserSample
from ectype.errors import DirectoryError
from ectype.ledger import LEDGER, Purpose, read_answers_and_round
from ectype.methods.training_points import points
from ectype.models.training_rows import hashed
from ectype.original import Answers, LabelledRows, Labels, concatenate
from ectype.plan.resolve import settings_of_json
from ectype.queries import CANDIDATES, TAUGHT
from ectype.runs.directory import finished
from ectype.runs.result import Result, load
from ectype.runs.run_json import PlannedRecord
from ectype.space import FeatureView, has_required_values
from ectype.types import Json

Answered = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class PreviousRun:
    """A finished run: its result, its network, and what was answered."""

    result: Result
    network: Network
    t: int
    """The round that the network is from."""
    rows: np.ndarray
    """Every answered row; the held-out rows come last."""
    said: Answers
    """What the original said to them."""
    held_out: int
    """How many of them were held out for the certificate."""
    digest: str
    """A hash of the run."""
    seed: int
    """Taken from the hash of the copy, so that every refresh draws rows of its own."""
    user_rows: LabelledRows | None = None
    """Distinct rows of the user's own that were held out, and what the original said to them."""

    @classmethod
    def of(cls, directory: str | Path) -> PreviousRun:
        """Read a run's directory."""
        path = as_path(directory)
        if not finished(path) and (path / LEDGER).is_file():
            hint = "run the command that made it once more: it goes on where it was"
            raise DirectoryError(str(path), "a finished run", "one that was interrupted", hint)
        result = load(path)
        _check_planned(path, result.settings)
        # Not the copy itself: the held-out rows may have selected it, and they are to measure again.
        found, t, theta = read_answers_and_round(path / LEDGER)
        purposes = (Purpose.GIVEN, Purpose.CHECK, Purpose.TRAINING, Purpose.CERTIFICATE)
        rows, said = concatenate(found[purpose] for purpose in purposes if purpose in found)
        held_out = len(found[Purpose.CERTIFICATE][1]) if Purpose.CERTIFICATE in found else 0
        network = _network(path, result, theta)
        digest = hashlib.sha256(read_bytes(path / RUN) + read_bytes(path / "copy.json")).hexdigest()
        seed = int(read_json(path / "copy.json")["sha256"][:12], 16)
        return cls(result, network, t, rows, said, held_out, digest, seed, found.get(Purpose.USER_ROWS))

    @property
    def user_sample(self) -> UserSample | None:
        """The user's own rows that were held out, with the original's labels; None if there are none, or not all known.

        One that equals another row of the run was not asked again, unless it has columns that the space lacks.
        """
        known, proof = self.result.copy.training_rows, self.result.certificate
        if known is None or proof is None or proof.on_data is None:
            return None
        told = [self.user_rows] if self.user_rows is not None else []
        rows, said = concatenate(told if proof.on_data.further else [*told, (self.rows, self.said)])
        keys = hashed(rows)
        order = np.argsort(keys, kind="stable")
        places = order[np.minimum(np.searchsorted(keys, known.sample, sorter=order), len(keys) - 1)]
        if (keys[places] != known.sample).any():
            return None
        left_out = {why: n for why, n in proof.on_data.reasons.items() if why not in (TAUGHT, CANDIDATES)}
        return UserSample(self.result.space, rows[places], answers=said.labels[places], left_out=Counter(left_out))

    @property
    def answers(self) -> np.ndarray:
        """The labels of all rows."""
        return self.said.labels

    @property
    def declared(self) -> Labels | None:
        """The labels that the original declared; its scores, if there are some, have a column for each."""
        classes = self.result.settings["classes"]
        return None if classes is None else Labels(classes)

    def points(self, view: FeatureView, labels: Labels) -> tuple[SampleSet, SampleSet]:
        """The training points and the held-out ones, as copies see them."""
        found = points([(view(self.rows), self.said)], labels, self.declared)
        learned, held = self.divided(view)
        return found.where(learned), found.where(held)

    def divided(self, view: FeatureView) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are to be learned from, and which are held out; given answers may lack a column that is seen."""
        held = np.arange(len(self.rows)) >= len(self.rows) - self.held_out
        return ~held & has_required_values(self.result.space, self.rows, view.seen), held

    @property
    def certifies_again(self) -> bool:
        """Whether the held-out rows may certify another copy: they did not decide when the run stopped."""
        before = self.result.settings
        return before["target"] is None and not before["until_flat"]

    @property
    def askable(self) -> np.ndarray:
        """The places of rows that the original can be asked about: all of their columns are known."""
        return np.flatnonzero(has_required_values(self.result.space, self.rows))

    def split(self, places: np.ndarray) -> tuple[Answered, Answered]:
        """The training rows and the held-out rows, with answers, without the rows at these places."""
        left = np.ones(len(self.rows), bool)
        left[places] = False
        held_out = np.arange(len(self.rows)) >= len(self.rows) - self.held_out
        learned, kept = left & ~held_out, left & held_out
        return (self.rows[learned], self.answers[learned]), (self.rows[kept], self.answers[kept])


def _network(path: Path, result: Result, theta: np.ndarray) -> Network:
    """The network of a run's last round, if its parameters are as many as it needs."""
    about = {"hidden": tuple(result.settings["layers"] or PAPER_LAYERS)}
    try:
        return Network.of_state(about, {"theta": theta}, result.copy.encoding.width, len(result.copy.classes))
    except ValueError as error:
        raise DirectoryError(
            str(path / LEDGER), "the network that the run trained", str(error), "copy again"
        ) from error


def _check_planned(path: Path, settings: Json) -> None:
    try:
        check_type(settings, PlannedRecord, "settings")
        settings_of_json(settings)
    except UNREADABLE as error:
        hint = "copy again"
        raise DirectoryError(str(path / RUN), "the settings that a run was made with", str(error), hint) from error
