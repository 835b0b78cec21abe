"""Which rows go into a request, and which of them it fails for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from understudy.errors import OriginalError, OutageError

Part = slice
"""Which rows go into one request."""


def parts(n: int, size: int) -> list[Part]:
    """n rows in requests of at most `size`.

    >>> parts(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(at, min(at + size, n)) for at in range(0, n, size)]


def failing_rows(
    part: Part, first: OriginalError, ask: Callable[[Part], OriginalError | None]
) -> Iterator[tuple[Part, OriginalError]]:
    """Bisect a request that failed: each row that fails alone, with its error. `ask` gives a half's error, if any.

    Both halves are asked before either is halved again. An outage is raised: no row is to blame for it.

    >>> broken = OriginalError("the original", "a label", "nothing")
    >>> found = failing_rows(slice(0, 8), broken, lambda part: broken if 5 in range(8)[part] else None)
    >>> [row for row, _ in found]
    [slice(5, 6, None)]
    """
    suspects = [(part, first)]
    while suspects:
        suspect, error = suspects.pop()
        if isinstance(error, OutageError):
            raise error
        if suspect.stop - suspect.start == 1:
            yield suspect, error
            continue
        middle = (suspect.start + suspect.stop) // 2
        for half in (slice(middle, suspect.stop), slice(suspect.start, middle)):
            if again := ask(half):
                suspects.append((half, again))
