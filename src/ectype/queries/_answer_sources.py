"""Earlier answers from directories and tables, and their rows in another space."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np

from ectype._common.bounded_io import check_type
from ectype.errors import DirectoryError, IntegrityError, SettingError
from ectype.ledger import LEDGER, Purpose, read_answers, settings_of, space_of
from ectype.original import Answers, LabelledRows, Labels, concatenate
from ectype.original.options import LABEL
from ectype.original.stored_answers import read_table, split_labels
from ectype.space import IMPOSSIBLE_VALUES, Space, as_pandas, has_required_values, is_frame, outside_by_reason
from ectype.types import Frame, Label, Polars

# The reason for rows that lack a column. Others are those of the space.
COLUMNS = "columns"
# What settings of kept traffic call the columns that were not kept.
DROPPED = "dropped"

AnswerSources: TypeAlias = "str | Path | Frame | Polars | Sequence[str | Path | Frame | Polars]"
"""A directory, a table of rows with a column of labels or the name of its file, or several of these."""


class KeptTraffic(TypedDict):
    """The settings in a ledger that matter to a source."""

    classes: NotRequired[list[Label] | None]
    dropped: NotRequired[list[str]]


@dataclass(frozen=True)
class Source:
    """Answers from one place: to rows of a space of their own, or to those of a table."""

    name: str
    answers: Answers
    space: Space | None = None
    rows: np.ndarray | None = None
    """Rows of that space's matrix, if there is one."""
    table: Frame | None = None
    """Rows in the layout of production, if there is none."""
    dropped: tuple[str, ...] = ()
    """Columns of the space that were not kept."""
    classes: Labels | None = None
    """The labels that the scores are of, if there are some."""
    drawn: int = 0
    """The number of rows that a run drew; all others are real."""

    def present(self) -> tuple[Frame, np.ndarray]:
        """The rows of a space in the layout of production, and their places; only those with all values kept."""
        import pandas as pd

        assert self.space is not None
        assert self.rows is not None
        space = self.space.without(self.dropped) if self.dropped else self.space
        kept = [j for j, name in enumerate(self.space.names) if name not in self.dropped]
        places = np.flatnonzero(has_required_values(self.space, self.rows, kept))
        return pd.DataFrame(space.present(self.rows[places][:, kept]), columns=list(space.names)), places


def read_sources(given: AnswerSources) -> list[Source]:
    """Read answers, from one place or several."""
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    return [_source(one) for one in listed]


def _source(given: object) -> Source:
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        return _of_directory(path) if path.is_dir() else _of_file(path)
    table = as_pandas(given) if is_frame(given) or hasattr(given, "collect_schema") else None
    if not is_frame(table):
        expected = "a run's directory, a data frame or file of rows and labels, or a list of them"
        raise SettingError("answers", expected, type(given).__name__)
    return _of_table(table, "answers")


def _of_file(path: Path) -> Source:
    if not path.is_file():
        hint = "name a run's directory, or a CSV or Parquet file of rows and labels"
        raise DirectoryError(str(path), "answers", "nothing", hint)
    return _of_table(read_table(str(path), LABEL), str(path))


def _of_table(frame: Frame, name: str) -> Source:
    rows, labels = split_labels(frame, name, hint=f"call the column of answers {LABEL!r}")
    return Source(name, Answers(labels), table=rows)


