"""Check a ledger, and say what was checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._schema import UNCHAINED, anchors, answered_requests, format_of, reading


@dataclass(frozen=True)
class Verification:
    """What was checked: every row of a ledger, against its chain and where that is known to have been."""

    checked: bool
    """Whether there are checksums; ledgers of version 0.1 have none."""
    batches: int
    rows: int
    """Rows with an answer."""
    anchors: list[str]
    """The files that say how far the chain had come."""


def verify(path: Path) -> Verification:
    """Check a ledger; damage is an error that names the place, and says what is left."""
    known = [name for name, _ in anchors(path)] if path.is_file() else []
    with reading(path) as connection:  # which checks all of it
        chained = format_of(connection, path) != UNCHAINED
        rows = sum(len(codes) for _, _, _, codes in answered_requests(connection))
        return Verification(chained, hash_chain.last(connection).batch if chained else 0, rows, known)
