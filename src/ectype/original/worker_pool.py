"""A heavy original in Python, asked on several workers at once.

Every request is cut into parts, which workers answer, and put together again in order: whoever asks, and the ledger,
sees one request after the other, exactly as without workers.
"""

from __future__ import annotations

import atexit
import itertools
import sys
import threading
from concurrent.futures import BrokenExecutor, Future
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ectype.errors import OriginalError
from ectype.original.base import Original
from ectype.types import Table

if TYPE_CHECKING:
    from ectype.workers import Engine

# Parts of a request for each worker: rows may take unlike times.
PARTS = 4


class OriginalReference(NamedTuple):
    """A reference by which a worker opens the original itself."""

    spec: str
    classes: tuple[Any, ...] | None
    reading: tuple[tuple[str, Any], ...]
    paths: tuple[str, ...]
    """Where modules are found."""


class WorkerPool:
    """Workers that answer for an original; they are started with the first question, and end with this process."""

    def __init__(self, named: OriginalReference, engine: Engine):
        self._named, self._engine = named, engine
        self._started, self._lock = False, threading.Lock()

    def predict(self, rows: Table) -> object:
        """The original's answers."""
        return _joined(self._answers("predict", rows))

    def predict_with_scores(self, rows: Table) -> tuple[object, object]:
        """Its labels and its scores."""
        labels, scores = zip(*self._answers("predict_with_scores", rows), strict=True)
        return _joined(labels), _joined(scores)

    def _answers(self, what: str, rows: Table) -> list[Any]:
        engine = self._started_engine()
        cuts = np.linspace(0, len(rows), 1 + min(len(rows), PARTS * engine.slots)).astype(int)
        asked: list[tuple[int, Future[Any]]] = []
        for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
            slot = i % engine.slots
            asked.append((slot, engine.submit(slot, answer, self._named, what, rows[start:stop])))
        return [self._settled(slot, future) for slot, future in asked]

    def _settled(self, slot: int, future: Future[Any]) -> Any:
        try:
            return future.result()
        except BrokenExecutor as error:
            self._engine.renew(slot)
            hint = "see what ends it: its memory, or a crash of the original"
            raise OriginalError(self._named.spec, "a worker that answers", "one that has died", hint) from error

    def _started_engine(self) -> Engine:
        with self._lock:
            if not self._started:
                atexit.register(self._engine.__exit__)
                self._engine.__enter__()
                self._started = True
        return self._engine


def with_workers(original: Original, named: OriginalReference, engine: Engine) -> Original:
    """The same original, whose questions are answered by workers."""
    pool, other = WorkerPool(named, engine), original.replace()
    other.predict = pool.predict
    other.predict_with_scores = None if original.predict_with_scores is None else pool.predict_with_scores
    return other


def answer(named: OriginalReference, what: str, rows: Table) -> object:
    """In a worker: the original's answers to these rows."""
    return getattr(_opened(named), what)(rows)


@lru_cache(maxsize=4)
def _opened(named: OriginalReference) -> Original:
    from ectype.original.python import open_python

    sys.path.extend(path for path in named.paths if path not in sys.path and Path(path).exists())
    return open_python(named.spec, named.classes, **dict(named.reading))


def _joined(parts: Any) -> object:
    """Answers to parts of the rows as one; what has no common form is left for the checks to refuse."""
    given = [part if isinstance(part, (list, tuple)) else np.asarray(part) for part in parts]
    arrays = [part for part in given if isinstance(part, np.ndarray)]
    if len(arrays) == len(given) and len({array.dtype.kind for array in arrays}) == 1:
        return np.concatenate(arrays)
    return [label for part in given for label in (part.tolist() if isinstance(part, np.ndarray) else part)]
