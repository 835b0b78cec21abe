"""A copy in SQL: a tree or a linear copy as one expression over raw columns, other families as a query in stages.

A gap is NULL. So is the label where a column is NULL that must not be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ectype.conditions.conditions import AdditiveScores, DecisionRegions, Term, expressible, logic_of
from ectype.conditions.partitions import Cells, interval, runs
from ectype.errors import ExportError
from ectype.export._category_text import are_words, words_of
from ectype.export._sql_dialects import DIALECTS, Dialect, refuse_nul
from ectype.models.copy_classifier import CopyClassifier
from ectype.space import Boolean, Category, Column

TABLE = "copy_input"
HEAD = (
    "-- The label that the copy gives. Use it as: SELECT (this file) AS label FROM a table with the columns it names.\n"
)
# Operands of a sum at a time.
TOGETHER = 100
JOINED = "\n    AND "


def sql_text(
    copy: CopyClassifier, dialect: Dialect = DIALECTS["ansi"], table: str = TABLE, keep: Sequence[str] = ()
) -> str:
    """The file: what it is for, and an expression or a query."""
    if expressible(copy):
        text = f"{HEAD}{dialect.head}{expression(logic_of(copy), copy.classes, dialect)}\n"
    else:
        from ectype.export._sql_query import query

        text = query(copy, dialect, table, keep)
    size = len(text.encode())
    if size > dialect.bytes:
        raise too_large(dialect, f"at most {dialect.bytes} bytes, which is what it takes", f"{size}")
    return text


def too_large(dialect: Dialect, expected: str, found: str) -> ExportError:
    """The error for a copy that a dialect cannot take."""
    hint = "make a smaller copy of the same answers (ectype remake, --to tree or --max-bytes), or export as onnx or c"
    return ExportError(f"sql, {dialect.name}", expected, found, hint)


def is_query(text: str) -> bool:
    """Whether a file holds a query rather than an expression."""
    return "\nWITH " in text


def expression(
    logic: DecisionRegions | AdditiveScores, classes: np.ndarray, dialect: Dialect = DIALECTS["ansi"]
) -> str:
    """The label as a CASE expression; NULL where a column that it needs is NULL but must not be missing."""
    labels = literal_labels(dialect, classes)
    return _of_tree(logic, labels, dialect) if isinstance(logic, DecisionRegions) else _of_sums(logic, labels, dialect)


def sum_of(parts: Sequence[str]) -> str:
    """A sum in parentheses, of sums where there are many parts: parsers limit how deep operands are nested.

    >>> sum_of(["a", "b", "c"])
    '(a + b + c)'
    """
    while len(parts) > TOGETHER:
        parts = [sum_of(parts[at : at + TOGETHER]) for at in range(0, len(parts), TOGETHER)]
    return f"({' + '.join(parts)})"


def _of_tree(tree: DecisionRegions, labels: list[str], dialect: Dialect) -> str:
    if not tree.regions[0].inside:  # a constant copy
        return labels[tree.regions[0].code]
    written = [column_in(dialect, cells) for cells in tree.cells]
    lines = []
    for region in tree.regions:
        parts = [condition(tree.cells[j], inside, written[j]) for j, inside in region.inside.items()]
        lines.append(f"  WHEN {' AND '.join(filter(None, parts)) or '1 = 1'} THEN {labels[region.code]}")
    return "\n".join(["CASE", *lines, "END"])


def _of_sums(sums: AdditiveScores, labels: list[str], dialect: Dialect) -> str:
    names = [labels[code] for code in sums.codes]
    written = [column_in(dialect, term.cells) for term in sums.terms]
    needed = [column.gap for column, term in zip(written, sums.terms, strict=True) if not term.cells.gap]
    lines = [f"  WHEN {' OR '.join(f'{name} IS NULL' for name in needed)} THEN NULL"] if needed else []
    for i, name in enumerate(names[:-1]):
        wins = [f"{_difference(sums, j, i, written, dialect)} <= 0" for j in range(i + 1, len(names))]
        lines.append(f"  WHEN {JOINED.join(wins)} THEN {name}")
    return "\n".join(["CASE", *lines, f"  ELSE {names[-1]}", "END"]) if lines else names[-1]


def _difference(sums: AdditiveScores, i: int, j: int, written: list[SqlCondition], dialect: Dialect) -> str:
    """The score of one class minus that of another."""
    terms = zip(sums.terms, written, strict=True)
    return sum_of([dialect.number(sums.start[i] - sums.start[j]), *(_term_sum(*term, i, j, dialect) for term in terms)])


def _term_sum(term: Term, column: SqlCondition, i: int, j: int, dialect: Dialect) -> str:
    number, cells = dialect.number, term.cells
    amounts = (term.amounts[:, i] - term.amounts[:, j]).tolist()
    gap = f" WHEN {column.gap} IS NULL THEN {number(amounts.pop())}" if cells.gap else ""
    if cells.levels:
        pairs = zip(column.levels, amounts, strict=False)
        known = [f" WHEN {column.value} = {level} THEN {number(amount)}" for level, amount in pairs]
        other = "" if len(amounts) == len(cells.levels) else f" ELSE {number(amounts[-1])}"
        return f"CASE{gap}{''.join(known)}{other} END"
    straight = _straight(term, column.value, float(term.slope[i] - term.slope[j]), gap, dialect)
    if not any(amounts):
        return straight
    steps = [
        f" WHEN {dialect.compare(column.value, '<=', cut)} THEN {number(amount)}"
        for cut, amount in zip(cells.cuts.tolist(), amounts, strict=False)
    ]
    nothing = f" WHEN {column.gap} IS NULL THEN {number(0.0)}" if cells.gap else ""
    return f"{straight} + CASE{nothing}{''.join(steps)} ELSE {number(amounts[-1])} END"


def _straight(term: Term, name: str, slope: float, gap: str, dialect: Dialect) -> str:
    """The linear part of a number's term, clipped where the copy clips it; all that a gap adds."""
    number, center, reach = dialect.number, term.center, term.reach
    ends = (
        f" WHEN {name} <= {number(center - reach)} THEN {number(-slope * reach)}"
        f" WHEN {name} > {number(center + reach)} THEN {number(slope * reach)}"
    )
    return f"CASE{gap}{ends} ELSE {number(slope)} * ({name} - {number(center)}) END"


