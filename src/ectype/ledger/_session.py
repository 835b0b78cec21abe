"""Asking about a finished run: a certificate, a check, a calibration. Each is a session in one ledger beside the run's.

A command that was killed goes on in its session, and nothing that was answered is asked twice. Once a session has
ended, the same command asks anew: what it is to find out is how the original answers now. What was asked and answered
stays in the ledger either way.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

import numpy as np

from ectype._common.atomic_io import as_path, folder_lock
from ectype._common.bounded_io import check_type, parse_json
from ectype.errors import DirectoryError, warn
from ectype.ledger._connections import BESIDE_LEDGER, SESSIONS
from ectype.ledger._ledger import Ledger
from ectype.ledger._purpose import Purpose
from ectype.ledger._schema import answered_requests, labels_of, open_and_check, scores_for
from ectype.original import Original, label_array
from ectype.original.fingerprint import identity_of
from ectype.space import Space
from ectype.types import Json

# How long after its last answer a session is resumed, in seconds. Later, its answers are too old to be mixed with new
# ones.
SESSION_LIFETIME = 7 * 86400
# What the ledger calls the settings of a session, and its end, among what it belongs to; a number follows.
_SETTINGS, _ENDED = "session", "ended"


# The facts that every session has.
Asked = TypedDict("Asked", {"for": str, "original": str})


@dataclass(frozen=True)
class SessionEntry:
    """A session, as its ledger has it. Times are in seconds since 1970."""

    number: int
    about: Json
    """What is asked, and of which original."""
    rows: int
    """How many were answered."""
    first: float | None
    """When the first was."""
    last: float | None
    """When the last was; if none was, when the last was sent."""
    ended: float | None
    """When the session was; None if it was interrupted."""

    @property
    def goes_on(self) -> bool:
        """Whether the same command goes on with it."""
        return self.ended is None and (self.last is None or time.time() - self.last < SESSION_LIFETIME)

    def as_json(self) -> Json:
        """What was asked, of whom and when, as JSON values."""
        times = {"first": self.first, "last": self.last, "ended": self.ended}
        about = {"for": self.about["for"], "original": self.about["original"], "rows": self.rows}
        return {**about, **{name: None if at is None else _iso(at) for name, at in times.items()}}


class Session(Ledger):
    """A ledger of sessions, open for one of them: what was answered in it, and in no other, is not asked again."""

    anchored = False

    def __init__(self, path: Path, about: Json, space: Space):
        """Resume the session with these facts, unless it has ended or is too old; else begin one."""
        self._about = about
        self.earlier: SessionEntry | None = None
        super().__init__(path, {}, space)

    def _begin(self, settings: Json) -> str:
        entries = _entries(self._reader)
        found = next((entry for entry in reversed(entries) if entry.about == self._about), None)
        if found is not None and found.goes_on:
            self.earlier, self.number = found, found.number
        else:
            self.number = len(entries) + 1
            self.writer.put("meta", f"{_SETTINGS} {self.number}", json.dumps(self._about))
        return f"{self.number} "

    def _index_key(self, purpose: str) -> str:
        return purpose  # the user's own rows may be sent with more columns than drawn ones

    @property
    def since(self) -> float:
        """When its first answer came, or, before that, now."""
        return time.time() if self.earlier is None or self.earlier.first is None else self.earlier.first

    def hand_over(self, to: Ledger) -> None:
        """Write the answers of this session to another ledger, but for those that it has."""
        labels = label_array(labels_of(self._reader)) if self.counts.answered else np.array([])
        for number, purpose, rows, codes in answered_requests(self._reader, self.prefix):
            new, scores = to.unknown(rows, purpose), scores_for(self._reader, number, len(rows))
            if len(new):
                to.record(rows[new], labels[codes[new]], Purpose(purpose), None if scores is None else scores[new])

    def end(self) -> None:
        """Write down that it has ended, and wait until that has reached the disk."""
        self.writer.put("meta", f"{_ENDED} {self.number}", json.dumps(time.time()))
        self.settle()


@contextmanager
def open_session(
    folder: str | Path | None, purpose: str, original: Original, space: Space, about: Json, *, ends: bool = True
) -> Iterator[Session | None]:
    """A session about a run in a folder, which ends if nothing is raised within; None where nothing can be kept.

    `about` and the original tell it from others. One that does not end is gone on with, as long as it is recent. Nobody
    else writes to the folder meanwhile.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from ectype.queries import Queries
    >>> sign, space = Original(lambda rows: rows[:, 0] > 0, name="sign"), Space.normal(1)
    >>> with TemporaryDirectory() as run, open_session(run, "certify", sign, space, {"n": 10}) as ledger:
    ...     queries = Queries(sign, space, {Purpose.CERTIFICATE: 10}, ledger)
    ...     _ = queries.query_labels(Purpose.CERTIFICATE, np.ones((10, 1)))
    ...     ledger.counts.sent
    1
    """
    path = None if folder is None else as_path(folder) / SESSIONS
    if path is None or original.stored is not None or not _can_be_kept(path):
        yield None
        return
    with folder_lock(path.parent):
        new = not path.exists()
        ledger = Session(path, _about(purpose, original, space, about), space)
        try:
            _say_earlier(ledger)
            yield ledger
            if ends:
                ledger.end()
        finally:
            ledger.close()
            if new and ledger.empty:
                for suffix in ("", *BESIDE_LEDGER):
                    path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def take_over_session(folder: Path, purpose: str, original: Original, space: Space, about: Json, to: Ledger) -> None:
    """Move the answers of an interrupted session to the ledger of a run, and end the session."""
    about = _about(purpose, original, space, about)
    if any(entry.about == about and entry.goes_on for entry in read_sessions(folder)):
        with open_session(folder, purpose, original, space, about) as found:
            if found is not None:
                found.hand_over(to)


def read_sessions(folder: Path) -> list[SessionEntry]:
    """The sessions about the run in a folder, in order."""
    path = folder / SESSIONS
    if not path.is_file():
        return []
    with open_and_check(path) as connection:
        return _entries(connection)


def _about(purpose: str, original: Original, space: Space, about: Json) -> Json:
    """What a session is recognised by, as the ledger has it."""
    found: Json = json.loads(json.dumps({"for": purpose, **identity_of(original), "space": space.digest, **about}))
    return found


def _entries(connection: sqlite3.Connection) -> list[SessionEntry]:
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    sql = """SELECT CAST(purpose AS INTEGER), sum(iif(at IS NULL, 0, n)), min(at), coalesce(max(at), max(announced))
      FROM requests LEFT JOIN answers ON request = id GROUP BY CAST(purpose AS INTEGER)"""
    answered = {number: found for number, *found in connection.execute(sql)}
    entries = list[SessionEntry]()
    while (about := meta.get(f"{_SETTINGS} {len(entries) + 1}")) is not None:
        number = len(entries) + 1
        ended = meta.get(f"{_ENDED} {number}")
        rows, first, last = answered.get(number, (0, None, None))
        at = None if ended is None else parse_json(ended)
        entry = SessionEntry(number, parse_json(about), rows, first, last, at)
        check_type(entry, SessionEntry, f"{_SETTINGS} {number}")
        check_type(entry.about, Asked, f"{_SETTINGS} {number}")
        entry.as_json()  # its times are some
        entries.append(entry)
    return entries


def _can_be_kept(path: Path) -> bool:
    """Whether the folder can be written to; a run in an archive that cannot is certified all the same."""
    if not path.parent.is_dir():
        raise DirectoryError(str(path.parent), "the directory of a run", "none", "name one that is there")
    if os.access(path.parent, os.W_OK):
        return True
    warn(f"{path.parent} cannot be written to: answers are kept in memory alone, and asked again after an interruption")
    return False


def _say_earlier(ledger: Session) -> None:
    """Warn of answers that are not of today, and of rows that may be sent beyond the announced number."""
    found, lost = ledger.earlier, ledger.counts.lost
    if found is not None and found.first is not None:
        words = f"{found.rows} answers are taken from {ledger.path}, the first of {_iso(found.first)}"
        warn(f"{words}; move it and its -head away to ask anew")
    if lost:
        words = f"{lost} rows were under way when this was stopped, and may have been answered: at most as many more"
        warn(f"{words} than announced reach the original in all")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
