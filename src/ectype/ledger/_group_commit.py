"""Group commit: write to a ledger in a thread, while the original computes its answers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread

from ectype._common.manifest import Anchor
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._connections import connect
from ectype.ledger._hash_chain import Row, Value

# How long the writer lets statements gather before it commits them together, in seconds: until whoever asks is at the
# next request, so that writing falls into the time of the original. Commits soon after each other are short, and a
# short one makes the original late for little where both share a core.
GATHER = 0.0001


@dataclass(slots=True, eq=False)
class Statement:
    """Rows to be written in one transaction, each with its table, and whether they have reached the disk."""

    rows: tuple[Row, ...]
    written: bool = False


class GroupCommit:
    """Group commit: a thread of its own writes, in one transaction, what gathered while the last one was written.

    `last` is how far the ledger's chain is.
    """

    def __init__(self, path: Path, last: Anchor):
        self._queue: SimpleQueue[Statement | None] = SimpleQueue()
        self._connection, self._last, self._head = connect(path), last, hash_chain.Head(path, last)
        self._hurry, self._progress = Event(), Condition()
        self._failure: BaseException | None = None  # after one nothing more is written: it would leave gaps
        self._thread = Thread(target=self._run, name="ectype-ledger", daemon=True)
        self._thread.start()

    def put(self, table: str, *values: Value) -> Statement:
        """Hand over a row of a table, its key first; SQLite chooses the key where it is None."""
        return self.together((table, values))

    def together(self, *rows: Row) -> Statement:
        """Hand over rows of several tables of which the file is to have all or none."""
        statement = Statement(rows)
        self._queue.put(statement)
        return statement

    def settle(self) -> None:
        """Wait until everything handed over has reached the disk."""
        self.wait(self.together())

    def mend(self) -> None:
        """Go on writing after a failure. The caller knows that no gap is left, and that no statement waits."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._last, self._failure = hash_chain.last(self._connection), None

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
        try:
            self._connection.close()
        finally:
            self._head.close()

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
            rows = [row for statement in statements for row in statement.rows]
            if rows:
                self._connection.execute("BEGIN IMMEDIATE")
                now = hash_chain.write(self._connection, rows, self._last)
                self._connection.execute("COMMIT")
                self._head.say(now)
                self._last = now
        except BaseException as error:
            failure = error
        with self._progress:
            self._failure = failure
            for statement in statements:
                statement.written = failure is None
            self._progress.notify_all()
