"""Split rows into requests, and find the rows that a request fails for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ectype.errors import OriginalError, OutageError

RowSlice = slice
"""The places of the rows of one request."""


def request_slices(n: int, size: int, start: int = 0) -> list[RowSlice]:
    """n rows, from some on, in requests of at most `size`.

    >>> request_slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(at, min(at + size, n)) for at in range(start, n, size)]


def failing_rows(
    part: RowSlice, first: OriginalError, ask: Callable[[RowSlice], OriginalError | None]
) -> Iterator[tuple[RowSlice, OriginalError]]:
    """Bisect a request that failed: each row that fails alone, with its error. `ask` gives a half's error, if any.

    Where the first half is answered, the second is to blame, and is not asked as a whole again: to find one row takes
    as many rows as the request has. An outage is raised: no row is to blame for it.

    >>> broken, asked = OriginalError("the original", "a label", "nothing"), []
    >>> ask = lambda part: asked.append(part.stop - part.start) or (broken if 5 in range(8)[part] else None)
    >>> [row for row, _ in failing_rows(slice(0, 8), broken, ask)], asked
    ([slice(5, 6, None)], [4, 2, 1, 1, 2])
    """
    suspects: list[tuple[RowSlice, OriginalError | None]] = [(part, first)]  # without an error: not asked by itself yet
    while suspects:
        suspect, error = suspects.pop()
        if error is None and (error := ask(suspect)) is None:
            continue
        if isinstance(error, OutageError):
            raise error
        if suspect.stop - suspect.start == 1:
            yield suspect, error
            continue
        middle = (suspect.start + suspect.stop) // 2
        left, right = slice(suspect.start, middle), slice(middle, suspect.stop)
        again = ask(left)
        blamed = again is None and right.stop - right.start > 1
        suspects.append((right, error if blamed else None))
        suspects += [] if again is None else [(left, again)]