def _of_directory(path: Path) -> Source:
    if not (path / LEDGER).is_file():
        hint = "name the directory of a run that was given --out, or of kept traffic"
        raise DirectoryError(str(path), "a directory with a ledger of answers", "none", hint)
    settings, found = settings_of(path / LEDGER) or {}, read_answers(path / LEDGER)
    try:
        check_type(settings, KeptTraffic, "settings")
    except ValueError as error:
        raise IntegrityError(str(path / LEDGER), "the settings of a run or of kept traffic", str(error)) from error
    parts = {purpose: part for purpose, part in found.items() if purpose != Purpose.REPEAT}
    if not parts:
        raise DirectoryError(str(path / LEDGER), "answers", "none", "name a run that has asked something")
    rows, answers = _own_first(parts)
    drawn = sum(len(part[1]) for purpose, part in parts.items() if purpose not in (Purpose.GIVEN, Purpose.TRAFFIC))
    classes = settings.get("classes")
    known = None if classes is None else Labels(classes)
    space, dropped = space_of(path / LEDGER), tuple(settings.get(DROPPED, ()))
    return Source(str(path), answers, space, rows, None, dropped, known, drawn)


def _own_first(parts: dict[str, LabelledRows]) -> LabelledRows:
    """All answers, prior ones last: of two answers to the same row, the run's own comes first."""
    order: Iterable[str] = sorted(parts, key=lambda purpose: purpose == Purpose.GIVEN)
    return concatenate(parts[purpose] for purpose in order)


# --- their rows in another space --------------------------------------------------------------------------------------


class ConvertedRows(NamedTuple):
    """Rows of a space's matrix, NaN where a column is not known, and their places in the source."""

    rows: np.ndarray
    places: np.ndarray

    def where(self, keep: np.ndarray) -> ConvertedRows:
        """Some of the rows."""
        return ConvertedRows(self.rows[keep], self.places[keep])


def convert_rows(source: Source, space: Space, exclude: Sequence[str]) -> tuple[ConvertedRows, Counter[str]]:
    """The rows of a source that the space can have, and how many of the others there are, by reason.

    Columns that are excluded need not be known: rows are then judged by all others.
    """
    found, lacking, left_out = _rows_in(source, space, exclude)
    if lacking - {*exclude}:
        return ConvertedRows(np.empty((0, space.d)), np.empty(0, int)), Counter({COLUMNS: len(source.answers)})
    unknown = [name for j, name in enumerate(space.names) if name in lacking or _unknown(j, found.rows, space, exclude)]
    judged = [j for j, name in enumerate(space.names) if name not in unknown]
    there = has_required_values(space, found.rows, judged)
    found, left_out[COLUMNS] = found.where(there), left_out[COLUMNS] + int((~there).sum())
    wrong = outside_by_reason(space.without(unknown) if unknown else space, found.rows[:, judged])
    left_out.update({why: int(which.sum()) for why, which in wrong.items()})
    return found.where(~np.logical_or.reduce([*wrong.values()])), +left_out


def _unknown(j: int, rows: np.ndarray, space: Space, exclude: Sequence[str]) -> bool:
    """Whether a column is excluded, and not known of every row."""
    return space.names[j] in exclude and not has_required_values(space, rows, [j]).all()


def _rows_in(source: Source, space: Space, exclude: Sequence[str]) -> tuple[ConvertedRows, set[str], Counter[str]]:
    """The rows of a source in the space, the columns that it lacks, and counts of lost rows; none, if one is needed."""
    if source.space is not None and source.rows is not None and source.space.digest == space.digest:
        return ConvertedRows(source.rows, np.arange(len(source.rows))), {*source.dropped}, Counter()
    frame, places = _present(source, space)
    lacking = {*space.names} - {*frame.columns}
    if lacking - {*exclude}:
        return ConvertedRows(np.empty((0, space.d)), places[:0]), lacking, Counter()
    found = _read(frame, places, space, sorted(lacking), source.name)
    left_out = {COLUMNS: len(source.answers) - len(places), IMPOSSIBLE_VALUES: len(places) - len(found.places)}
    return found, lacking, Counter(left_out)


def _present(source: Source, space: Space) -> tuple[Frame, np.ndarray]:
    """The rows of a source by the names of the new space, and their places; without those that lack a value."""
    if source.table is not None:
        frame, places = source.table.reset_index(drop=True), np.arange(len(source.table))
    else:
        frame, places = source.present()
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
