"""A tree or a linear copy in words: if-then rules over raw columns, or what each column adds to a label's score."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.classifier import CopyClassifier
from understudy.export.cells import Cells
from understudy.export.logic import DIGITS, Region, Sums, Term, Tree, logic_of
from understudy.export.sql import runs

ANYTHING = "in every row"


def rules_text(copy: CopyClassifier) -> str:
    """The rules, with numbers rounded to six digits of a column's deviation."""
    logic, classes = logic_of(copy, DIGITS), [_word(label) for label in copy.classes.tolist()]
    lines = _of_tree(logic, classes) if isinstance(logic, Tree) else _of_sums(logic, classes)
    return "\n".join(lines) + "\n"


def _of_tree(tree: Tree, classes: list[str]) -> list[str]:
    return [f"if {condition_of(tree, region)} then {classes[region.code]}" for region in tree.regions]


def condition_of(tree: Tree, region: Region) -> str:
    """What holds in a region, in words."""
    parts = [_condition(tree.cells[j], inside) for j, inside in region.inside.items()]
    return " and ".join(filter(None, parts)) or ANYTHING


def _condition(cells: Cells, inside: np.ndarray) -> str:
    if inside.all():
        return ""
    name = cells.column.name
    there = inside[:-1] if cells.gap else inside
    parts = [_levels(cells, there)] if cells.levels else [_interval(name, *run) for run in runs(cells, there)]
    if cells.gap and inside[-1]:
        parts.append(f"{name} is missing")
    elif cells.gap and there.all():
        return f"{name} is not missing"
    parts = [part for part in parts if part]
    return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"


def _interval(name: str, low: float | None, high: float | None) -> str:
    below = "" if low is None else f"{low:.15g} < "
    above = "" if high is None else f" <= {high:.15g}"
    return f"{name} > {low:.15g}" if low is not None and high is None else f"{below}{name}{above}"


def _levels(cells: Cells, inside: np.ndarray) -> str:
    other = len(inside) > len(cells.levels) and bool(inside[-1])
    chosen = [_word(level) for level, within in zip(cells.levels, inside, strict=False) if within != other]
    if not chosen:
        return f"{cells.column.name} is any level" if other else ""
    if len(chosen) == 1:
        return f"{cells.column.name} is {'not ' if other else ''}{chosen[0]}"
    return f"{cells.column.name} is {'none' if other else 'one'} of {', '.join(chosen)}"


def _of_sums(sums: Sums, classes: list[str]) -> list[str]:
    lines = ["The label is the one with the highest score. A score is the sum of:"]
    for k, code in enumerate(sums.codes):
        lines += ["", f"score of {classes[code]}:", f"  {sums.start[k]:.6g}"]
        for term in sums.terms:
            if term.slope[k] or term.amounts[:, k].any():
                lines += [f"  {line}" for line in _added(term, k)]
    return lines


def _added(term: Term, k: int) -> list[str]:
    name, cells, amounts = term.cells.column.name, term.cells, term.amounts[:, k].tolist()
    gap = [f"{amounts.pop():.6g} if {name} is missing"] if cells.gap else []
    if cells.levels:
        said = [
            f"{amount:.6g} if {name} is {_word(level)}" for level, amount in zip(cells.levels, amounts, strict=False)
        ]
        return said + gap
    lines = [f"{term.slope[k]:.6g} * ({name} - {term.center:.15g})" + (f" if {name} is not missing" if gap else "")]
    if any(amounts):
        cells_inside = np.eye(len(amounts), dtype=bool)
        for amount, inside in zip(amounts, cells_inside, strict=True):
            (run,) = runs(cells, inside)
            lines.append(f"{amount:.6g} if {_interval(name, *run)}")
    return lines + gap


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
