"""Where a copy and its original differ, as plain values: labels that are mistaken, conditions, and examples."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Flip:
    """A cell of the flip matrix: on so many rows the original gives one label, and the copy another."""

    original: Any
    copy: Any
    n: int


@dataclass(frozen=True)
class Rule:
    """A condition on raw columns under which copy and original differ more often than elsewhere.

    Found on one half of the rows and measured on the other: it holds on `n` of those, on `share` of which they differ,
    and with the certificate's confidence, for all rules at once, on at least `lower` of such rows.
    """

    text: str
    n: int
    share: float
    lower: float


@dataclass(frozen=True)
class Example:
    """A row on which they differ, by the names of its columns (None is a gap), and both labels."""

    row: dict[str, Any]
    original: Any
    copy: Any


@dataclass(frozen=True)
class Differences:
    """Where copy and original differ, as far as the rows of a certificate show it."""

    n: int
    """On how many of the rows they differ."""
    flips: tuple[Flip, ...]
    """From the most frequent to the least."""
    rules: tuple[Rule, ...]
    note: str
    """Why there are no rules, if there are none."""
    examples: tuple[Example, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Differences:
        """Read what `as_json` wrote."""
        kinds: dict[str, type[Flip | Rule | Example]] = {"flips": Flip, "rules": Rule, "examples": Example}
        parts = {name: tuple(kind(**part) for part in content[name]) for name, kind in kinds.items()}
        return cls(**{**content, **parts})
