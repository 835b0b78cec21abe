"""Is the sequential copy as good as the single pass? Tests for each problem, over all problems, and the averages.

Two answers are given for each problem. The *test* is a paired t-test over repetitions, its p-values corrected by Holm's
method for the number of problems. The *margin* calls anything within five points of accuracy a match; applied to the
means in the paper's own Table 4 it gives the counts that the paper's text quotes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ectype_paper.operating_points import SHARE, Point, Points, Spread

# The chance of calling any problem different, though none is.
LEVEL = 0.05
# Differences of accuracy up to this are no difference to the paper, as far as its numbers tell.
MARGIN = 0.05
# What each operational point is the best in.
GOALS = {"best_accuracy": "accuracy", "best_efficiency": "eff", "best_convergence": "conv"}
# Measures that only copies of several rounds have.
ROUNDS = ("eff", "conv")
# The accuracies of a problem's two copies.
COPIES = ("accuracy_single", "best_accuracy_accuracy")
VERDICTS = ("matches", "better", "worse")
# Samples of the problems, drawn with replacement, for intervals.
RESAMPLES = 500
# Below this, differences are what floating point leaves.
NOISE = 1e-9

Row = Mapping[str, Any]


class PairedComparison(NamedTuple):
    """A problem's copies of two kinds; without two repetitions there is no test."""

    problem: str
    difference: float
    """The mean over repetitions of the first copy's measure minus the second's."""
    p: float | None
    corrected: float | None
    """The p-value by Holm's method."""
    least: float | None
    """How large a difference must be for the corrected test to find it, were this problem the clearest."""

    @property
    def by_test(self) -> str:
        """What the corrected test says: matches, better or worse."""
        return _verdict(self.difference, self.corrected is not None and self.corrected < LEVEL)

    @property
    def by_margin(self) -> str:
        """What the margin says: matches, better or worse."""
        return _verdict(self.difference, abs(self.difference) > MARGIN + NOISE)


@dataclass(frozen=True)
class OverProblems:
    """Wilcoxon's signed-rank test of differences, one for each problem, against none."""

    n: int
    """How many problems differ at all; the others say nothing to this test."""
    mean: float
    error: float | None
    """The standard error of the mean; None for one problem."""
    p: float


def compare(
    problems: Sequence[Points], place: str, measure: str = "accuracy", against: str | None = None
) -> list[PairedComparison]:
    """Every problem at one operational point, `best_accuracy` for one, against its single pass or another point."""
    pairs = [
        (
            _measure(getattr(one, place), measure),
            _single(one, measure) if against is None else _measure(getattr(one, against), measure),
        )
        for one in problems
    ]
    tests = [paired_t(ours.values, theirs.values) for ours, theirs in pairs]
    corrected = iter(holm([p for p in tests if p is not None]))
    return [
        PairedComparison(
            one.problem,
            ours.mean - theirs.mean,
            p,
            None if p is None else next(corrected),
            _least_found(ours.values, theirs.values, len(pairs)),
        )
        for one, (ours, theirs), p in zip(problems, pairs, tests, strict=True)
    ]


def counts(verdicts: Sequence[str]) -> dict[str, int]:
    """How many match, are better and are worse.

    >>> counts(["matches", "worse", "matches"])
    {'matches': 2, 'better': 0, 'worse': 1}
    """
    found = Counter(verdicts)
    return {verdict: found[verdict] for verdict in VERDICTS}


