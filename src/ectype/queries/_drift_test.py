"""Has an original changed? A sequential test: rows of the ledger are asked again, and those that flip a third time.

A noisy original flips some rows without having changed. But as long as it is unchanged, its answers to a row are
exchangeable: where the second differs from the first, the third is as likely to equal the first as the second. After a
change it mostly equals the second. A bet on that is a test martingale, and its value an e-value: by Ville's inequality,
it ever reaches 20 for at most one in 20 unchanged originals, whatever the noise and however often one looks. A
deterministic original never flips while it is unchanged, so a single flip is a change. But determinism has to be
declared: a hundred consistent answers do not show it.

Answers of today that somebody has already are second answers that cost nothing. Where one differs from the ledger's,
the row is asked once, and that is its third. Such rows were not drawn at random: they are evidence of a change, but
say nothing of its share.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from ectype.ledger import Purpose
from ectype.queries._queries import Queries

# Rows asked by default: a change of 1 % of answers shows in 95 of 100 checks.
DRIFT_TEST_ROWS = 300
# While the evidence is not conclusive, the check goes on up to so many times its rows.
DRIFT_TEST_FACTOR = 4
# Rows asked between two looks at the e-value.
LOOK = 50
# The fractions bet by the martingales that are averaged, and the false alarm rate.
STAKES, ALARMS = (0.6, 0.9, 0.99), 0.05


class LabelClaims(NamedTuple):
    """Second answers that were given, and not asked for: to the rows at these places."""

    places: np.ndarray
    labels: np.ndarray

    def against(self, answers: np.ndarray) -> LabelClaims:
        """Those that differ from these answers; labels of different types always do."""
        pairs = zip(self.labels.tolist(), answers[self.places].tolist(), strict=True)
        return self.where(np.array([now != before for now, before in pairs], bool))

    def where(self, keep: np.ndarray) -> LabelClaims:
        """Some of them."""
        return LabelClaims(self.places[keep], self.labels[keep])


@dataclass(frozen=True)
class ContestedRows:
    """Rows whose given answer differs from the ledger's, asked once: what the original says to them."""

    asked: int = 0
    stayed: int = 0
    """How many answers equal the given one."""
    returned: int = 0
    """How many equal the ledger's."""


@dataclass(frozen=True)
class DriftTest:
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
    contested: ContestedRows | None = None
    """Other rows, whose answers were given and differ."""

    @property
    def changed(self) -> bool:
        """Whether the e-value rejects that the original is unchanged, or one declared deterministic has flipped."""
        return (self.deterministic and self._stayed > 0) or self.evidence >= 1 / ALARMS

    @property
    def evidence(self) -> float:
        """The e-value against "unchanged"."""
        returned = self.returned + (0 if self.contested is None else self.contested.returned)
        return e_value(self._stayed, returned)

    @property
    def repeated(self) -> int:
        """How many rows were asked for a third answer."""
        return self.flipped + (0 if self.contested is None else self.contested.asked)

    @property
    def _stayed(self) -> int:
        return self.stayed + (0 if self.contested is None else self.contested.stayed)

    @property
    def at_most(self) -> float:
        """The Clopper-Pearson upper bound, at 95 %, of the share of the ledger's answers that changed for good."""
        from scipy.special import betaincinv

        n = len(self.places)
        return 1.0 if self.stayed == n else float(betaincinv(self.stayed + 1, n - self.stayed, 0.95))

    def as_json(self) -> dict[str, Any]:
        """The check as JSON values."""
        left = ("places", "answers", *(("contested",) if self.contested is None else ()))
        counts = {key: value for key, value in asdict(self).items() if key not in left}
        return {"asked": len(self.places), **counts, "at_most": self.at_most}


def e_value(stayed: int, returned: int) -> float:
    """The e-value against "unchanged": what one unit has become, bet on flipped answers to stay flipped.

    >>> evidence(5, 0) > 20, evidence(5, 1) > 20, evidence(9, 1) > 20
    (True, False, True)
    """
    return fmean((1 + stake) ** stayed * (1 - stake) ** returned for stake in STAKES)


def run_drift_test(
    queries: Queries,
    rows: np.ndarray,
    answers: np.ndarray,
    n: int,
    most: int,
    rng: np.random.Generator,
    deterministic: bool = False,
    purpose: Purpose = Purpose.CHECK,
    claims: LabelClaims | None = None,
) -> DriftTest:
    """Ask n random rows again; fewer once a change is shown, up to `most` while the e-value is above 1.

    Rows with claims that differ come first, n of them at most, without those that may be asked anyway: so no answer
    counts twice, and the random rows are a sample of all. Some of these are asked in any case.
    """
    order = rng.permutation(len(rows))[: max(n, most)]
    done = DriftTest(order[:0], answers[:0], 0, 0, 0, deterministic)
    if claims is not None:
        others = claims.against(answers)
        done = _settled(done, queries, rows, answers, others.where(~np.isin(others.places, order)), n)
    while len(done.places) < len(order) and not (done.changed and len(done.places)):
        at = len(done.places)
        if at >= n and done.evidence <= 1:
            break
        asked = order[at : min(at + LOOK, n if at < n else len(order))]
        found = queries.query_labels(purpose, rows[asked])
        differs = found != answers[asked]
        again = queries.query_labels(Purpose.REPEAT, rows[asked[differs]]) if differs.any() else found[:0]
        done = replace(
            done,
            places=order[: at + len(asked)],
            answers=np.concatenate([done.answers, found]) if at else found,  # in its own type
            flipped=done.flipped + int(differs.sum()),
            stayed=done.stayed + int((again == found[differs]).sum()),
            returned=done.returned + int((again == answers[asked[differs]]).sum()),
        )
    return done


def _settled(
    done: DriftTest, queries: Queries, rows: np.ndarray, answers: np.ndarray, claims: LabelClaims, most: int
) -> DriftTest:
    """Ask rows with a claim that differs from the ledger, until a change is shown."""
    for at in range(0, min(most, len(claims.places)), LOOK):
        if done.changed:
            break
        places, labels = (part[at : min(at + LOOK, most)] for part in claims)
        found, before = queries.query_labels(Purpose.REPEAT, rows[places]), done.contested or ContestedRows()
        contested = ContestedRows(
            before.asked + len(places),
            before.stayed + _alike(found, labels),
            before.returned + _alike(found, answers[places]),
        )
        done = replace(done, contested=contested)
    return done


def _alike(found: np.ndarray, others: np.ndarray) -> int:
    return sum(a == b for a, b in zip(found.tolist(), others.tolist(), strict=True))
