"""Argument checks: an error names the argument, what was expected and what was found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

from ectype.errors import SettingError


def choice(name: str, value: object, known: tuple[str, ...]) -> str:
    """One of the known words."""
    if not isinstance(value, str) or value not in known:
        raise SettingError(name, "one of " + ", ".join(map(repr, known)), repr(value))
    return value


def count(name: str, value: object, least: int, most: int = 2**62) -> int:
    """A whole number."""
    found = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if found is None or not least <= found <= most:
        limit = "" if most == 2**62 else f" and at most {most}"
        raise SettingError(name, f"a whole number of at least {least}{limit}", repr(value))
    return found


def number(name: str, value: object, expected: str, low: float, high: float) -> float:
    """A number from low to below high."""
    try:
        found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except (OverflowError, TypeError):
        found = math.nan
    if not low <= found < high:
        raise SettingError(name, expected, repr(value))
    return found


def numerals(values: Iterable[object]) -> None:
    """Refuse text that only Python takes for a number: with `_` between digits, or with digits of other scripts.

    >>> numerals(["1", "-2.5e3", 4])
    >>> numerals(["1_000"])
    Traceback (most recent call last):
        ...
    ValueError: not a number: '1_000'
    """
    for value in values:
        if isinstance(value, (str, bytes)):
            text = value if isinstance(value, str) else value.decode("latin-1")
            if "_" in text or not text.isascii():
                raise ValueError(f"not a number: {text[:60]!r}")


def flag(name: str, value: object) -> bool:
    """True or False; values that are merely truthy are refused."""
    if not isinstance(value, bool):
        raise SettingError(name, "True or False", repr(value))
    return value


def fraction(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    return number(name, value, "a number between 0 and 1", math.nextafter(0, 1), 1)
