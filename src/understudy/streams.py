"""Streams of random numbers, one for each purpose: none depends on how much of another was used."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What random numbers are for. A value is part of what a seed means: changing one changes every copy made with it.

    >>> len({int(stream) for stream in Stream}) == len(Stream.__members__)
    True
    """

    INITIAL = 1
    """Where the training of a network starts."""
    DRAW = 2
    """Rows that are asked because the space gives them."""
    HELD_OUT = 3
    """Rows of a run's certificate."""
    CANDIDATES = 4
    """Rows that the next queries are chosen among."""
    FREE = 5
    """Unlabelled rows that a better copy labels for another."""
    CHOICE = 6
    """Which of the candidates are asked about."""
    BESIDE = 7
    """Where the training of networks that teach beside the first starts."""
    BATCHES = 8
    """The rows of each step of training."""
    SMALLER = 9
    """Where the training of a frontier's smaller networks starts."""
    MORE_HELD_OUT = 10
    """Rows of a refreshed copy's certificate beyond those of the run before."""
    HALVES = 0x4A
    """Which half of a certificate's rows differences are found on; the other half measures them."""
    MARGINS = 0xB0
    """Unlabelled rows that tell which margins are low."""
    CHECK = 0xC4EC
    """Rows of a ledger that are asked again, to see whether an original changed."""
    CERTIFY = 0xCE27
    """Rows of a certificate made apart from any run."""
    TABLE = 0x7AB1E
    """The order in which stored answers are used."""


def stream(seed: int, *parts: int) -> np.random.Generator:
    """The generator for a purpose, and for a round or whatever else tells one from another.

    >>> a, b = stream(0, Stream.DRAW, 1), stream(0, Stream.DRAW, 2)
    >>> bool(a.random() != b.random())
    True
    """
    return np.random.default_rng([seed, *parts])
