"""Writing to a ledger while the original is at work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread
from typing import TypeAlias

from understudy.queries.ledger.file import connect

# How long the writer lets statements gather before it commits them together, in seconds: until whoever asks is at the
# next request, so that writing falls into the time of the original. Commits soon after each other are short, and a
# short one makes the original late for little where both share a core.
GATHER = 0.0001

Value: TypeAlias = int | float | str | bytes | memoryview
"""What SQLite keeps."""


@dataclass(slots=True, eq=False)
class Statement:
    """What is to be written, and whether it has reached the disk."""

    sql: str
    values: tuple[Value, ...]
    written: bool = False


class Writer:
    """Group commit: a thread of its own writes, in one transaction, what gathered while the last one was written."""

    def __init__(self, path: Path):
        self._queue: SimpleQueue[Statement | None] = SimpleQueue()
        self._connection = connect(path)
        self._hurry, self._progress = Event(), Condition()
        self._failure: BaseException | None = None  # after one nothing more is written: it would leave gaps
        self._thread = Thread(target=self._run, name="understudy-ledger", daemon=True)
        self._thread.start()

    def put(self, sql: str, values: tuple[Value, ...] = ()) -> Statement:
        """Hand over a statement."""
        statement = Statement(sql, values)
        self._queue.put(statement)
        return statement

    def settle(self) -> None:
        """Wait until everything handed over has reached the disk."""
        self.wait(self.put("SELECT 1"))

    def wait(self, statement: Statement) -> None:
        """Wait until a statement has reached the disk; the writer need not gather any longer."""
        if statement.written:
            return
        self._hurry.set()
        with self._progress:
            self._progress.wait_for(lambda: statement.written or self._failure is not None)
        if self._failure is not None and not statement.written:
            raise self._failure

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
            if self._failure is None:
                self._commit([statement for statement in gathered if statement is not None])

    def _commit(self, statements: list[Statement]) -> None:
        failure: BaseException | None = None
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in statements:
                self._connection.execute(statement.sql, statement.values)
            self._connection.execute("COMMIT")
        except BaseException as error:
            failure = error
        with self._progress:
            self._failure = failure
            for statement in statements:
                statement.written = failure is None
            self._progress.notify_all()
