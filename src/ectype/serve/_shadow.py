"""Shadow mode: the original is asked, in the background, what the copy has answered; disagreements are counted."""

from __future__ import annotations

import csv
import logging
import threading
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from prometheus_client import Gauge
from prometheus_client.registry import Collector

from ectype.certificate.bounds import lower_bound
from ectype.errors import OriginalError, OutageError, SettingError
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Labels, Original
from ectype.queries import RowSlice, failing_rows, request_slices
from ectype.serve._metrics import counter, label, total
from ectype.serve._representable import representable, round_trip
from ectype.serve._row_parser import ParsedRows, joined
from ectype.serve._tensors import Cell
from ectype.serve._traffic_log import TrafficLog, TrafficSettings
from ectype.space import Column, Space
from ectype.types import Json, Label, Series, Table

LOG = logging.getLogger(__name__)
# How many pairs of labels are told apart; an original that answers other labels every time must not fill the memory.
PAIRS = 1000
OTHER = "(others)"
# How long the thread may take to notice that its request was given up.
LAST_SECONDS = 1.0
# How long rows that are kept gather before they are asked, in seconds: each request is a transaction on disk. Nothing
# that was paid for waits meanwhile.
GATHER = 0.05


class Shadow:
    """Asks the original about rows that the copy has answered, on a thread of its own.

    `offer` takes at most `most_rows` waiting rows, drops those beyond, and never waits. `opened` opens the original; it
    is opened anew after `pause` seconds when it was out, since one that was out is not asked again. What it answers is
    kept for later, if `keep` says so.
    """

    def __init__(
        self,
        opened: Callable[[], Original],
        copy: CopyClassifier,
        *,
        log: Path | None = None,
        most_rows: int = 10_000,
        pause: float = 5.0,
        keep: TrafficSettings | None = None,
    ):
        self._opened, self._copy, self._labels = opened, copy, Labels(copy.classes)
        self._original = opened()
        self._most_rows, self._pause = most_rows, pause
        self._log = None if log is None else _Log(log, copy.space.names)
        self._kept = None if keep is None else TrafficLog(keep, self._original, copy.space)
        self._queue: deque[tuple[ParsedRows, np.ndarray]] = deque()
        self._waiting, self._under_way, self._lock = 0, 0, threading.Condition()
        self._stopping = threading.Event()
        self._pairs: Tally[tuple[Label, Label]] = Tally()
        self.compared = self.disagreed = 0
        self.asked = counter("ectype_shadow_rows_total", "Rows that the original was asked about.")
        self.disagreements = counter(
            "ectype_shadow_disagreements_total", "Rows answered otherwise by the original.", ("original", "copy")
        )
        self.failed = counter("ectype_shadow_failed_rows_total", "Rows that the original gave no answer for.")
        self.dropped = counter("ectype_shadow_dropped_rows_total", "Rows never asked, since too many waited.")
        waiting = Gauge("ectype_shadow_waiting_rows", "Rows that wait to be asked.", registry=None)
        waiting.set_function(lambda: self._waiting)
        self.families: list[Collector] = [self.asked, self.disagreements, self.failed, self.dropped, waiting]
        self.families += [] if self._kept is None else [self._kept]
        self._thread = threading.Thread(target=self._run, name="ectype-shadow", daemon=True)
        self._thread.start()

    def offer(self, rows: ParsedRows, codes: np.ndarray) -> None:
        """Compare these answers of the copy with the original's, as soon as it can be asked."""
        with self._lock:
            full = self._stopping.is_set() or self._waiting + len(rows) > self._most_rows
            if not full:
                self._queue.append((rows, codes))
                self._waiting += len(rows)
                self._lock.notify_all()
        if full:
            self.dropped.inc(len(rows))

    def summary(self) -> Json:
        """What came of it so far: rows compared and disagreements, and the fidelity that they show."""
        with self._lock:
            n, disagreed, waiting = self.compared, self.disagreed, self._waiting
            pairs = [{"original": a, "copy": b, "rows": rows} for (a, b), rows in self._pairs.most_common()]
        return {
            "original": self._original.name,
            "rows": n,
            "disagreements": disagreed,
            "fidelity": None if n == 0 else {"estimate": 1 - disagreed / n, "lower": lower_bound(n - disagreed, n)},
            "confidence": 0.95,
            "pairs": pairs,
            "failed": int(total(self.failed)),
            "dropped": int(total(self.dropped)),
            "waiting": waiting,
            **({} if self._kept is None else {"keep": self._kept.summary()}),
        }

    def settled(self, seconds: float) -> bool:
        """Wait until no row waits any more, for so many seconds at most; whether that came."""
        with self._lock:
            return self._lock.wait_for(lambda: self._waiting == 0, seconds)

    def stop(self, seconds: float) -> None:
        """Give up the rows that wait, and, after so many seconds, the request that is under way."""
        with self._lock:
            self._stopping.set()
            self.dropped.inc(self._waiting - self._under_way)
            self._queue.clear()
            self._waiting = self._under_way
            self._lock.notify_all()
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._original.stop()
            self._thread.join(LAST_SECONDS)
        if self._log is not None:
            self._log.close()
        if self._kept is not None:
            self._kept.close()

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._compare(*batch)
            except OutageError as error:
                LOG.warning("shadow: %s", error)
                if not self._stopping.wait(self._pause):
                    self._reopen()

    def _reopen(self) -> None:
        try:
            self._original = self._opened()
            if self._kept is not None:
                self._kept.compare(self._original)
        except Exception:  # the thread goes on: the original may come back
            LOG.exception("shadow: the original could not be opened again")

    def _next(self) -> tuple[ParsedRows, np.ndarray] | None:
        """The rows to ask next, as many as fit into a request; None at the end."""
        with self._lock:
            self._waiting -= self._under_way
            self._under_way = 0
            self._lock.notify_all()
            self._lock.wait_for(lambda: self._queue or self._stopping.is_set())
            if self._kept is not None:
                self._lock.wait_for(self._is_enough, GATHER)
            if not self._queue:
                return None
            taken = [self._queue.popleft()]
            self._under_way = len(taken[0][0])
            while self._queue and self._under_way + len(self._queue[0][0]) <= self._original.request_rows:
                taken.append(self._queue.popleft())
                self._under_way += len(taken[-1][0])
        return joined([rows for rows, _ in taken]), np.concatenate([codes for _, codes in taken])

    def _is_enough(self) -> bool:
        return self._stopping.is_set() or self._waiting >= self._original.request_rows

    def _compare(self, rows: ParsedRows, codes: np.ndarray) -> None:
        """Ask in requests of the size that the original takes."""
        before = self._settled
        try:
            for part in request_slices(len(rows), self._original.request_rows):
                self._ask(rows, codes, part)
        except OutageError:
            self.failed.inc(len(rows) - (self._settled - before))
            raise

    @property
    def _settled(self) -> float:
        """How many rows were compared, or failed."""
        return self.compared + total(self.failed)

    def _ask(self, rows: ParsedRows, codes: np.ndarray, part: RowSlice) -> None:
        """One request; one that fails is halved, so that no row is the reason that others have no answer."""
        put = partial(self._put, rows, codes)
        if failed := put(part):
            for _, error in failing_rows(part, failed, put):
                LOG.warning("shadow: %s", error)
                self.failed.inc()

    def _put(self, rows: ParsedRows, codes: np.ndarray, part: RowSlice) -> OriginalError | None:
        """Ask once and compare; gives the original's error, if it failed."""
        asked = rows.part(part)
        self.asked.inc(len(asked))
        try:
            answers = self._original.answer(presented(asked, self._copy.space))
        except OriginalError as error:
            return error
        except Exception:
            LOG.exception("shadow: %d rows could not be asked", len(asked))
            self.failed.inc(len(asked))
            return None
        self._count(asked, codes[part], answers)
        if self._kept is not None:
            self._kept.add(asked.matrix, representable(asked, self._copy.space), answers)
        return None

    def _count(self, rows: ParsedRows, codes: np.ndarray, answers: np.ndarray) -> None:
        wrong = np.flatnonzero(self._labels.find(answers) != codes)
        pairs = list(zip(answers[wrong].tolist(), self._copy.classes[codes[wrong]].tolist(), strict=True))
        with self._lock:
            self.compared += len(rows)
            self.disagreed += len(wrong)
            for theirs, ours in pairs:
                pair = (theirs, ours)
                if pair not in self._pairs and len(self._pairs) >= PAIRS:
                    pair = (OTHER, OTHER)
                self._pairs[pair] += 1
                self.disagreements.labels(*map(label, pair)).inc()
        if self._log is not None:
            rows_of = ([column[i] for column in rows.cells] for i in wrong)
            self._log.write([[*row, *pair] for row, pair in zip(rows_of, pairs, strict=True)])


