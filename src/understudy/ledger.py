"""The ledger: every query and its answer, durable in one SQLite file, so that nothing is paid for twice.

A request is announced before it is sent and answered after, each in a transaction that has reached the disk. One that
was announced and never answered may have been paid for. Rows are kept as they are drawn, a blob of float64 per request;
answers as codes of the labels. Rounds of training are kept as well: a run that is resumed takes them from here.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Self

import numpy as np

from understudy.asking import Part, ask
from understudy.errors import DirectoryError, OriginalError
from understudy.original import Labels, Original, label_array
from understudy.space import Space

FORMAT = 1
NAME = "ledger.sqlite"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE labels (code INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, n INTEGER NOT NULL, announced REAL NOT NULL, rows BLOB NOT NULL
);
CREATE TABLE answers (request INTEGER PRIMARY KEY, at REAL NOT NULL, codes BLOB NOT NULL);
CREATE TABLE failures (request INTEGER NOT NULL, at REAL NOT NULL, found TEXT NOT NULL);
CREATE TABLE tallies (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds (
  t INTEGER PRIMARY KEY, theta BLOB NOT NULL, about TEXT NOT NULL
);
"""
# How long the writer gathers statements before it commits them together, in seconds. Below what anybody notices, and
# enough that a fast original is not interrupted for each of its answers.
GATHER = 0.004
_Entry = tuple[str, tuple[Any, ...], "Future[None] | None"] | None
# Rows that were asked again on purpose, to see whether the original answers alike.
REPEAT = "repeat"
# How many rows were wanted again and taken from the ledger, among what is counted beside the queries.
SAVED = "saved"


@dataclass(frozen=True)
class Summary:
    """What a ledger holds, counted in rows unless it says otherwise."""

    requests: int
    announced: int
    answered: int
    unanswered: int
    """Announced and never answered: they may have been paid for."""
    saved: int
    """Rows that were wanted again and taken from the ledger."""
    repeated: int
    """Rows that were asked again on purpose."""
    by_purpose: dict[str, int]
    labels: dict[Any, int]
    failures: dict[str, int]
    """Attempts that came to nothing, by cause."""

    @property
    def paid(self) -> int:
        """The most rows that may have been paid for."""
        return self.announced


class Ledger:
    """A run's ledger, open for writing. `settings` are those of the run it belongs to."""

    def __init__(self, path: Path, settings: dict[str, Any], space: Space):
        self.path = path
        with _errors_of(path):
            self._reader = _connect(path)
            if not _is_begun(self._reader):
                _create(self._reader, {"format": FORMAT, "settings": settings, "space": space.to_json()})
            self._writer = _Writer(path)
            self._next = 1 + (self._reader.execute("SELECT max(id) FROM requests").fetchone()[0] or 0)
            self._known = lru_cache(maxsize=64)(self._read)
            self._vocabulary = _Vocabulary(_labels(self._reader))
            self._indexes = {False: _Index(), True: _Index()}  # of rows asked for the first time, and again
            for number, purpose, rows, _ in _answered(self._reader):
                self._indexes[purpose == REPEAT].add(_keys(rows), number)

    def close(self) -> None:
        """Write what is still waiting, and close the file."""
        with _errors_of(self.path):
            self._writer.close()
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- queries ----------------------------------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        """Whether nothing was ever announced."""
        return self._next == 1

    @property
    def labels(self) -> list[Any]:
        """Every label that was ever answered."""
        return list(self._vocabulary.values)

    def ask(self, original: Original, space: Space, rows: np.ndarray, purpose: str) -> np.ndarray:
        """The original's labels for these rows, from the ledger where they are in it, else asked and written down."""
        rows = np.ascontiguousarray(rows)  # parts of it go into the file as they lie in memory
        keys, codes = _keys(rows), np.full(len(rows), -1, np.int32)
        first = _first_of_each(rows, keys)
        self._look_up(rows, keys, codes, self._indexes[purpose == REPEAT])
        fresh = np.flatnonzero((codes < 0) & (first == np.arange(len(rows))))
        if len(fresh):
            known = len(fresh) < len(rows)  # else they need not be copied
            entries = _Entries(self, rows[fresh] if known else rows, keys[fresh] if known else keys, purpose)
            before = Counter(original.failures)
            try:
                ask(original, lambda part: space.present(entries.rows[part]), len(fresh), entries)
            finally:
                self.tally(original.failures - before)
                self._settle()
            codes[fresh] = entries.codes
        if len(fresh) < len(rows):
            self.tally(Counter({SAVED: len(rows) - len(fresh)}))
        return self._vocabulary.table[codes[first]]

    def tally(self, counts: Counter[str]) -> None:
        """Add to what is counted beside the queries."""
        for name, n in counts.items():
            self._writer.put(
                "INSERT INTO tallies VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = n + excluded.n", (name, n)
            )

    def _look_up(self, rows: np.ndarray, keys: np.ndarray, codes: np.ndarray, index: _Index) -> None:
        """Fill in the codes of rows that were answered before; the rows are compared, as keys may coincide."""
        where, numbers = index.find(keys)
        for number in np.unique(numbers):
            known = self._known(int(number))
            for at in where[numbers == number]:
                codes[at] = known.get(rows[at].tobytes(), codes[at])

    def _read(self, number: int) -> dict[bytes, int]:
        """The rows of a request, as bytes, with the codes of their answers."""
        self._settle()
        sql = "SELECT n, rows, codes FROM requests JOIN answers ON request = id WHERE id = ?"
        found = self._reader.execute(sql, (number,)).fetchone()
        codes = np.frombuffer(found[2], np.int32).tolist()
        return {row.tobytes(): code for row, code in zip(_matrix(found[1], found[0]), codes, strict=True)}

    # --- rounds of training -----------------------------------------------------------------------------------------

    def round(self, t: int) -> tuple[np.ndarray, dict[str, Any]] | None:
        """The parameters after round t and what is known about it, if it was trained before."""
        found = self._reader.execute("SELECT theta, about FROM rounds WHERE t = ?", (t,)).fetchone()
        return None if found is None else (np.frombuffer(found[0], np.float32).copy(), json.loads(found[1]))

    def keep_round(self, t: int, theta: np.ndarray, about: dict[str, Any]) -> None:
        """Write down a round of training."""
        self._writer.put("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", (t, theta.tobytes(), json.dumps(about)))

    def forget_rounds(self) -> None:
        """Remove all rounds: what they were trained for has changed."""
        self._writer.put("DELETE FROM rounds", ())
        self._settle()

    def _settle(self) -> None:
        with _errors_of(self.path):
            self._writer.settle()


