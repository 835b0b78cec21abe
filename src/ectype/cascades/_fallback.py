"""Asking the original about the rows that a copy does not answer, and going on where it fails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ectype.errors import OriginalError, OutageError
from ectype.original import Labels, Original
from ectype.queries import RowSlice, request_slices
from ectype.types import Table

# What may happen to rows that need an original which gives no answer: an error, or the copy's own answer, marked.
ERROR, COPY = "error", "copy"
OUTAGES = (ERROR, COPY)
# Who answered a row, as codes and in words: the copy, certified; the original; the copy, since the original was out.
ALONE, ASKED, OUT = 0, 1, 2
BY = np.array(["copy", "original", "outage"])


def ask_fallback(
    original: Original, present: Callable[[RowSlice], Table], n: int, labels: Labels
) -> tuple[list[np.ndarray | None], OriginalError | None]:
    """The original's labels, part by part as large as its requests, None where it failed; and its last error, if any.

    After an outage nothing more is sent. An answer of another type than the copy's labels is a failure.
    """
    found: list[np.ndarray | None] = []
    failed: OriginalError | None = None
    for part in request_slices(n, original.request_rows):
        try:
            found.append(None if isinstance(failed, OutageError) else of_kind(original.answer(present(part)), labels))
        except OriginalError as error:
            failed = error
            found.append(None)
    return found, failed


def of_kind(answers: np.ndarray, labels: Labels) -> np.ndarray:
    """Answers, if they are words where the copy's labels are, and numbers where they are."""
    if (answers.dtype.kind == "U") != (labels.classes.dtype.kind == "U"):
        hint = "ask the original that was copied, and read its answers the same way"
        raise OriginalError("the original's answers", f"labels such as {labels}", repr(answers[0].item()), hint)
    return answers