def presented(rows: ParsedRows, space: Space) -> Table:
    """Rows as the original takes them in production."""
    if not space.frame:
        return rows.matrix.copy()
    import pandas as pd

    columns = enumerate(space.columns)
    return pd.DataFrame({c.name: _series(c, rows.matrix[:, j], rows.cells[j]) for j, c in columns})


def _series(column: Column, numbers: np.ndarray, cells: list[Cell]) -> Series:
    """A column in its type of production; as it came, if that type cannot say it, as with an unknown level."""
    import pandas as pd

    series = round_trip(column, numbers)
    return pd.Series(cells, dtype=object).infer_objects() if series is None else series


class _Log:
    """A CSV file that rows are appended to, under one header."""

    def __init__(self, path: Path, names: tuple[str, ...]):
        self.path = path
        answers = [name + "_" * (name in names) for name in ("original", "copy")]
        header = [*names, *answers]
        try:
            with open(path, "a+", newline="", encoding="utf-8") as file:
                file.seek(0)
                found = next(csv.reader(file), None)
            if found is not None and found != header:
                raise SettingError("--shadow-log", f"a new file, or one with the columns {header}", found[:8])
            self._file = open(path, "a", newline="", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        except (OSError, UnicodeError, csv.Error) as error:
            raise SettingError("--shadow-log", "a CSV file that can be written", str(error)) from error
        self._writer = csv.writer(self._file)
        if found is None:
            self._writer.writerow(header)
            self._file.flush()

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def write(self, lines: list[list[Cell]]) -> None:
        """Append these lines; a disk that is full is no reason to stop comparing."""
        try:
            self._writer.writerows(lines)
            self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: it was closed
            LOG.error("shadow: %s could not be written: %s", self.path, error)