# --- columns and conditions -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SqlCondition:
    """A column in conditions."""

    value: str
    """The expression that is compared."""
    gap: str
    """The expression that is NULL at a gap."""
    levels: list[str]
    """The literal of each level."""
    dialect: Dialect


def column_in(dialect: Dialect, cells: Cells) -> SqlCondition:
    """A column of a user's table."""
    name = dialect.identifier(cells.column.name)
    if not cells.levels:
        return SqlCondition(dialect.nan_as_null(name), dialect.nan_as_null(name), [], dialect)
    value = dialect.comparable(name) if are_words(cells.column) else name
    return SqlCondition(value, name, literal_levels(dialect, cells.column), dialect)


def literal_levels(dialect: Dialect, column: Column) -> list[str]:
    """The literals of a column's levels: words where any of them is one."""
    if isinstance(column, Boolean):
        return [dialect.truth(False), dialect.truth(True)]
    assert isinstance(column, Category)
    if not are_words(column):
        return [str(level) for level in column.levels]
    words = words_of(column)
    refuse_nul(dialect, words)
    return [dialect.level(word) for word in words]


def literal_labels(dialect: Dialect, classes: np.ndarray) -> list[str]:
    """The labels as a dialect writes them."""
    labels = classes.tolist()
    refuse_nul(dialect, [label for label in labels if isinstance(label, str)])
    return [dialect.label(label) for label in labels]


def condition(cells: Cells, inside: np.ndarray, column: SqlCondition) -> str:
    """The condition that a column's value lies in some of its cells; empty if every value does."""
    if inside.all():
        return ""
    there = inside[:-1] if cells.gap else inside
    parts = _levels(there, column) if cells.levels else _intervals(cells, runs(there), column)
    return _either(parts, cells.gap and bool(inside[-1]), column)


def below(cells: Cells, count: int, gap: bool, column: SqlCondition) -> str:
    """The condition that a number lies in the first so many of its cells, or is a gap; empty if every value does."""
    if count > len(cells.cuts) and gap == cells.gap:
        return ""
    return _either(_intervals(cells, [(0, count)] if count else [], column), gap, column)


def _either(parts: list[str], gap: bool, column: SqlCondition) -> str:
    parts = [*parts, f"{column.gap} IS NULL"] if gap else parts
    return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"


def _intervals(cells: Cells, runs: list[tuple[int, int]], column: SqlCondition) -> list[str]:
    if runs == [(0, len(cells.cuts) + 1)]:
        return [f"{column.gap} IS NOT NULL"]
    parts = []
    for low, high in (interval(cells, *run) for run in runs):
        sides = [column.dialect.compare(column.value, ">", low)] if low is not None else []
        sides += [column.dialect.compare(column.value, "<=", high)] if high is not None else []
        parts.append(" AND ".join(sides))
    return parts


def _levels(inside: np.ndarray, column: SqlCondition) -> list[str]:
    levels = column.levels
    other = len(inside) > len(levels) and bool(inside[-1])  # levels that the space does not have
    chosen = [level for level, within in zip(levels, inside, strict=False) if within != other]
    if not chosen:
        return [f"{column.gap} IS NOT NULL"] if other else []
    if len(chosen) == 1:
        return [f"{column.value} {'<>' if other else '='} {chosen[0]}"]
    return [f"{column.value} {'NOT IN' if other else 'IN'} ({', '.join(chosen)})"]
