"""Rows of one space, or of a table, as rows of another space: through the values that production has."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ectype.queries._answer_sources import Source
from ectype.space import IMPOSSIBLE_VALUES, Space, has_required_values, outside_by_reason
from ectype.types import Frame

# Why a row cannot be carried over, beside what a space cannot have: a column is not known.
COLUMNS = "columns"


class ConvertedRows(NamedTuple):
    """Rows of a space's matrix, NaN where a column is not known, and their places in the source."""

    rows: np.ndarray
    places: np.ndarray

    def where(self, keep: np.ndarray) -> ConvertedRows:
        """Some of them."""
        return ConvertedRows(self.rows[keep], self.places[keep])


def convert_rows(source: Source, space: Space, exclude: Sequence[str]) -> tuple[ConvertedRows, Counter[str]]:
    """The rows of a source that the space can have, and how many of the others there are, by reason.

    Columns that are excluded need not be known: rows are then judged by all others.
    """
    found, lacking, lost = _taken(source, space, exclude)
    if lacking - {*exclude}:
        return ConvertedRows(np.empty((0, space.d)), np.empty(0, int)), Counter({COLUMNS: len(source.said)})
    unknown = [name for j, name in enumerate(space.names) if name in lacking or _open(j, found.rows, space, exclude)]
    judged = [j for j, name in enumerate(space.names) if name not in unknown]
    there = has_required_values(space, found.rows, judged)
    found, lost[COLUMNS] = found.where(there), lost[COLUMNS] + int((~there).sum())
    wrong = outside_by_reason(space.without(unknown) if unknown else space, found.rows[:, judged])
    lost.update({why: int(which.sum()) for why, which in wrong.items()})
    return found.where(~np.logical_or.reduce([*wrong.values()])), +lost


def _open(j: int, rows: np.ndarray, space: Space, exclude: Sequence[str]) -> bool:
    """Whether a column is excluded, and not known of every row."""
    return space.names[j] in exclude and not has_required_values(space, rows, [j]).all()


def _taken(source: Source, space: Space, exclude: Sequence[str]) -> tuple[ConvertedRows, set[str], Counter[str]]:
    """The rows of a source in the space, columns that it lacks, and what was lost; none, if one of them is needed."""
    if source.space is not None and source.rows is not None and source.space.digest == space.digest:
        return ConvertedRows(source.rows, np.arange(len(source.rows))), {*source.dropped}, Counter()
    frame, places = _presented(source, space)
    lacking = {*space.names} - {*frame.columns}
    if lacking - {*exclude}:
        return ConvertedRows(np.empty((0, space.d)), places[:0]), lacking, Counter()
    found = _read(frame, places, space, sorted(lacking), source.name)
    lost = {COLUMNS: len(source.said) - len(places), IMPOSSIBLE_VALUES: len(places) - len(found.places)}
    return found, lacking, Counter(lost)


def _presented(source: Source, space: Space) -> tuple[Frame, np.ndarray]:
    """The rows of a source by the names of the new space, and their places; without those that lack a value."""
    if source.table is not None:
        frame, places = source.table.reset_index(drop=True), np.arange(len(source.table))
    else:
        frame, places = source.presented()
    if not space.frame and not {*space.names} <= {*frame.columns} and frame.shape[1] == space.d:
        frame = frame.set_axis(list(space.names), axis=1)  # names that nobody gave are no names
    return frame, places


def _read(frame: Frame, places: np.ndarray, space: Space, lacking: Sequence[str], name: str) -> ConvertedRows:
    """Rows of a data frame in the space, but for columns that are lacking; without gaps where it has none."""
    read = space.without(lacking) if lacking else space
    frame = frame[list(read.names)].reset_index(drop=True)
    gaps = [column.name for column in read.columns if not column.missing]
    there = ~frame[gaps].isna().to_numpy().any(axis=1)
    rows = np.full((int(there.sum()), space.d), np.nan)
    with warnings.catch_warnings(action="ignore"):  # about unknown levels, which are counted
        rows[:, [space.names.index(column) for column in read.names]] = read.read(frame[there], name)
    return ConvertedRows(rows, places[there])
