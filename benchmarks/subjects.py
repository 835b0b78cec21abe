"""What benchmarks copy: an original, its space, and real rows to test on, by the name of a toy or of a UCI problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class Subject(NamedTuple):
    """An original with the space it is asked about, and rows with true labels that it was not fitted to."""

    original: Any
    space: Any
    X_test: Any
    y_test: Any


def subject(name: str, folder: Path) -> Subject:
    """A toy in N(0, 1), or a UCI problem in the space learned from its unlabelled training rows."""
    import ectype as ec
    from ectype.toy_problems import TOYS
    from ectype_paper import load
    from ectype_paper.original_cache import cached_original

    problem = load(None if name in TOYS else folder, name)
    space = ec.Space.normal(problem.d) if name in TOYS else ec.Space.from_data(problem.X_train)
    return Subject(cached_original(problem), space, problem.X_test, problem.y_test)
