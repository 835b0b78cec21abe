"""A tree or a linear copy in words: if-then rules over raw columns, or what each column adds to a label's score."""

from __future__ import annotations

import numpy as np

from ectype.conditions.conditions import DIGITS, AdditiveScores, DecisionRegions, Term, logic_of
from ectype.conditions.formatting import condition_of, interval_of, word
from ectype.conditions.partitions import intervals
from ectype.models.copy_classifier import CopyClassifier


def rules_text(copy: CopyClassifier) -> str:
    """The rules, with numbers rounded to six digits of a column's standard deviation."""
    logic, classes = logic_of(copy, DIGITS), [word(label) for label in copy.classes.tolist()]
    lines = _of_tree(logic, classes) if isinstance(logic, DecisionRegions) else _of_sums(logic, classes)
    return "\n".join(lines) + "\n"


def _of_tree(tree: DecisionRegions, classes: list[str]) -> list[str]:
    return [f"if {condition_of(tree, region)} then {classes[region.code]}" for region in tree.regions]


def _of_sums(sums: AdditiveScores, classes: list[str]) -> list[str]:
    lines = ["The label is the one with the highest score. A score is the sum of:"]
    for k, code in enumerate(sums.codes):
        lines += ["", f"score of {classes[code]}:", f"  {sums.start[k]:.6g}"]
        for term in sums.terms:
            if term.slope[k] or term.amounts[:, k].any():
                lines += [f"  {line}" for line in _term_lines(term, k)]
    return lines


def _term_lines(term: Term, k: int) -> list[str]:
    name, cells, amounts = term.cells.column.name, term.cells, term.amounts[:, k].tolist()
    gap = [f"{amounts.pop():.6g} if {name} is missing"] if cells.gap else []
    if cells.levels:
        listed = [
            f"{amount:.6g} if {name} is {word(level)}" for level, amount in zip(cells.levels, amounts, strict=False)
        ]
        return listed + gap
    unit = {"date": " in days since 1970-01-01", "timestamp": " in seconds since 1970-01-01"}.get(cells.column.kind, "")
    said = f"{term.slope[k]:.6g} * ({name}{unit} - {term.center:.15g})"
    lines = [said + (f" if {name} is not missing" if gap else "")]
    if any(amounts):
        cells_inside = np.eye(len(amounts), dtype=bool)
        for amount, inside in zip(amounts, cells_inside, strict=True):
            (run,) = intervals(cells, inside)
            lines.append(f"{amount:.6g} if {interval_of(cells, *run)}")
    return lines + gap