class _Entries:
    """The journal of one call: its requests, announced and answered in the ledger."""

    def __init__(self, ledger: Ledger, rows: np.ndarray, keys: np.ndarray, purpose: str):
        self.ledger, self.rows, self.keys, self.purpose = ledger, rows, keys, purpose
        self.codes = np.full(len(rows), -1, np.int32)

    def announce(self, part: Part) -> tuple[int, Part, Future[None]]:
        """Write down that these rows will be asked."""
        number = self.ledger._next
        self.ledger._next += 1
        entry = (number, self.purpose, part.stop - part.start, self.rows[part].data, time.time())
        sql = "INSERT INTO requests (id, purpose, n, rows, announced) VALUES (?, ?, ?, ?, ?)"
        return number, part, self.ledger._writer.promise(sql, entry)

    def ready(self, ticket: tuple[int, Part, Future[None]]) -> None:
        """Wait until the announcement has reached the disk."""
        with _errors_of(self.ledger.path):
            self.ledger._writer.wait(ticket[2])

    def answered(self, ticket: tuple[int, Part, Future[None]], labels: np.ndarray) -> None:
        """Write down what was answered."""
        number, part, _ = ticket
        codes, new = self.ledger._vocabulary.codes(labels)
        for code, value in new:
            self.ledger._writer.put("INSERT INTO labels VALUES (?, ?)", (code, json.dumps(value)))
        # A table of its own: SQLite writes a whole row anew to change it, and requests are large.
        self.ledger._writer.put("INSERT INTO answers VALUES (?, ?, ?)", (number, time.time(), codes.tobytes()))
        self.codes[part] = codes
        self.ledger._indexes[self.purpose == REPEAT].add(self.keys[part], number)

    def failed(self, ticket: tuple[int, Part, Future[None]], error: OriginalError) -> None:
        """Write down that there was no answer, and why."""
        entry = (ticket[0], time.time(), str(error.found)[:500])
        self.ledger._writer.put("INSERT INTO failures VALUES (?, ?, ?)", entry)


class _Vocabulary:
    """The labels an original has answered so far, and their codes in the order they came."""

    def __init__(self, values: list[Any]):
        self.values: list[Any] = []
        self._learn(values)

    def codes(self, labels: np.ndarray) -> tuple[np.ndarray, list[tuple[int, Any]]]:
        """The codes of labels, and the codes and values of those that are new."""
        known = len(self.values)
        found = self._sorted.find(labels) if known else np.full(len(labels), -1)
        if found.min(initial=0) < 0:
            self._learn(list(dict.fromkeys(labels[found < 0].tolist())))
            found = self._sorted.find(labels)
        return self._order[found], list(enumerate(self.values[known:], known))

    def _learn(self, values: list[Any]) -> None:
        if not values:
            return
        try:
            self.table = label_array(self.values + values)
        except ValueError as error:
            raise OriginalError("the original's answers", "labels of one type", str(error)) from error
        self.values += values
        self._sorted = Labels(self.table)
        self._order = np.argsort(self.table, kind="stable").astype(np.int32)


