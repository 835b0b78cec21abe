"""Reading a ledger that belongs to any run: whose it is, what it holds, and every query in it."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ectype._common.manifest import Anchor
from ectype.errors import DirectoryError
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._blobs import codes_of, matrix_of, parameters_of
from ectype.ledger._connections import readable
from ectype.ledger._import_rows import given_rows
from ectype.ledger._label_codes import Vocabulary
from ectype.ledger._purpose import Purpose
from ectype.ledger._recovery import errors_of
from ectype.ledger._schema import (
    SAVED,
    UNCHAINED,
    answered_requests,
    check_rows,
    format_of,
    is_begun,
    labels_of,
    later_settings,
    meta_of,
    plain,
    prepared,
    reading,
    scores_for,
    sent,
    sent_by_purpose,
    unanswered,
)
from ectype.original import Answers, LabelledRows, concatenate, label_array
from ectype.space import Space
from ectype.types import Frame, Json, Label

_COUNTED = """SELECT count(*), coalesce(sum(CASE WHEN request IS NULL THEN 0 ELSE n END), 0)
  FROM {} LEFT JOIN answers ON request = id WHERE sent > 0"""


@dataclass(frozen=True)
class Summary:
    """What a ledger holds, counted in rows unless it says otherwise."""

    requests: int
    asked: int
    """Rows that were sent, as often as they were, whatever came of it."""
    answered: int
    maybe_paid: int
    """Rows of attempts without an answer, of which some may have been answered, and paid for, all the same."""
    lost: int
    """Of these, rows of requests that were under way when a process was killed, or was interrupted."""
    saved: int
    """Rows that were wanted again and taken from the ledger."""
    repeated: int
    """Rows that were asked again on purpose."""
    by_purpose: dict[str, int]
    labels: dict[Label, int]
    failures: dict[str, int]
    """Attempts that came to nothing, by cause."""
    checked: bool = True
    """Whether it has checksums; ledgers of version 0.1 have none."""
    given: int = 0
    """Rows whose answers the run was given: they were not asked here."""


def settings_of(path: Path) -> Json | None:
    """The settings of the run that a ledger belongs to; none if it was not even begun before the run was killed."""
    with reading(path) as connection:
        return meta_of(connection, path)["settings"] if is_begun(connection) else None


def anchored(path: Path) -> Anchor | None:
    """How far the chain of a ledger is, for run.json, unchecked; None for those of version 0.1, which have none."""
    with errors_of(path), readable(path) as connection:
        return None if format_of(connection, path) == UNCHAINED else hash_chain.finished(connection)


def space_of(path: Path) -> Space:
    """The space that the rows of a ledger were drawn from."""
    with reading(path) as connection:
        return Space.from_json(meta_of(connection, path)["space"])


def summary(path: Path) -> Summary:
    """What a ledger holds."""
    with reading(path) as connection:
        checked = format_of(connection, path) != UNCHAINED
        labels, counts, given = labels_of(connection), Counter[int](), 0
        for _, purpose, _, codes in answered_requests(connection):
            counts.update(codes.tolist() if plain(purpose) not in (Purpose.REPEAT, Purpose.GIVEN) else ())
            given += len(codes) if purpose == Purpose.GIVEN else 0
        requests, answered = connection.execute(_COUNTED.format(sent(connection))).fetchone()
        by_purpose = Counter[str]()
        for purpose, n in sent_by_purpose(connection).items():
            by_purpose[plain(purpose)] += n
        tallies = dict(connection.execute("SELECT name, sum(n) FROM tallies GROUP BY name").fetchall())
        return Summary(
            requests=requests,
            asked=sum(by_purpose.values()),
            answered=answered,
            maybe_paid=sum(by_purpose.values()) - answered,
            lost=sum(len(rows) for _, rows, failed in unanswered(connection) if not failed),
            saved=tallies.pop(SAVED, 0),
            repeated=by_purpose.get(Purpose.REPEAT, 0),
            by_purpose=dict(by_purpose),
            labels={labels[code]: n for code, n in sorted(counts.items())},
            failures=tallies,
            checked=checked,
            given=given,
        )


def answers(path: Path) -> dict[str, LabelledRows]:
    """By purpose, the rows that were answered, as they were drawn, and what was said: labels, scores if any."""
    with reading(path) as connection:
        return _answers(connection, path)


def learned(path: Path) -> tuple[dict[str, LabelledRows], int, np.ndarray]:
    """The answers, of which there must be some, and the last round of training, from one look through the ledger."""
    with reading(path) as connection:
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


def duplicate(path: Path, to: Path, settings: Json, given: LabelledRows | None = None) -> None:
    """Write a ledger once more, to another file, for a run with these settings, once all in it was checked.

    Further answers that the run is given are added to it.
    """
    with reading(path) as connection, closing(sqlite3.connect(to, isolation_level=None)) as other:
        connection.backup(other)
        last = prepared(other, to, {})
        other.execute("BEGIN IMMEDIATE")
        hash_chain.write(other, [later_settings(other, settings), *_more(other, given)], last)
        other.execute("COMMIT")


def _more(connection: sqlite3.Connection, given: LabelledRows | None) -> Iterator[hash_chain.Row]:
    if given is not None:
        last = connection.execute("SELECT coalesce(max(id), 0) FROM requests").fetchone()[0]
        yield from given_rows(given, Vocabulary(labels_of(connection)), last + 1)


def last_round(path: Path) -> tuple[int, np.ndarray]:
    """The number of the last round of training that was written down, and the parameters after it."""
    with reading(path) as connection:
        return _last_round(connection, path)


def _last_round(connection: sqlite3.Connection, path: Path) -> tuple[int, np.ndarray]:
    found = connection.execute("SELECT t, theta FROM rounds ORDER BY t DESC LIMIT 1").fetchone()
    if found is None:
        raise DirectoryError(str(path), "a ledger with a round of training", "none", "copy again")
    return found[0], parameters_of(found[1])


def entries(path: Path, space: Space) -> Frame:
    """Every query as a data frame in the layout of production, with its purpose, its label and when it was answered."""
    import pandas as pd

    with reading(path) as connection:
        table, parts = _table(labels_of(connection)), []
        sql = f"""SELECT id, purpose, n, rows, codes, at FROM {sent(connection)}
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
