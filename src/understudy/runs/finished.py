"""A finished run to continue from: its network, and everything that was answered."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.algorithm.network import MLP, PAPER_LAYERS, Network
from understudy.checksums import read_json
from understudy.errors import DirectoryError
from understudy.files import as_path
from understudy.queries.ledger import CHECK, NAME, answers, last_round
from understudy.runs.directory import finished
from understudy.runs.result import Result, load

Answered = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Past:
    """A finished run: its result, its network, and what was answered."""

    result: Result
    network: Network
    t: int
    """The round that the network is from."""
    rows: np.ndarray
    """Every answered row; the held-out rows come last."""
    answers: np.ndarray
    held_out: int
    """How many of them were held out for the certificate."""
    digest: str
    """A hash of the run."""
    seed: int
    """Taken from the hash of the copy, so that every refresh draws rows of its own."""

    @classmethod
    def of(cls, directory: str | Path) -> Past:
        """Read a run's directory."""
        path = as_path(directory)
        if not finished(path) and (path / NAME).is_file():
            hint = "run the command that made it once more: it goes on where it was"
            raise DirectoryError(str(path), "a finished run", "one that was interrupted", hint)
        result = load(path)
        found = answers(path / NAME)
        none = np.empty((0, result.space.d)), next(iter(found.values()))[1][:0]
        learned = [found.get(purpose, none) for purpose in (CHECK, "training")]
        held_out = found.get("certificate", none)
        rows, labels = (np.concatenate(part) for part in zip(*learned, held_out, strict=True))
        # Not the copy itself: the held-out rows may have selected it, and they are to measure again.
        t, theta = last_round(path / NAME)
        layers = tuple(result.settings["layers"] or PAPER_LAYERS)
        network = Network(MLP(result.copy.encoding.width, layers, len(result.copy.classes)), theta)
        digest = hashlib.sha256((path / "run.json").read_bytes() + (path / "copy.json").read_bytes()).hexdigest()
        seed = int(read_json(path / "copy.json")["sha256"][:12], 16)
        return cls(result, network, t, rows, labels, len(held_out[1]), digest, seed)

    def split(self, places: np.ndarray) -> tuple[Answered, Answered]:
        """The training rows and the held-out rows, with answers, without the rows at these places."""
        left = np.ones(len(self.rows), bool)
        left[places] = False
        held_out = np.arange(len(self.rows)) >= len(self.rows) - self.held_out
        learned, kept = left & ~held_out, left & held_out
        return (self.rows[learned], self.answers[learned]), (self.rows[kept], self.answers[kept])
