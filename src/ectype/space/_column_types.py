"""The inferred type of each column, with its reason, the share of rows it covers, and the option that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import NamedTuple

from ectype._common.formatting import Grid, join_names, percent
from ectype.errors import warn
from ectype.space._columns import Boolean, Category, Column, Date
from ectype.types import Series

# The share of rows that the columns of a space have to cover, or it is a warning.
ENOUGH = 0.99
# How a column is left out, in a hint.
LEAVE = ": frame.drop(columns=[...]), or --drop"
# What else may be said of a column: in Python, and on the command line.
CATEGORY, NUMBER, ORDERED, DROP = "category", "number", "ordered", "drop"
PYTHON = {
    CATEGORY: "categories=[{!r}]",
    NUMBER: "numbers=[{!r}]",
    ORDERED: "ordered={{{!r}: [...]}}",
    DROP: "frame.drop(columns=[{!r}])",
}
# Columns that a warning names.
SHOWN = 4


class ColumnType(NamedTuple):
    """What a column was taken for."""

    name: str
    kind: str
    why: str
    covered: float
    """The share of rows whose value the space has; a gap is one, where the column has gaps."""
    instead: str = ""
    """What may be said of the column to have it taken for something else."""

    @property
    def share(self) -> str:
        """That share in percent; it is 100 % only if nothing is lost."""
        return percent(self.covered if self.covered == 1 else min(self.covered, 0.9999))

    def spelled(self, command: bool = False) -> str:
        """How that is said in Python, or on the command line."""
        if not self.instead:
            return ""
        if command:
            return f"--{self.instead} {quote(self.name + ('=A,B,C' if self.instead == ORDERED else ''))}"
        return PYTHON[self.instead].format(self.name)


def column_type_of(column: Column, covered: float, values: Series | None = None, said: bool = False) -> ColumnType:
    """What a column was taken for, of these values."""
    why, instead = _reason(column, values)
    why, instead = ("you said so", "") if said else (why, instead)
    instead = DROP if covered < ENOUGH else instead
    return ColumnType(column.name, column.kind, why, covered, instead)


def _reason(column: Column, values: Series | None) -> tuple[str, str]:
    if isinstance(column, Boolean):
        return "true or false", ""
    if isinstance(column, Date):
        return ("dates in ISO 8601", CATEGORY) if column.form else ("its type", "")
    if isinstance(column, Category):
        if values is not None and str(values.dtype) == "category":
            return "its type", ""
        digits = all(isinstance(level, str) and level.strip().isdecimal() for level in column.levels)
        return ("digits that name something", NUMBER) if digits else ("words", ORDERED)
    whole = "whole numbers" if column.whole else "numbers"
    return (whole if column.values is None else f"{len(column.values)} {whole}"), CATEGORY if column.whole else ""


def column_types_table(readings: Sequence[ColumnType], command: bool = False) -> Grid:
    """Each column, what it was taken for and why, the rows it covers, and what to say to change it."""
    rows = [(one.name, one.kind, one.why, one.share, one.spelled(command)) for one in readings]
    return Grid(("column", "taken for", "why", "covers", "to change it"), rows, right=("covers",))


def warn_of_uncovered(where: str, readings: Sequence[ColumnType], covered: float, floor: int) -> None:
    """Warn of a space that has too few of the rows that it was learned from."""
    if covered >= ENOUGH:
        return
    poor = sorted((one for one in readings if one.covered < 1), key=lambda one: one.covered)
    columns = join_names([f"{one.name!r} {one.share}" for one in poor], SHOWN)
    warn(
        f"{where}: the space covers {percent(covered)} of these rows, since values of fewer than {floor} rows are left "
        f"out: {columns}. Nothing is asked about rows with other values, and no certificate is about them. Leave such "
        f"columns out{LEAVE}; or lower the floor (floor=1, --floor 1)"
    )
