"""Real traffic kept for later: rows that were asked beside the copy, with the original's answers, in a ledger.

The directory is that of a run that was never finished: `space.json` and `ledger.sqlite`, whose settings say that it is
kept traffic, of which original, and which columns are not as they came. All of it happens on the shadow's thread, which
waits until rows are on disk: what was counted as kept is there, and no more is in memory than the shadow lets wait.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ectype._common.atomic_io import as_path, directory_errors, make_folder, missing_folders, remove_empty, write_text
from ectype._common.manifest import RUN
from ectype.errors import DirectoryError, IntegrityError, OriginalError, WriteError
from ectype.ledger import BESIDE_LEDGER, LEDGER, Ledger, Purpose
from ectype.original import Original
from ectype.original.fingerprint import identity_of
from ectype.runs.directory import finished, open_run, refuse_differences
from ectype.serve._masking import Masking
from ectype.serve._settings import ServiceSettings
from ectype.space import Space
from ectype.types import Json

LOG = logging.getLogger(__name__)
SPACE = "space.json"
DAY = 86_400
# Seconds until a disk that could not be written is tried again.
PAUSE = 30.0
# What becomes of rows that the original answered: kept, or the reason that they are not.
KEPT, BEYOND_ROWS, BEYOND_DAYS, UNSAYABLE, UNWRITTEN = "kept", "row_limit", "day_limit", "unsayable", "unwritten"
OUTCOMES = (KEPT, BEYOND_ROWS, BEYOND_DAYS, UNSAYABLE, UNWRITTEN)
LIMITS = {BEYOND_ROWS: "there are as many as --keep-rows allows", BEYOND_DAYS: "the time of --keep-days is over"}
# What the system says of a disk that only needs room, or somebody's permission; all else is no directory for this.
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class TrafficLog:
    """A directory of real traffic that is written to; one that is there already goes on, if all about it is the same.

    A directory of another original, space or choice of columns, one that somebody else writes to, and a damaged one are
    refused. A disk that cannot be written is a warning, and rows are counted as unwritten until it can.
    """

    def __init__(self, settings: ServiceSettings, original: Original, space: Space, pause: float = PAUSE):
        self._directory, self._most_rows, self._days = as_path(settings.traffic), settings.keep_rows, settings.keep_days
        self._pause, self._masking = pause, Masking(space, settings.keep_without, settings.keep_masked)
        dropped: Json = {"dropped": self._masking.dropped}
        dropped |= {"masked": self._masking.masked} if settings.keep_masked else {}
        self.settings: Json = {**identity_of(original), "space": space.digest, "kept": Purpose.TRAFFIC, **dropped}
        self._lock, self._open, self._told = threading.Lock(), ExitStack(), set[str]()
        self._ledger: Ledger | None = None
        self._failing, self._again = False, 0.0  # whether the last rows were not written; when to try once more
        self._outcomes, self._repeated = dict.fromkeys(OUTCOMES, 0), 0
        self.rows = self.bytes = 0
        self._begun: float | None = None
        self._made: list[Path] = []  # folders that were not there
        self._begin(space)

    def summary(self) -> Json:
        """The size of the directory, and the outcomes of the rows that the original answered since the start."""
        held = {"rows": self.rows, "bytes": self.bytes, "failing": self._failing}
        return {**held, "outcomes": dict(self._outcomes), "repeated": self._repeated}

    def collect(self) -> Iterable[Metric]:
        """The same, as Prometheus has it."""
        about = "Rows that the original answered, by whether they were kept."
        outcomes = CounterMetricFamily("ectype_keep_rows", about, labels=("outcome",))
        for outcome, rows in self._outcomes.items():
            outcomes.add_metric((outcome,), rows)
        again = "Kept rows that had been kept before."
        yield from (outcomes, CounterMetricFamily("ectype_keep_repeated_rows", again, value=self._repeated))
        yield GaugeMetricFamily("ectype_kept_rows", "Rows in the directory of kept traffic.", value=self.rows)
        yield GaugeMetricFamily("ectype_kept_bytes", "What its files take on disk.", value=self.bytes)
        failing = "Whether rows cannot be written."
        yield GaugeMetricFamily("ectype_keep_failing", failing, value=float(self._failing))

    def add(self, rows: np.ndarray, said: np.ndarray, labels: np.ndarray) -> None:
        """Keep rows of the space's matrix with the original's answers; `said` are those that the space can say."""
        with self._lock:
            self._leave(UNSAYABLE, int((~said).sum()))
            rows, labels = rows[said], labels[said]
            room, reason = self._room()
            self._leave(reason, len(rows) - room)
            if room and len(rows):
                self._write(rows[:room], labels[:room])

    def compare(self, original: Original) -> None:
        """Keep no more if an original that was opened again is another one by now."""
        with self._lock:
            try:
                refuse_differences(self._directory, self.settings, {**self.settings, **identity_of(original)})
            except DirectoryError as error:
                self._fail(error, again=float("inf"))

    def close(self) -> None:
        """Keep no more, and close the ledger; a directory without a row is removed again."""
        with self._lock:
            ledger, self._ledger = self._ledger, None
            if ledger is not None and ledger.empty:
                (self._directory / SPACE).unlink(missing_ok=True)
            try:
                self._open.close()
            except DirectoryError as error:  # the log could not be emptied into the file; it has the rows
                LOG.warning("keeping: %s", error)
            remove_empty(self._made)

    def _begin(self, space: Space) -> None:
        directory = self._directory
        try:
            with directory_errors(directory):
                if finished(directory):
                    expected = "a directory for kept traffic alone"
                    raise DirectoryError(str(directory), expected, f"a {RUN}", "choose another directory")
                self._made = missing_folders(directory)
                make_folder(directory, 0o700)  # rows of real people may be in it
            self._ledger = self._open.enter_context(open_run(directory, self.settings, space))
            self._begun = self._ledger.begun
            write_text(directory / SPACE, space.to_json() + "\n")
            self._measure(self._ledger)
        except DirectoryError as error:
            self._ledger = None
            self._open.close()
            remove_empty(self._made)
            if not _unwritable(error):
                raise
            self._fail(error, again=float("inf"))

    def _room(self) -> tuple[int, str]:
        """The number of rows that may still be kept, and the reason that others may not."""
        if self._ledger is None or time.monotonic() < self._again:
            return 0, UNWRITTEN
        if self._begun is not None and time.time() - self._begun > DAY * self._days:
            return 0, BEYOND_DAYS
        return max(self._most_rows - self.rows, 0), BEYOND_ROWS

    def _leave(self, reason: str, rows: int) -> None:
        """Count rows that are not kept; that a limit is reached is said once."""
        if rows <= 0:
            return
        self._outcomes[reason] += rows
        if reason in LIMITS and reason not in self._told:
            self._told.add(reason)
            LOG.warning("keeping: %s: no more rows are kept: %s", self._directory, LIMITS[reason])

    def _write(self, rows: np.ndarray, labels: np.ndarray) -> None:
        assert self._ledger is not None
        try:
            if self._failing:
                self._ledger.mend()
            self._repeated += self._ledger.record(self._masking(rows), labels, Purpose.TRAFFIC)
            self._outcomes[KEPT], self._begun = self._outcomes[KEPT] + len(rows), self._begun or time.time()
            self._measure(self._ledger)
        except OriginalError:  # labels of another type than those before, which no ledger holds together
            self._leave(UNSAYABLE, len(rows))
        except DirectoryError as error:
            self._fail(error, time.monotonic() + self._pause)
            self._leave(UNWRITTEN, len(rows))

    def _measure(self, ledger: Ledger) -> None:
        """Take note of what is on disk; here, since whoever asks for metrics must not wait for a disk."""
        if self._failing:
            LOG.warning("keeping: %s: rows are kept again", self._directory)
        self._failing, self.rows = False, ledger.counts.answered
        names, self.bytes = (SPACE, *(f"{LEDGER}{suffix}" for suffix in ("", *BESIDE_LEDGER))), 0
        for name in names:
            with suppress(OSError):  # such as one that is not there
                self.bytes += (self._directory / name).stat().st_size

    def _fail(self, error: DirectoryError, again: float) -> None:
        if not self._failing:
            LOG.warning("keeping: no rows are kept, the copy goes on answering: %s", error)
        self._failing, self._again = True, again


def _unwritable(error: DirectoryError) -> bool:
    """Whether the disk is to blame, rather than what is in the directory."""
    cause = error.__cause__
    if isinstance(error, IntegrityError):
        return False
    by_code = isinstance(cause, OSError) and cause.errno in _UNWRITABLE
    return isinstance(error, WriteError) or by_code or isinstance(cause, sqlite3.OperationalError)
