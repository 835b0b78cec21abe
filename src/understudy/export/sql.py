"""A tree or a linear copy as one SQL expression over raw columns; a gap is NULL."""

from __future__ import annotations

import numpy as np

from understudy.logic.cells import Cells, intervals
from understudy.logic.conditions import Sums, Term, Tree, logic_of
from understudy.models.classifier import CopyClassifier

HEAD = (
    "-- The label that the copy gives. Use it as: SELECT (this file) AS label FROM a table with the columns it names.\n"
)
JOINED = "\n    AND "


def sql_text(copy: CopyClassifier) -> str:
    """The file: a comment line, and the expression."""
    return f"{HEAD}{expression(logic_of(copy), copy.classes)}\n"


def expression(logic: Tree | Sums, classes: np.ndarray) -> str:
    """The label as a CASE expression; NULL where a column that it needs is NULL but must not be missing."""
    labels = [literal(label) for label in classes.tolist()]
    return _of_tree(logic, labels) if isinstance(logic, Tree) else _of_sums(logic, labels)


def literal(value: object) -> str:
    """A value as SQL writes it.

    >>> literal("it's"), literal(True), literal(0.5), literal(3.0)
    ("'it''s'", 'TRUE', '0.5', '3.0')
    """
    if isinstance(value, bool):
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def quoted(name: str) -> str:
    """The name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _of_tree(tree: Tree, labels: list[str]) -> str:
    if not tree.regions[0].inside:  # a constant copy
        return labels[tree.regions[0].code]
    lines = []
    for region in tree.regions:
        parts = [condition(tree.cells[j], inside) for j, inside in region.inside.items()]
        lines.append(f"  WHEN {' AND '.join(filter(None, parts)) or 'TRUE'} THEN {labels[region.code]}")
    return "\n".join(["CASE", *lines, "END"])


def condition(cells: Cells, inside: np.ndarray) -> str:
    """The condition that a column's value lies in some of its cells; empty if every value does."""
    if inside.all():
        return ""
    name = quoted(cells.column.name)
    there = inside[:-1] if cells.gap else inside
    parts = _levels(cells, there, name) if cells.levels else _intervals(cells, there, name)
    if cells.gap and inside[-1]:
        parts.append(f"{name} IS NULL")
    return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"


def _intervals(cells: Cells, inside: np.ndarray, name: str) -> list[str]:
    if inside.all():
        return [f"{name} IS NOT NULL"]
    parts = []
    for low, high in intervals(cells, inside):
        sides = [f"{name} > {low!r}"] if low is not None else []
        sides += [f"{name} <= {high!r}"] if high is not None else []
        parts.append(" AND ".join(sides))
    return parts


def _levels(cells: Cells, inside: np.ndarray, name: str) -> list[str]:
    levels = cells.levels
    other = len(inside) > len(levels) and bool(inside[-1])  # levels that the space does not have
    chosen = [literal(level) for level, within in zip(levels, inside, strict=False) if within != other]
    if not chosen:
        return [f"{name} IS NOT NULL"] if other else []
    if len(chosen) == 1:
        return [f"{name} {'<>' if other else '='} {chosen[0]}"]
    return [f"{name} {'NOT IN' if other else 'IN'} ({', '.join(chosen)})"]


def _of_sums(sums: Sums, labels: list[str]) -> str:
    names = [labels[code] for code in sums.codes]
    needed = [quoted(term.cells.column.name) for term in sums.terms if not term.cells.gap]
    lines = [f"  WHEN {' OR '.join(f'{name} IS NULL' for name in needed)} THEN NULL"] if needed else []
    for i, name in enumerate(names[:-1]):
        wins = [f"{_difference(sums, j, i)} <= 0" for j in range(i + 1, len(names))]
        lines.append(f"  WHEN {JOINED.join(wins)} THEN {name}")
    return "\n".join(["CASE", *lines, f"  ELSE {names[-1]}", "END"]) if lines else names[-1]


def _difference(sums: Sums, i: int, j: int) -> str:
    """The score of one class minus that of another."""
    parts = [_number(sums.start[i] - sums.start[j]), *(_added(term, i, j) for term in sums.terms)]
    return " + ".join(parts)


def _added(term: Term, i: int, j: int) -> str:
    name, cells = quoted(term.cells.column.name), term.cells
    amounts = (term.amounts[:, i] - term.amounts[:, j]).tolist()
    gap = f" WHEN {name} IS NULL THEN {_number(amounts.pop())}" if cells.gap else ""
    if cells.levels:
        known = [f" WHEN {name} = {literal(v)} THEN {_number(a)}" for v, a in zip(cells.levels, amounts, strict=False)]
        other = "" if len(amounts) == len(cells.levels) else f" ELSE {_number(amounts[-1])}"
        return f"CASE{gap}{''.join(known)}{other} END"
    straight = f"{_number(term.slope[i] - term.slope[j])} * ({name} - {_number(term.center)})"
    if any(amounts):
        steps = [
            f" WHEN {name} <= {cut!r} THEN {_number(a)}" for cut, a in zip(cells.cuts.tolist(), amounts, strict=False)
        ]
        straight += f" + CASE{''.join(steps)} ELSE {_number(amounts[-1])} END"
    return f"CASE{gap} ELSE {straight} END" if gap else straight


def _number(number: float) -> str:
    """A number that may follow any operator: in parentheses if it is negative."""
    return repr(float(number)) if number >= 0 else f"({float(number)!r})"
