"""Has an original changed? A sequential test: rows of the ledger are asked again, and those that flip a third time.

A noisy original flips some rows without having changed. But as long as it is unchanged, its answers to a row are
exchangeable: where the second differs from the first, the third is as likely to equal the first as the second. After a
change it mostly equals the second. A bet on that is a test martingale, and its value an e-value: by Ville's inequality,
it ever reaches 20 for at most one in 20 unchanged originals, whatever the noise and however often one looks. A
deterministic original never flips while it is unchanged, so a single flip is a change. But determinism has to be
declared: a hundred consistent answers do not show it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from understudy.queries.ledger import CHECK, REPEAT
from understudy.queries.queries import Queries

# Rows asked by default: a change of 1 % of answers shows in 95 of 100 checks.
ROWS = 300
# While the evidence is not conclusive, the check goes on up to so many times its rows.
MORE = 4
# Rows asked between two looks at the e-value.
LOOK = 50
# The fractions bet by the martingales that are averaged, and the false alarm rate.
STAKES, ALARMS = (0.6, 0.9, 0.99), 0.05


@dataclass(frozen=True)
class Check:
    """Rows of a ledger that were asked again."""

    places: np.ndarray
    """Which of the rows given, in the order they were asked."""
    answers: np.ndarray
    """The original's answers today."""
    flipped: int
    """How many answers differ from the old ones."""
    stayed: int
    """Of those, how many third answers equal the new one."""
    returned: int
    """Of those, how many third answers equal the old one."""
    deterministic: bool = False
    """Whether the original was declared to be deterministic."""

    @property
    def changed(self) -> bool:
        """Whether the e-value rejects that the original is unchanged, or one declared deterministic has flipped."""
        return (self.deterministic and self.stayed > 0) or evidence(self.stayed, self.returned) >= 1 / ALARMS

    @property
    def at_most(self) -> float:
        """The Clopper-Pearson upper bound, at 95 %, of the share of the ledger's answers that changed for good."""
        from scipy.special import betaincinv

        n = len(self.places)
        return 1.0 if self.stayed == n else float(betaincinv(self.stayed + 1, n - self.stayed, 0.95))

    def as_json(self) -> dict[str, Any]:
        """The check as JSON values."""
        counts = {key: value for key, value in asdict(self).items() if key not in ("places", "answers")}
        return {"asked": len(self.places), **counts, "at_most": self.at_most}


def evidence(stayed: int, returned: int) -> float:
    """The e-value against "unchanged": what one unit has become, bet on flipped answers to stay flipped.

    >>> evidence(5, 0) > 20, evidence(5, 1) > 20, evidence(9, 1) > 20
    (True, False, True)
    """
    return fmean((1 + stake) ** stayed * (1 - stake) ** returned for stake in STAKES)


def check(
    queries: Queries,
    rows: np.ndarray,
    answers: np.ndarray,
    n: int,
    most: int,
    rng: np.random.Generator,
    deterministic: bool = False,
    purpose: str = CHECK,
) -> Check:
    """Ask n random rows again; fewer once a change is shown, up to `most` while the e-value is above 1."""
    order = rng.permutation(len(rows))[: max(n, most)]
    done = Check(order[:0], answers[:0], 0, 0, 0, deterministic)
    while len(done.places) < len(order) and not done.changed:
        at = len(done.places)
        if at >= n and evidence(done.stayed, done.returned) <= 1:
            break
        asked = order[at : min(at + LOOK, n if at < n else len(order))]
        found = queries.ask(purpose, rows[asked])
        differs = found != answers[asked]
        again = queries.ask(REPEAT, rows[asked[differs]]) if differs.any() else found[:0]
        done = replace(
            done,
            places=order[: at + len(asked)],
            answers=np.concatenate([done.answers, found]) if at else found,  # in its own type
            flipped=done.flipped + int(differs.sum()),
            stayed=done.stayed + int((again == found[differs]).sum()),
            returned=done.returned + int((again == answers[asked[differs]]).sum()),
        )
    return done
