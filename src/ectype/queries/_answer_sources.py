"""Where answers come from that were paid for before: directories of runs, of kept traffic, and tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypeAlias, TypedDict

import numpy as np

from ectype._common.bounded_io import check_type
from ectype.errors import DirectoryError, IntegrityError, SettingError
from ectype.ledger import GIVEN, NAME, REPEAT, TRAFFIC, answers, settings_of, space_of
from ectype.original import Answers, LabelledRows, Labels, concatenate
from ectype.original.stored_answers import LABEL, labelled, read_table
from ectype.space import Space, as_pandas, has_required_values, is_frame
from ectype.types import Frame, Label, Polars

# What settings of kept traffic call the columns that were not kept.
DROPPED = "dropped"

AnswerSources: TypeAlias = "str | Path | Frame | Polars | Sequence[str | Path | Frame | Polars]"
"""A directory, a table of rows with a column of labels or the name of its file, or several of these."""


class KeptTraffic(TypedDict):
    """What is used of the settings that a ledger belongs to."""

    classes: NotRequired[list[Label] | None]
    dropped: NotRequired[list[str]]


@dataclass(frozen=True)
class Source:
    """Answers from one place: rows of a space of their own, or a table, and what was said to them."""

    name: str
    said: Answers
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
    """How many of the rows a run drew; others are as somebody has them."""

    def presented(self) -> tuple[Frame, np.ndarray]:
        """The rows of a space in the layout of production, and their places; only those with all values kept."""
        import pandas as pd

        assert self.space is not None
        assert self.rows is not None
        space = self.space.without(self.dropped) if self.dropped else self.space
        kept = [j for j, name in enumerate(self.space.names) if name not in self.dropped]
        places = np.flatnonzero(has_required_values(self.space, self.rows, kept))
        return pd.DataFrame(space.present(self.rows[places][:, kept]), columns=list(space.names)), places


def sources_of(given: AnswerSources) -> list[Source]:
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
    rows, labels = labelled(frame, name, hint=f"call the column of answers {LABEL!r}")
    return Source(name, Answers(labels), table=rows)


def _of_directory(path: Path) -> Source:
    if not (path / NAME).is_file():
        hint = "name the directory of a run that was given --out, or of kept traffic"
        raise DirectoryError(str(path), "a directory with a ledger of answers", "none", hint)
    settings, found = settings_of(path / NAME) or {}, answers(path / NAME)
    try:
        check_type(settings, KeptTraffic, "settings")
    except ValueError as error:
        raise IntegrityError(str(path / NAME), "the settings of a run or of kept traffic", str(error)) from error
    parts = {purpose: told for purpose, told in found.items() if purpose != REPEAT}
    if not parts:
        raise DirectoryError(str(path / NAME), "answers", "none", "name a run that has asked something")
    rows, said = _in_order(parts)
    drawn = sum(len(told[1]) for purpose, told in parts.items() if purpose not in (GIVEN, TRAFFIC))
    classes = settings.get("classes")
    known = None if classes is None else Labels(classes)
    space, dropped = space_of(path / NAME), tuple(settings.get(DROPPED, ()))
    return Source(str(path), said, space, rows, None, dropped, known, drawn)


def _in_order(parts: dict[str, LabelledRows]) -> LabelledRows:
    """All answers, those that were asked first; of two to the same row, so, the run's own comes first."""
    order: Iterable[str] = sorted(parts, key=lambda purpose: purpose == GIVEN)
    return concatenate(parts[purpose] for purpose in order)