class _Index:
    """In which request each row was answered, found by the row's key."""

    def __init__(self) -> None:
        self._keys = np.empty(0, np.uint64)
        self._numbers = np.empty(0, np.int64)
        self._new: list[tuple[np.ndarray, int]] = []

    def add(self, keys: np.ndarray, number: int) -> None:
        """Take up the keys of an answered request."""
        self._new.append((keys, number))

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions of keys that are known, with the numbers of their requests."""
        self._merge()
        if not len(self._keys):
            return np.empty(0, int), np.empty(0, int)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        where = np.flatnonzero(self._keys[at] == keys)
        return where, self._numbers[at[where]]

    def _merge(self) -> None:
        if self._new:
            keys = np.concatenate([self._keys, *(found for found, _ in self._new)])
            numbers = np.concatenate([self._numbers, *(np.full(len(found), k) for found, k in self._new)])
            order = np.argsort(keys, kind="stable")
            self._keys, self._numbers, self._new = keys[order], numbers[order], []


class _Writer:
    """Writes in a thread of its own, in one transaction whatever has gathered while the last was on its way to disk."""

    def __init__(self, path: Path):
        self._queue: SimpleQueue[_Entry] = SimpleQueue()
        self._connection = _connect(path)
        self._hurry = Event()
        self._failure: BaseException | None = None  # after one nothing more is written: it would leave gaps
        self._thread = Thread(target=self._run, name="understudy-ledger", daemon=True)
        self._thread.start()

    def put(self, sql: str, values: tuple[Any, ...] = ()) -> None:
        """Hand over a statement."""
        self._queue.put((sql, values, None))

    def promise(self, sql: str, values: tuple[Any, ...] = ()) -> Future[None]:
        """Hand over a statement, for a future that is done when it has reached the disk."""
        done: Future[None] = Future()
        self._queue.put((sql, values, done))
        return done

    def settle(self) -> None:
        """Wait until everything handed over has reached the disk."""
        self.wait(self.promise("SELECT 1"))

    def wait(self, done: Future[None]) -> None:
        """Wait for a promise; the writer need not gather any longer."""
        if not done.done():
            self._hurry.set()
        done.result()

    def close(self) -> None:
        """Write what is still waiting, and end."""
        self._hurry.set()
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        going = True
        while going:
            gathered = [self._queue.get()]
            self._hurry.wait(GATHER)
            self._hurry.clear()
            with suppress(Empty):
                while True:
                    gathered.append(self._queue.get_nowait())
            going = None not in gathered
            self._commit([entry for entry in gathered if entry is not None])

    def _commit(self, entries: list[tuple[str, tuple[Any, ...], Future[None] | None]]) -> None:
        error = self._failure
        if error is None:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for sql, values, _ in entries:
                    self._connection.execute(sql, values)
                self._connection.execute("COMMIT")
            except BaseException as failure:
                self._failure = error = failure
        for *_, done in entries:
            if done is not None and error is not None:
                done.set_exception(error)
            elif done is not None:
                done.set_result(None)


# --- reading a ledger that belongs to any run -----------------------------------------------------------------------


def settings_of(path: Path) -> dict[str, Any] | None:
    """The settings of the run that a ledger belongs to; none if it was not even begun before the run was killed."""
    with _reading(path) as connection:
        return _meta(connection, path)["settings"] if _is_begun(connection) else None


def space_of(path: Path) -> Space:
    """The space that the rows of a ledger were drawn from."""
    with _reading(path) as connection:
        return Space.from_json(_meta(connection, path)["space"])


def summary(path: Path) -> Summary:
    """What a ledger holds."""
    with _reading(path) as connection:
        _meta(connection, path)
        labels, counts = _labels(connection), Counter[int]()
        for _, purpose, _, codes in _answered(connection):
            counts.update(codes.tolist() if purpose != REPEAT else ())
        total = "SELECT count(*), coalesce(sum(n), 0), coalesce(sum(CASE WHEN request IS NULL THEN 0 ELSE n END), 0)"
        requests, announced, answered = connection.execute(
            f"{total} FROM requests LEFT JOIN answers ON request = id"
        ).fetchone()
        by_purpose = dict(connection.execute("SELECT purpose, sum(n) FROM requests GROUP BY purpose").fetchall())
        tallies = dict(connection.execute("SELECT name, n FROM tallies").fetchall())
    return Summary(
        requests=requests,
        announced=announced,
        answered=answered,
        unanswered=announced - answered,
        saved=tallies.pop(SAVED, 0),
        repeated=by_purpose.get(REPEAT, 0),
        by_purpose=by_purpose,
        labels={labels[code]: n for code, n in sorted(counts.items())},
        failures=tallies,
    )


def entries(path: Path, space: Space) -> Any:
    """Every query as a data frame in the layout of production, with its purpose, its label and when it was answered."""
    import pandas as pd

    with _reading(path) as connection:
        labels = _labels(connection)
        table = label_array(labels) if labels else np.empty(0)
        parts = []
        sql = "SELECT id, purpose, n, rows, codes, at FROM requests LEFT JOIN answers ON request = id ORDER BY id"
        for number, purpose, n, rows, answers, answered in connection.execute(sql):
            frame = pd.DataFrame(space.present(_matrix(rows, n)), columns=list(space.names))
            found = [None] * n if answers is None else table[np.frombuffer(answers, np.int32)]
            about = {"request": number, "purpose": purpose, "answered": answered, "label": found}
            # An input may be called as one of these; then ours gives way.
            parts.append(frame.assign(**{f"{'_' * (key in frame)}{key}": value for key, value in about.items()}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(space.names))


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise DirectoryError(str(path), "a ledger", "nothing", "name the directory of a run that was given --out")
    with _errors_of(path):
        connection = _connect(path)
        try:
            yield connection
        finally:
            connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA page_size = 16384")  # rows are large blobs: fewer pages, less to check and copy
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4096")
        connection.execute("PRAGMA cache_size = -32768")  # a transaction of many requests is not spilled half-way
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_begun(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _create(connection: sqlite3.Connection, about: dict[str, Any]) -> None:
    """All tables and what the ledger belongs to, in one transaction: a ledger with tables is whole."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [(key, json.dumps(value)) for key, value in about.items()])
    connection.execute("COMMIT")


