"""Independent random streams, one for each purpose: none depends on how much of another was used."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The purposes of random numbers. A value is part of what a seed means: changing one changes every copy made.

    >>> len({int(stream) for stream in Stream}) == len(Stream.__members__)
    True
    """

    INITIAL = 1
    """The initial parameters of a network."""
    DRAW = 2
    """Random rows that are asked."""
    HELD_OUT = 3
    """Rows of a run's certificate."""
    CANDIDATES = 4
    """Candidates that the next queries are chosen from."""
    FREE = 5
    """Unlabelled rows for distillation."""
    CHOICE = 6
    """Which of the candidates are asked about."""
    BESIDE = 7
    """The initial parameters of networks that are made from all answers."""
    BATCHES = 8
    """The rows of each batch in training."""
    MORE_HELD_OUT = 10
    """Rows of a refreshed copy's certificate, beyond those of the last run."""
    FOLDS = 11
    """Which answers are held out while the members of a blend are weighed."""
    CENTRES = 12
    """Which answers are the centres of radial functions."""
    OWN = 13
    """Which of the user's own rows are held out, and the order of the others."""
    KEPT = 14
    """Which points are kept under a bound on memory, beside the most uncertain."""
    HALVES = 0x4A
    """Which half of a certificate's rows differences are found on; the other half measures them."""
    MARGINS = 0xB0
    """Unlabelled rows that tell which margins are low."""
    PAGE = 0xFA6E
    """Rows of a space that show, in a page, what values its columns have."""
    CHECK = 0xC4EC
    """Rows of a ledger that are asked again, to find out whether an original changed."""
    CERTIFY = 0xCE27
    """Rows of a certificate made outside of any run."""
    SETS = 0x5E75
    """Rows of a stratified certificate: sets of unlabelled rows, and which of each set is asked."""
    CASCADE = 0xCA5C
    """Rows that are asked to certify a cascade."""
    GRID = 0x641D
    """Unlabelled rows whose margins make the thresholds of a cascade."""
    TABLE = 0x7AB1E
    """The order in which stored answers are used."""


def stream(seed: int, *parts: int) -> np.random.Generator:
    """The generator for a purpose, and for a round or further numbers.

    >>> a, b = stream(0, Stream.DRAW, 1), stream(0, Stream.DRAW, 2)
    >>> bool(a.random() != b.random())
    True
    """
    return np.random.default_rng([seed, *parts])
