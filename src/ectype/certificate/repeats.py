"""Rows that the original was asked twice: how consistently it answers, and what that allows any copy."""

from __future__ import annotations

from dataclasses import dataclass

from ectype._common.formatting import percent
from ectype.certificate.bounds import lower_bound
from ectype.errors import TargetError

# Of what is said about them.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Repeats:
    """Rows that the original was asked twice, and on how many of them the answers differ."""

    n: int
    disagreed: int

    @property
    def ceiling(self) -> float:
        """The highest fidelity that any copy can be expected to reach, by these rows alone: an estimate.

        Two answers to a row, drawn with probabilities p, agree with probability sum p^2; a deterministic copy agrees
        with probability max p at best. That is at most the square root of the former; by Jensen's inequality, also in
        the mean over rows.

        >>> Repeats(100, 0).ceiling, round(Repeats(100, 18).ceiling, 4)
        (1.0, 0.9055)
        """
        return (1 - self.disagreed / self.n) ** 0.5

    def ceiling_bound(self, confidence: float = CONFIDENCE) -> float:
        """The highest fidelity that any copy can be expected to reach, with this confidence: what so few rows can show.

        >>> round(Repeats(3, 3).ceiling_bound(), 4), round(Repeats(3, 3).ceiling, 4)
        (0.7947, 0.0)
        """
        return (1 - lower_bound(self.disagreed, self.n, confidence)) ** 0.5

    @property
    def text(self) -> str:
        """The ceiling as a sentence; empty if no answer changed."""
        if not self.disagreed:
            return ""
        changed = f"the original answered {self.disagreed} of {self.n} rows differently when asked again"
        bound = f"no copy can be expected to agree with it on more than {percent(self.ceiling_bound())} of rows"
        return f"{changed}: {bound}, with {CONFIDENCE:.0%} confidence"

    def check_target(self, target: float, confidence: float) -> None:
        """Refuse a target that, with this confidence, is above the ceiling."""
        most = self.ceiling_bound(confidence)
        if most < target:
            changed = f"asked again, the original changed {self.disagreed} of {self.n} answers"
            hint = f"{changed}, and no copy can agree with it more often; lower the target, or leave it out"
            raise TargetError("target", f"at most {most:.4f}, with {confidence:.0%} confidence", target, hint)