def _meta(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    found = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    if found.get("format") != FORMAT or not isinstance(found.get("settings"), dict):
        hint = "use the understudy that wrote it, or a newer one"
        raise DirectoryError(str(path), f"a ledger of format {FORMAT}", found.get("format"), hint)
    return found


def _labels(connection: sqlite3.Connection) -> list[Any]:
    return [json.loads(value) for (value,) in connection.execute("SELECT value FROM labels ORDER BY code")]


def _answered(connection: sqlite3.Connection) -> Iterator[tuple[int, str, np.ndarray, np.ndarray]]:
    sql = "SELECT id, purpose, n, rows, codes FROM requests JOIN answers ON request = id ORDER BY id"
    for number, purpose, n, rows, answers in connection.execute(sql):
        yield number, purpose, _matrix(rows, n), np.frombuffer(answers, np.int32)


def _matrix(blob: bytes, n: int) -> np.ndarray:
    return np.frombuffer(blob, np.float64).reshape(n, -1)


# --- rows and their keys --------------------------------------------------------------------------------------------

# Rows of more columns than this have keys of the upper halves of their numbers.
WIDE = 4
_ODD = np.random.default_rng(0x1ED6E2).integers(2**63, size=4096, dtype=np.uint64) | np.uint64(1)


def _keys(rows: np.ndarray) -> np.ndarray:
    """A number for each row that hardly any other row has."""
    # By halves of a number: the low bits of whole numbers are all zero, and a product would keep them so. Of many
    # numbers the upper halves tell rows apart well enough.
    halves = rows.view(np.uint32)
    if rows.shape[1] > WIDE:
        halves = halves[:, 1::2] if sys.byteorder == "little" else halves[:, ::2]
    odd = np.resize(_ODD, halves.shape[1])
    return np.einsum("ij,j->i", halves, odd, dtype=np.uint64, casting="safe")


def _first_of_each(rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """For every row the position of the first that is the same."""
    first, ordered = np.arange(len(rows)), np.sort(keys)
    if (ordered[1:] == ordered[:-1]).any():
        seen: dict[bytes, int] = {}
        for at, row in enumerate(rows):
            first[at] = seen.setdefault(row.tobytes(), at)
    return first


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Turn what SQLite says into an error of ours."""
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError, ValueError, TypeError, OSError) as error:
        hint = "restore it from a backup, or start again in another directory"
        raise DirectoryError(str(path), "a ledger that can be read and written", str(error), hint) from error
