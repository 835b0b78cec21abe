"""What the paper's text says of Table 4: every number that it quotes, and tests of what it calls significant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype_paper.exhibit_io import as_markdown
from ectype_paper.operating_points import PLACES, OfTable4, Points, Solved, solved
from ectype_paper.published import QUOTED, SIGNIFICANT
from ectype_paper.statistics import (
    LEVEL,
    NOISE,
    ROUNDS,
    OverProblems,
    all_held_out,
    compare,
    counts,
    figures,
    intervals,
    over_problems,
)
from ectype_paper.tables.uci import paper_rows, result_rows
from ectype_paper.units import Record

# How numbers are named of which more is better, and of which less is.
MORE, LESS = ("_eff", "_conv", "_saved"), ("_points", "_time")
# What each number of the text is, in the order in which the text has them.
WORDS = {
    "matches": "problems that match the single pass at Best accuracy (within 0.05)",
    "worse": "problems that are worse (by more than 0.05)",
    "better": "problems that are better (by more than 0.05)",
    "best_accuracy_conv": "conv at Best accuracy",
    "best_accuracy_time": "share of the time until it has converged, 2 (1 - conv), at Best accuracy",
    "best_accuracy_eff": "eff at Best accuracy",
    "best_accuracy_points": "share of the points, (1 - eff) / 2, at Best accuracy",
    "best_efficiency_loss": "accuracy lost to the single pass at Best efficiency, relative",
    "best_efficiency_lower": "problems below the single pass at Best efficiency",
    "best_efficiency_saves": "problems with a higher eff at Best efficiency than at Best accuracy",
    "best_efficiency_eff": "eff at Best efficiency",
    "best_efficiency_points": "share of the points at Best efficiency",
    "best_efficiency_time": "share of the time at Best efficiency",
    "best_efficiency_slower": "conv lost from Best accuracy to Best efficiency",
    "best_convergence_loss": "accuracy lost to the single pass at Best convergence, relative",
    "best_convergence_lower": "problems below the single pass at Best convergence",
    "best_convergence_costs": "problems with a lower eff at Best convergence than at Best accuracy",
    "best_convergence_points": "share of the points at Best convergence",
    "best_convergence_differs": "problems with a higher conv at Best convergence than at Best accuracy",
    "best_convergence_time": "share of the time at Best convergence",
    "below_original": "problems on which both copies are below the original",
    "above_original": "problems on which both copies are above the original",
    "well_above_original": "problems on which both copies are above it by more than 0.05",
    "lowest_conv": "the lowest conv of a problem at Best efficiency or Best convergence",
    "highest_conv": "the highest",
    "least_saved": "share of the points saved, at the operational point that saves the fewest",
    "most_saved": "share of the points saved, at the one that saves the most",
    "least_time_saved": "share of the time saved, at the one that saves the least",
}

# Why a number is not the one quoted, where it is not that more or less is saved.
FORGETS_LESS = "a large threshold costs less here: ours forgets less"
SELDOM_BOTH = "thresholds differ little in conv, and the fastest is seldom the most accurate"
REASONS = {
    "matches": FORGETS_LESS,
    "worse": FORGETS_LESS,
    "best_efficiency_loss": FORGETS_LESS,
    "best_efficiency_lower": FORGETS_LESS,
    "best_efficiency_slower": FORGETS_LESS,
    "best_convergence_costs": SELDOM_BOTH,
    "best_convergence_differs": SELDOM_BOTH,
    "below_original": "single passes are farther below their originals here",
    "lowest_conv": "accuracy jumps on a test set of few rows, in the paper's own table too",
    "highest_conv": "on one problem a copy is as accurate at once as ever",
}


class Statistics(OfTable4):
    """Whether sequential copies are as good as the single pass, and every number that the paper's text quotes."""

    title = "Statistics: what the text of the paper says of Table 4"

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """The numbers quoted as rows, the tests in the notes."""
        problems = solved(records, options.space)
        tables = (tested_rows(problems), significant_rows(problems), threshold_rows(problems))
        notes = "\n\n".join(map(as_markdown, tables))
        return MadeExhibit(quoted_rows(result_rows(problems)), notes)


def quoted_rows(rows: Sequence[Row]) -> list[Row]:
    """Every number of the text: as quoted, by our definition from the paper's own rows, and ours.

    It agrees if what is quoted lies in our interval, a bootstrap over problems. Where it does not, `why` says whether
    it is ours that differs from the paper's own rows too, or the text from these.
    """
    ours, theirs, ranges = figures(rows), paper_rows(rows), intervals(rows)
    paper = figures(theirs) if theirs else {}
    return [
        {
            "number": words,
            "quoted": QUOTED[name],
            "paper, these rows": paper.get(name),
            "ours": ours[name],
            "95 % interval": _interval(*ranges[name], count=isinstance(ours[name], int)),
            "agrees": "yes" if _within(QUOTED[name], ranges[name]) else "no",
            "why": "" if _within(QUOTED[name], ranges[name]) else _why(name, ours[name], paper.get(name), ranges[name]),
        }
        for name, words in WORDS.items()
    ]


