"""Read the ledger of any run: its settings, its space, its answers and its rounds of training."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ectype._common.manifest import Anchor
from ectype._legacy.ledger import FORMAT_1
from ectype.errors import DirectoryError
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._blobs import codes_of, matrix_of, parameters_of
from ectype.ledger._connections import open_for_reading
from ectype.ledger._recovery import errors_of
from ectype.ledger._schema import (
    answered_requests,
    check_rows,
    format_of,
    is_begun,
    labels_of,
    meta_of,
    open_and_check,
    scores_for,
    sent_sql,
)
from ectype.original import Answers, LabelledRows, concatenate, label_array
from ectype.space import Space
from ectype.types import Frame, Json, Label


class LedgerEntry(NamedTuple):
    """A request that was answered."""

    purpose: str
    rows: np.ndarray
    answers: Answers
    announced: float
    at: float


def settings_of(path: Path) -> Json | None:
    """The settings of a ledger's run; None if the run was killed before it wrote them."""
    with open_and_check(path) as connection:
        return meta_of(connection, path)["settings"] if is_begun(connection) else None


def chain_anchor(path: Path) -> Anchor | None:
    """The end of a ledger's chain, for run.json, unchecked; None for a ledger of version 0.1, which has no chain."""
    with errors_of(path), open_for_reading(path) as connection:
        return None if format_of(connection, path) == FORMAT_1 else hash_chain.final_anchor(connection)


def space_of(path: Path) -> Space:
    """The space that the rows of a ledger were drawn from."""
    with open_and_check(path) as connection:
        return Space.from_json(meta_of(connection, path)["space"])


def read_answers(path: Path) -> dict[str, LabelledRows]:
    """Rows and answers by purpose, in the order in which they were asked."""
    with open_and_check(path) as connection:
        return _answers(connection, path)


def read_entries(path: Path) -> tuple[Space, list[LedgerEntry]]:
    """The space of a ledger, and its requests that were answered."""
    sql = "SELECT id, purpose, n, rows, codes, announced, at FROM requests JOIN answers ON request = id ORDER BY id"
    with open_and_check(path) as connection:
        space, table = Space.from_json(meta_of(connection, path)["space"]), _table(labels_of(connection))
        found = list[LedgerEntry]()
        for number, purpose, n, rows, codes, announced, at in connection.execute(sql):
            asked = matrix_of(rows, n)
            check_rows(space, asked, purpose)
            answers = Answers(table[codes_of(codes, n, len(table))], scores_for(connection, number, n))
            found.append(LedgerEntry(purpose, asked, answers, announced, at))
        return space, found


def read_answers_and_round(path: Path) -> tuple[dict[str, LabelledRows], int, np.ndarray]:
    """Read all answers, of which there must be some, and the last round of training, and check the ledger once."""
    with open_and_check(path) as connection:
        found = _answers(connection, path)
        if not found:
            hint = "copy again with a directory (out= or --out) and an original that is asked"
            raise DirectoryError(str(path), "a ledger with answers", "none", hint)
        return found, *_last_round(connection, path)


def _answers(connection: sqlite3.Connection, path: Path) -> dict[str, LabelledRows]:
    space = Space.from_json(meta_of(connection, path)["space"])
    table, found = _table(labels_of(connection)), defaultdict[str, list[LabelledRows]](list)
    for number, purpose, rows, codes in answered_requests(connection):
        check_rows(space, rows, purpose)
        found[purpose].append((rows, Answers(table[codes], scores_for(connection, number, len(codes)))))
    return {purpose: concatenate(chunks) for purpose, chunks in found.items()}


def _last_round(connection: sqlite3.Connection, path: Path) -> tuple[int, np.ndarray]:
    found = connection.execute("SELECT t, theta FROM rounds ORDER BY t DESC LIMIT 1").fetchone()
    if found is None:
        raise DirectoryError(str(path), "a ledger with a round of training", "none", "copy again")
    return found[0], parameters_of(found[1])


def query_table(path: Path, space: Space) -> Frame:
    """All queries as a data frame in the layout of production, with purpose, label and time of the answer."""
    import pandas as pd

    with open_and_check(path) as connection:
        table, parts = _table(labels_of(connection)), []
        sql = f"""SELECT id, purpose, n, rows, codes, at FROM {sent_sql(connection)}
          LEFT JOIN answers ON request = id WHERE sent > 0 ORDER BY id"""
        for number, purpose, n, rows, answers, answered in connection.execute(sql):
            asked = matrix_of(rows, n)
            check_rows(space, asked, purpose)
            frame = pd.DataFrame(space.present(asked), columns=list(space.names))
            found = [None] * n if answers is None else table[codes_of(answers, n, len(table))]
            about = {"request": number, "purpose": purpose, "answered": answered, "label": found}
            # An input may be called as one of these; then ours gives way.
            parts.append(frame.assign(**{f"{'_' * (key in frame)}{key}": value for key, value in about.items()}))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(space.names))


def _table(labels: list[Label]) -> np.ndarray:
    """Labels by code."""
    return label_array(labels) if labels else np.empty(0)
