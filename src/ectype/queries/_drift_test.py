"""The drift test: a sequential test of whether an original still answers as the ledger says.

Rows of the ledger are asked again. Where the second answer differs from the first, the row is asked a third time.

A noisy original flips some answers without having changed. But as long as it is unchanged, its three answers to a row
are exchangeable: given that the second differs from the first, the third is as likely to equal the one as the other.
After a change, it mostly equals the second. `e_value` is the capital of somebody who starts with 1 and bets on that. It
is a nonnegative martingale while the original is unchanged (a test martingale; at any stopping time its value is an
e-value: Vovk and Wang 2021), so by Ville's inequality (Ville 1939) it ever reaches 20 for at most one in 20 unchanged
originals, whatever the noise, and however often one looks.

A deterministic original never flips while it is unchanged, so a single flip that stays shows a change. Determinism has
to be declared: a hundred consistent answers do not prove it.

Recent answers that somebody already has are second answers that cost nothing. Where one differs from the ledger's, the
row is asked once, which gives the third. Such rows are not a random sample: they count as evidence of a change, but
not towards the share of answers that changed.

References:
V. Vovk and R. Wang (2021), E-values: Calibration, combination and applications, Annals of Statistics 49(3).
J. Ville (1939), Etude critique de la notion de collectif, Gauthier-Villars.
C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
binomial, Biometrika 26(4).
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
# While the e-value is above 1 and below its threshold, the test goes on up to so many times its rows.
DRIFT_TEST_FACTOR = 4
# Rows asked between two looks at the e-value.
LOOK = 50
# The fractions of the capital that are bet: the e-value is the mean of three martingales. And the false alarm rate.
STAKES, FALSE_ALARMS = (0.6, 0.9, 0.99), 0.05


class LabelClaims(NamedTuple):
    """Second answers from elsewhere, which were not asked for: to the rows at these places."""

    places: np.ndarray
    labels: np.ndarray

    def contradicting(self, answers: np.ndarray) -> LabelClaims:
        """Those that differ from these answers; labels of different types always do."""
        pairs = zip(self.labels.tolist(), answers[self.places].tolist(), strict=True)
        return self.select(np.array([now != before for now, before in pairs], bool))

    def select(self, keep: np.ndarray) -> LabelClaims:
        """Some of them."""
        return LabelClaims(self.places[keep], self.labels[keep])


@dataclass(frozen=True)
class ContestedRows:
    """Counts of rows whose claimed answer differs from the ledger's, and which were asked once."""

    asked: int = 0
    stayed: int = 0
    """How many answers equal the claimed one."""
    returned: int = 0
    """How many answers equal the ledger's."""


@dataclass(frozen=True)
class DriftTest:
    """The outcome of a drift test."""

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
    """Further rows, with claimed answers that differ."""

    @property
    def changed(self) -> bool:
        """Whether the e-value rejects that the original is unchanged, or one declared deterministic has flipped."""
        return (self.deterministic and self._stayed > 0) or self.e_value >= 1 / FALSE_ALARMS

    @property
    def e_value(self) -> float:
        """The e-value against the hypothesis that the original is unchanged."""
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
        """An upper bound, at 95 %, of the share of the ledger's answers that changed for good (Clopper, Pearson 1934).

        It is exact for a fixed number of random rows. It makes no allowance for a test that stopped early.
        """
        from scipy.special import betaincinv

        n = len(self.places)
        return 1.0 if self.stayed == n else float(betaincinv(self.stayed + 1, n - self.stayed, 0.95))

    def as_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        left = ("places", "answers", *(("contested",) if self.contested is None else ()))
        counts = {key: value for key, value in asdict(self).items() if key not in left}
        return {"asked": len(self.places), **counts, "at_most": self.at_most}


def e_value(stayed: int, returned: int) -> float:
    """The e-value against the hypothesis that an original is unchanged: of flipped answers, some stayed, some returned.

    The mean over the stakes of (1 + stake)^stayed * (1 - stake)^returned. While stayed and returned are equally likely,
    each factor is 1 on average.

    >>> e_value(5, 0) > 20, e_value(5, 1) > 20, e_value(9, 1) > 20
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
    """Ask n random rows again: fewer once a change is shown, up to `most` while the e-value is above 1.

    Rows with claims that differ come first, at most n of them, without those that the random order may reach: so no
    answer counts twice, and the random rows are a sample of all. Some of these are asked in any case.
    """
    order = rng.permutation(len(rows))[: max(n, most)]
    done = DriftTest(order[:0], answers[:0], 0, 0, 0, deterministic)
    if claims is not None:
        others = claims.contradicting(answers)
        done = _ask_contested(done, queries, rows, answers, others.select(~np.isin(others.places, order)), n)
    while len(done.places) < len(order) and not (done.changed and len(done.places)):
        at = len(done.places)
        if at >= n and done.e_value <= 1:
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


def _ask_contested(
    done: DriftTest, queries: Queries, rows: np.ndarray, answers: np.ndarray, claims: LabelClaims, most: int
) -> DriftTest:
    """Ask the rows whose claim differs from the ledger, until a change is shown."""
    for at in range(0, min(most, len(claims.places)), LOOK):
        if done.changed:
            break
        places, labels = (part[at : min(at + LOOK, most)] for part in claims)
        found, before = queries.query_labels(Purpose.REPEAT, rows[places]), done.contested or ContestedRows()
        contested = ContestedRows(
            before.asked + len(places),
            before.stayed + _count_equal(found, labels),
            before.returned + _count_equal(found, answers[places]),
        )
        done = replace(done, contested=contested)
    return done


def _count_equal(found: np.ndarray, others: np.ndarray) -> int:
    return sum(a == b for a, b in zip(found.tolist(), others.tolist(), strict=True))
