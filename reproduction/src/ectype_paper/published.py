"""What the paper reports: the rows of its Tables 3 and 4, the averages it prints, and the numbers its text quotes."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Any

TEXT_COLUMNS = ("dataset", "original")
COUNT_COLUMNS = ("classes", "samples", "features")

# The last row of Table 4, as printed. It is not the mean of the rows above it: see docs/paper.md.
AVERAGES = {
    "accuracy_original": 0.839,
    "accuracy_single": 0.800,
    "best_accuracy_eff": 0.716,
    "best_accuracy_conv": 0.942,
    "best_accuracy_accuracy": 0.794,
    "best_efficiency_eff": 0.882,
    "best_efficiency_conv": 0.913,
    "best_efficiency_accuracy": 0.776,
    "best_convergence_eff": 0.701,
    "best_convergence_conv": 0.944,
    "best_convergence_accuracy": 0.793,
}

# What the text says of the results, by the names of `statistics.figures`.
QUOTED = {
    "matches": 53,
    "worse": 4,
    "better": 1,
    "best_accuracy_eff": 0.716,
    "best_accuracy_conv": 0.942,
    "best_accuracy_points": 0.14,
    "best_accuracy_time": 0.115,
    "best_efficiency_eff": 0.882,
    "best_efficiency_points": 0.06,
    "best_efficiency_time": 0.174,
    "best_efficiency_slower": 0.03,
    "best_efficiency_loss": 0.05,
    "best_efficiency_lower": 51,
    "best_efficiency_saves": 47,
    "best_convergence_points": 0.15,
    "best_convergence_time": 0.112,
    "best_convergence_loss": 0.05,
    "best_convergence_lower": 20,
    "best_convergence_costs": 10,
    "best_convergence_differs": 20,
    "below_original": 19,
    "above_original": 8,
    "well_above_original": 4,
    "lowest_conv": 0.85,
    "highest_conv": 0.98,
    "least_saved": 0.85,
    "most_saved": 0.93,
    "least_time_saved": 0.8,
}

# In how many problems an operational point differs significantly from Best accuracy in eff, as the text says.
SIGNIFICANT = {"best_efficiency": {"better": 47}, "best_convergence": {"worse": 10}}


def table3() -> dict[str, dict[str, Any]]:
    """The data sets by name: classes, samples, features, the family of the original and its accuracy.

    >>> table3()["wine"]["original"], len(table3())
    ('xgboost', 59)
    """
    return _table("table3.csv")


def table4() -> dict[str, dict[str, Any]]:
    """The results by the name of the data set.

    >>> table4()["wine"]["best_accuracy_eff"], len(table4())
    (0.743, 58)
    """
    return _table("table4.csv")


@cache
def _table(name: str) -> dict[str, dict[str, Any]]:
    text = (files("ectype_paper") / "data" / name).read_text(encoding="utf-8")
    return {
        row["dataset"]: {key: _value(key, cell) for key, cell in row.items()}
        for row in csv.DictReader(text.splitlines())
    }


def _value(column: str, cell: str) -> str | int | float:
    if column in TEXT_COLUMNS:
        return cell
    return int(cell) if column in COUNT_COLUMNS else float(cell)