def paired_t(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The p-value of a two-sided paired t-test; None where there are not two pairs.

    Where all differences are the same there is no deviation to compare them with: p is 1 if they are 0, else 0.

    >>> paired_t([0.8, 0.8], [0.8, 0.8]), paired_t([0.8], [0.7])
    (1.0, None)
    """
    from scipy.special import stdtr

    differences = np.asarray(first, float) - np.asarray(second, float)
    mean, error = differences.mean(), _error(differences)
    if error is None:
        return None
    if abs(mean) < NOISE:
        return 1.0
    return 0.0 if error < NOISE else float(2 * stdtr(len(differences) - 1, -abs(mean) / error))


def _least_found(first: Sequence[float], second: Sequence[float], tests: int) -> float | None:
    """The least mean difference, with deviations as they are, that is significant in the first of so many tests."""
    from scipy.special import stdtrit

    error = _error(np.asarray(first, float) - np.asarray(second, float))
    return None if error is None else float(-stdtrit(len(first) - 1, LEVEL / tests / 2) * error)


def _error(values: np.ndarray) -> float | None:
    """The standard error of the mean; None for one value."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


def holm(p: Sequence[float]) -> list[float]:
    """P-values of a family of tests, corrected so that the chance of any false alarm stays at the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    raised = np.asarray(p, float)[order] * np.arange(len(p), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(raised)) if len(p) else raised
    return [float(value) for value in corrected]


def over_problems(differences: Sequence[float]) -> OverProblems:
    """Whether problems differ in one direction, by the ranks of how much; a problem is one number, its mean."""
    from scipy.stats import wilcoxon

    found = np.asarray(differences, float)
    found = np.where(np.abs(found) < NOISE, 0.0, found)
    n = int(np.count_nonzero(found))
    # Rounded, so that equal differences are ties though floating point tells them apart.
    p = float(wilcoxon(np.round(found[found != 0], 9)).pvalue) if n else 1.0
    return OverProblems(n, float(found.mean()), _error(found), p)


def held_out(problem: Points, place: str, measure: str = "accuracy") -> float | None:
    """The difference to the single pass where each run's threshold was chosen by the other runs; None for one run.

    The best of many thresholds is partly the luckiest. A run that had no part in the choice has no part in the luck.
    Of eff and conv, which a single pass has none of, it is the value itself.
    """
    runs = range(len(problem.single_accuracy.values))
    if len(runs) < 2:
        return None
    found = []
    for run in runs:
        others = [other for other in runs if other != run]
        least = SHARE * _mean(problem.single_accuracy, others)
        eligible = [one for one in problem.deltas if _mean(one.accuracy, others) > least]
        goal = GOALS[place] if eligible else "accuracy"
        chosen = max(eligible or problem.deltas, key=lambda one: _mean(_measure(one, goal), others))
        single = 0.0 if measure in ROUNDS else _single(problem, measure).values[run]
        found.append(_measure(chosen, measure).values[run] - single)
    return float(np.mean(found))


def all_held_out(problems: Sequence[Points], place: str, measure: str = "accuracy") -> list[float] | None:
    """The same for every problem; None where one of them has a single run."""
    found = [value for one in problems if (value := held_out(one, place, measure)) is not None]
    return found if len(found) == len(problems) else None


def averages(rows: Sequence[Row]) -> dict[str, float]:
    """The mean over problems of every column of Table 4 that is a number; deviations have no mean worth printing."""
    names = [name for name in rows[0] if name != "dataset" and not name.endswith("_std")]
    return {name: float(np.mean([row[name] for row in rows])) for name in names}


def figures(rows: Sequence[Row]) -> dict[str, float]:
    """The numbers that the paper's text quotes, from rows of Table 4: the paper's, or ours.

    They use means only, so that they can be worked out from the paper's table as well; counts go by the margin where
    they are about matching, and otherwise by which mean is higher.
    """
    mean = averages(rows)
    difference = [row["best_accuracy_accuracy"] - row["accuracy_single"] for row in rows]
    found: dict[str, float] = {
        "matches": sum(abs(value) <= MARGIN + NOISE for value in difference),
        "worse": sum(value < -MARGIN - NOISE for value in difference),
        "better": sum(value > MARGIN + NOISE for value in difference),
    }
    for place in GOALS:
        eff, conv = mean[f"{place}_eff"], mean[f"{place}_conv"]
        loss = 1 - mean[f"{place}_accuracy"] / mean["accuracy_single"]
        found |= {f"{place}_eff": eff, f"{place}_conv": conv, f"{place}_points": (1 - eff) / 2}
        found |= {f"{place}_time": 2 * (1 - conv), f"{place}_loss": loss}
        found[f"{place}_lower"] = _count(rows, f"{place}_accuracy", "accuracy_single", below=True)
    found["best_efficiency_saves"] = _count(rows, "best_efficiency_eff", "best_accuracy_eff", below=False)
    found["best_convergence_costs"] = _count(rows, "best_convergence_eff", "best_accuracy_eff", below=True)
    found["best_convergence_differs"] = _count(rows, "best_convergence_conv", "best_accuracy_conv", below=False)
    found["best_efficiency_slower"] = mean["best_accuracy_conv"] - mean["best_efficiency_conv"]
    found["least_saved"] = 1 - max(found[f"{place}_points"] for place in GOALS)
    found["most_saved"] = 1 - min(found[f"{place}_points"] for place in GOALS)
    found["least_time_saved"] = 1 - max(found[f"{place}_time"] for place in GOALS)
    # Those of the panel that the text says it of: convergence against efficiency.
    shown = [row[f"{place}_conv"] for row in rows for place in ("best_efficiency", "best_convergence")]
    found |= {"lowest_conv": min(shown), "highest_conv": max(shown)}
    lead = [[row[name] - row["accuracy_original"] for name in COPIES] for row in rows]
    found["below_original"] = sum(max(both) < 0 for both in lead)
    found["above_original"] = sum(min(both) > 0 for both in lead)
    found["well_above_original"] = sum(min(both) > MARGIN + NOISE for both in lead)
    return found


def intervals(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """From where to where each of these numbers lies in 95 % of bootstrap samples of the problems."""
    rng = np.random.default_rng(0)
    found = [figures([rows[k] for k in rng.integers(len(rows), size=len(rows))]) for _ in range(RESAMPLES)]
    return {
        name: (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975)))
        for name in found[0]
        for values in [[one[name] for one in found]]
    }


def _count(rows: Sequence[Row], name: str, other: str, below: bool) -> int:
    differences = [row[other] - row[name] if below else row[name] - row[other] for row in rows]
    return sum(value > NOISE for value in differences)


def _mean(spread: Spread, runs: Sequence[int]) -> float:
    return float(np.mean([spread.values[run] for run in runs]))


def _verdict(difference: float, differs: bool) -> str:
    if not differs:
        return "matches"
    return "better" if difference > 0 else "worse"


def _measure(point: Point, measure: str) -> Spread:
    return getattr(point, measure)


def _single(points: Points, measure: str) -> Spread:
    return getattr(points, f"single_{measure}")