def _within(value: float | None, ends: tuple[float, float]) -> bool:
    return value is not None and ends[0] - NOISE <= value <= ends[1] + NOISE


def _interval(low: float, high: float, count: bool) -> str:
    return f"{low:.0f} to {high:.0f}" if count else f"{low:.3f} to {high:.3f}"


def _why(name: str, ours: float, paper: float | None, ends: tuple[float, float]) -> str:
    """Why a number is not the one quoted."""
    if _within(paper, ends):
        return "the text differs from its own table, with which ours agrees"
    if name in REASONS:
        return REASONS[name]
    if name.endswith((*MORE, *LESS)):
        return "more is saved here" if (ours > QUOTED[name]) == name.endswith(MORE) else "less is saved here"
    return ""


def tested_rows(problems: Sequence[Solved]) -> list[Row]:
    """For each operational point, in accuracy and in fidelity: the counts by problem, and the test over problems."""
    points = [one.points for one in problems]
    rows: list[Row] = []
    for place, words in PLACES.items():
        for measure in ("accuracy", "fidelity"):
            found = compare(points, place, measure)
            testable = all(one.p is not None for one in found)
            test, margin = counts([one.by_test for one in found]), counts([one.by_margin for one in found])
            overall = over_problems([one.difference for one in found])
            rows.append(
                {
                    "point": words,
                    "measure": measure,
                    **{f"{verdict} (test)": count if testable else None for verdict, count in test.items()},
                    **{f"{verdict} (margin)": count for verdict, count in margin.items()},
                    "p < 0.05 uncorrected": sum((one.p or 0) < LEVEL for one in found) if testable else None,
                    "found from": float(np.median([one.least or 0 for one in found])) if testable else None,
                    "mean difference": overall.mean,
                    "Wilcoxon p": f"{overall.p:.2g}",
                    **_held_out(points, place, measure),
                }
            )
    return rows


def significant_rows(problems: Sequence[Solved]) -> list[Row]:
    """Best efficiency and Best convergence against Best accuracy: in how many problems they differ, by the test."""
    rows: list[Row] = []
    for place, measure in product(SIGNIFICANT, ("eff", "conv", "accuracy")):
        found = compare([one.points for one in problems], place, measure, against="best_accuracy")
        testable = all(one.p is not None for one in found)
        quoted = SIGNIFICANT[place] if measure == "eff" else {}
        overall = over_problems([one.difference for one in found])
        row: Row = {"point": PLACES[place], "measure": measure}
        for verdict, count in counts([one.by_test for one in found]).items():
            said = f" ({quoted[verdict]})" if verdict in quoted else ""
            row[verdict] = f"{count}{said}" if testable else None
        rows.append(row | {"mean difference": overall.mean, "Wilcoxon p": f"{overall.p:.2g}"})
    return rows


def threshold_rows(problems: Sequence[Solved]) -> list[Row]:
    """One threshold for all problems, without any choice: accuracy beside the single pass, eff and conv."""
    rows: list[Row] = []
    for found in zip(*(one.points.deltas for one in problems), strict=True):
        singles = [one.points.single_accuracy.mean for one in problems]
        more = over_problems([point.accuracy.mean - single for point, single in zip(found, singles, strict=True)])
        means = {name: float(np.mean([getattr(point, name).mean for point in found])) for name in ROUNDS}
        rows.append({"delta": f"{found[0].delta:g}", "difference ± standard error": _with_error(more), **means})
    return rows


def _with_error(overall: OverProblems) -> str:
    return f"{overall.mean:.4f}" + ("" if overall.error is None else f" ± {overall.error:.4f}")


def _held_out(points: Sequence[Points], place: str, measure: str) -> Row:
    """What runs reach that had no part in choosing their threshold, over all problems; nothing where a run is alone."""
    row: Row = dict.fromkeys(("held-out difference ± standard error", "held-out p", "held-out eff", "held-out conv"))
    measures = (measure, *ROUNDS) if measure == "accuracy" else (measure,)
    held = {name: found for name in measures if (found := all_held_out(points, place, name)) is not None}
    if not held:
        return row
    overall = over_problems(held.pop(measure))
    row |= {"held-out difference ± standard error": _with_error(overall), "held-out p": f"{overall.p:.2g}"}
    return row | {f"held-out {name}": float(np.mean(values)) for name, values in held.items()}
