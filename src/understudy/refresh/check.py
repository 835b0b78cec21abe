"""Has an original changed? Rows it once answered are asked again, and those it now answers otherwise once more.

An original that does not always answer alike changes its mind on some rows too. But as long as the original is the one
it was, its answers to a row, old and new, come in no particular order. So where the new answer differs from the old
one, a third is as likely to be like the old as like the new. After a change it is like the new. Whatever the noise,
and however often one looks, betting on the latter multiplies one's money by 20 in at most one of 20 unchanged
originals; and one that always answers alike never flips at all. Of such a one a single flip is a change; but that it is
such a one has to be said: a hundred answers that came twice the same do not show it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from understudy.queries import Queries
from understudy.queries.ledger import CHECK, REPEAT

# Rows that are asked unless said otherwise: a change of 1 % of answers shows in 95 of 100 checks.
ROWS = 300
# Where some answers flipped and it is not clear why, the check goes on up to so many times its rows.
MORE = 4
# Rows that are asked before the next look.
LOOK = 50
# The shares of one's money that are bet, each with a third of it, and the false alarms that are allowed.
STAKES, ALARMS = (0.6, 0.9, 0.99), 0.05


@dataclass(frozen=True)
class Check:
    """Rows of a ledger that were asked again."""

    places: np.ndarray
    """Which of the rows given, in the order they were asked."""
    answers: np.ndarray
    """What the original says today."""
    flipped: int
    """How many answers are not what they were."""
    stayed: int
    """Of those, how many stayed flipped when asked once more."""
    returned: int
    """Of those, how many were as they had been when asked once more."""
    deterministic: bool = False
    """Whether the original always answers alike."""

    @property
    def changed(self) -> bool:
        """Whether an original that is what it was would hardly ever answer so."""
        return (self.deterministic and self.stayed > 0) or evidence(self.stayed, self.returned) >= 1 / ALARMS

    @property
    def at_most(self) -> float:
        """With 95 % confidence, no larger share of the ledger's answers has changed for good."""
        from scipy.special import betaincinv

        n = len(self.places)
        return 1.0 if self.stayed == n else float(betaincinv(self.stayed + 1, n - self.stayed, 0.95))

    def as_json(self) -> dict[str, Any]:
        """The check as JSON values."""
        counts = {key: value for key, value in asdict(self).items() if key not in ("places", "answers")}
        return {"asked": len(self.places), **counts, "at_most": self.at_most}


def evidence(stayed: int, returned: int) -> float:
    """What a unit of money has become, bet on flipped answers to stay so.

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
) -> Check:
    """Ask about n of the rows again, each as likely; fewer once a change is plain, up to `most` while one is likely."""
    order = rng.permutation(len(rows))[: max(n, most)]
    done = Check(order[:0], answers[:0], 0, 0, 0, deterministic)
    while len(done.places) < len(order) and not done.changed:
        at = len(done.places)
        if at >= n and evidence(done.stayed, done.returned) <= 1:
            break
        asked = order[at : min(at + LOOK, n if at < n else len(order))]
        found = queries.ask(CHECK, rows[asked])
        differs = found != answers[asked]
        again = queries.ask(REPEAT, rows[asked[differs]]) if differs.any() else found[:0]
        done = replace(
            done,
            places=order[: at + len(asked)],
            answers=np.concatenate([done.answers, found]),
            flipped=done.flipped + int(differs.sum()),
            stayed=done.stayed + int((again == found[differs]).sum()),
            returned=done.returned + int((again == answers[asked[differs]]).sum()),
        )
    return done
