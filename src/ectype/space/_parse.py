"""Parse the argument `--space`: a file, or a short form."""

from __future__ import annotations

from pathlib import Path

from ectype._common import validation
from ectype.errors import SpaceError
from ectype.space._space import Space


def open_space(spec: str) -> Space:
    """The space that a command line names: a space.json, `normal:D`, or `uniform:LOW:HIGH:D`.

    >>> open_space("uniform:-1:1:3").d
    3
    """
    kind, *parts = spec.split(":")
    try:
        if kind in ("normal", "uniform"):
            validation.numerals(parts)
        if kind == "normal" and len(parts) == 1:
            return Space.normal(int(parts[0]))
        if kind == "uniform" and len(parts) == 3:
            return Space.uniform(float(parts[0]), float(parts[1]), int(parts[2]))
    except ValueError as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError("space", "normal:D or uniform:LOW:HIGH:D with numbers", repr(spec)) from error
    if kind in ("normal", "uniform") and not Path(spec).exists():
        raise SpaceError("space", "normal:D or uniform:LOW:HIGH:D", repr(spec))
    return Space.load(spec)
