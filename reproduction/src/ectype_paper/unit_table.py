"""The compact table of units: what goes into it, and how it is read again.

It has a row for each way to copy a problem, with what was measured of its repetitions one after the other, and without
what was measured by iteration.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ectype._common.atomic_io import as_path, atomic_file
from ectype.errors import DirectoryError, SettingError
from ectype_paper.store import read_store, unit_of
from ectype_paper.units import Record, Unit

HINT = "`ectype paper export` writes such a table"


def merged(stores: Sequence[str | Path]) -> list[Record]:
    """The records of several stores, of the same settings and the same data; a unit is taken from the first.

    One that is a file is a table of an earlier export.
    """
    found: dict[Unit, Record] = {}
    first: dict[str, Any] = {}
    data: dict[str, str] = {}
    for folder in stores:
        if as_path(folder).is_file():
            for record in read_table(folder):
                found.setdefault(unit_of(record), record)
            continue
        settings, records = read_store(folder)
        first = first or settings
        keys = [key for key in sorted({*first, *settings}) if first.get(key) != settings.get(key)]
        if keys:
            other = ", ".join(f"{key} {settings.get(key)!r} (not {first.get(key)!r})" for key in keys)
            raise DirectoryError(str(folder), f"the settings of {stores[0]}", other, "export them apart")
        for record in records:
            if data.setdefault(record["problem"], record["data"]) != record["data"]:
                raise DirectoryError(str(folder), "the data of the other stores", f"another {record['problem']}")
            found.setdefault(unit_of(record), {"engine": settings.get("engine", "unknown"), **record})
    return list(found.values())


def export(records: Sequence[Record], path: Path) -> Path:
    """Write units as a compact table, in order; the file appears whole."""
    ways: dict[tuple[str, ...], list[Record]] = {}
    for record in sorted(records, key=_order):
        ways.setdefault(tuple(_cell(record, name) for name in SAME), []).append(record)
    with atomic_file(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*SAME, *EACH])
        for shared, those in ways.items():
            writer.writerow([*shared, *(" ".join(_cell(one, name) for one in those).strip() for name in EACH)])
    return path


def read_table(path: str | Path) -> list[Record]:
    """The records of a table that `export` wrote; of the points kept, the last count is there and no other."""
    path = as_path(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            _check_header(path, reader.fieldnames)
            found = [(reader.line_num, one) for row in reader for one in _records(path, reader.line_num, row)]
    except (OSError, UnicodeError, csv.Error) as error:
        raise SettingError(str(path), "a table of units", str(error), HINT) from error
    seen: dict[Unit, int] = {}
    for line, record in found:
        unit = unit_of(record)
        if unit in seen:
            raise SettingError(f"{path}, line {line}", "every unit once", f"the unit of line {seen[unit]} again")
        seen[unit] = line
    return [record for _, record in found]


def known(path: str | Path, engine: str) -> set[Unit]:
    """The units of a table that this engine trained."""
    return {unit_of(record) for record in read_table(path) if record["engine"] == engine}


def take(path: str | Path, units: Sequence[Unit]) -> list[Record]:
    """The records of these units, in this order; if some are not in the table, an error that says which."""
    there = {unit_of(record): record for record in read_table(path)}
    missing = Counter(unit.problem for unit in units if unit not in there)
    if missing:
        wanted = Counter(unit.problem for unit in units)
        names = sorted(missing, key=lambda name: (-missing[name], name))
        parts = [f"{missing[name]} of {wanted[name]} for {name}" for name in names[:4]]
        more = f", and some for {len(names) - 4} other problems" if len(names) > 4 else ""
        hint = "lower --runs, choose --problems, --deltas or --space that are there, or run the sweep to its end"
        raise SettingError(str(path), f"{len(units)} units", f"some missing: {', '.join(parts)}{more}", hint)
    return [there[unit] for unit in units]


def _text(cell: str) -> str:
    if not cell:
        raise ValueError("nothing")
    return cell


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


def _or_none(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda cell: None if cell == "" else parse(cell)


def _memory(cell: str) -> str | float:
    try:
        return _number(cell)
    except ValueError:
        return _text(cell)


def _kept(cell: str) -> list[int]:
    return [int(cell)]


# What a column holds, and how to read it. The first are the same in all repetitions of a way to copy; the others have a
# number for each repetition, with spaces between them, or nothing at all.
SAME: dict[str, tuple[str, Callable[[str], Any]]] = {
    "problem": ("a name", _text),
    "space": ("a name", _text),
    "method": ("a name", _text),
    "delta": ("a number or nothing", _or_none(_number)),
    "memory": ("a word or a number", _memory),
    "points": ("a whole number or nothing", _or_none(int)),
    "iterations": ("a whole number or nothing", _or_none(int)),
    "training": ("a name", _text),
    "queries": ("a whole number", int),
    "original_accuracy": ("a number", _number),
    "family": ("a name or nothing", str),
    "source": ("a name or nothing", str),
    "engine": ("a name or nothing", str),
}
EACH: dict[str, tuple[str, Callable[[str], Any]]] = {
    "repetition": ("a whole number", int),
    "accuracy": ("a number", _number),
    "fidelity": ("a number", _number),
    "fidelity_fresh": ("a number", _number),
    "conv": ("a number", _number),
    "eff": ("a number", _number),
    "kept": ("a whole number", _kept),
    "seconds": ("a number", _number),
    "cpu": ("a number", _number),
}
# Empty for a single pass, which has one round, and where nobody measured CPU seconds.
MAY_BE_EMPTY = ("conv", "eff", "cpu")
SECONDS = ("seconds", "cpu")
# Shares of test rows have as many places as tell equal differences from others; the rest has as many as are looked at.
PLACES = {"accuracy": 6, "fidelity": 6}


def _cell(record: Record, name: str) -> str:
    """What a record has in a column; a part of the unit that came to be after it was written is as it was then."""
    value = record.get(name) if name in record else getattr(unit_of(record), name, None)
    if name == "kept":
        return str(record["kept"][-1])
    if isinstance(value, float) and name in EACH:
        return f"{value:.3g}" if name in SECONDS else _shortest(value, PLACES.get(name, 4))
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _shortest(share: float, places: int) -> str:
    """A share without zeros that say nothing.

    >>> _shortest(0.5, 4), _shortest(1.0, 4), _shortest(0.91666, 4), _shortest(0.0, 4)
    ('.5', '1', '.9167', '0')
    """
    text = f"{share:.{places}f}".rstrip("0").rstrip(".")
    return text[1:] if text.startswith("0.") else text


def _order(record: Record) -> tuple[Any, ...]:
    unit = unit_of(record)
    way = unit.problem, unit.space, unit.method, -(unit.delta or 0), str(unit.memory)
    return *way, unit.points or 0, unit.iterations or 0, unit.training, unit.repetition


def _check_header(path: Path, header: Sequence[str] | None) -> None:
    columns = [*SAME, *EACH]
    missing = [name for name in columns if name not in (header or ())]
    if missing:
        raise SettingError(f"{path}, line 1", f"the columns {', '.join(columns)}", f"no {', '.join(missing)}", HINT)


def _records(path: Path, line: int, row: dict[str, Any]) -> list[Record]:
    """The records of a row: one for each repetition."""
    if None in row or None in row.values():
        raise SettingError(f"{path}, line {line}", f"{len(row) - (None in row)} cells", "another number of them", HINT)
    shared = {name: _parsed(path, line, name, row[name], *about) for name, about in SAME.items()}
    runs = len(row["repetition"].split())
    parts = {name: row[name].split() or [None] * runs * (name in MAY_BE_EMPTY) for name in EACH}
    for name, cells in parts.items():
        if len(cells) != runs or not runs:
            raise SettingError(f"{path}, line {line}, {name}", f"{max(runs, 1)} numbers", len(cells), HINT)
    return [
        {**shared}
        | {
            name: None if cells[k] is None else _parsed(path, line, name, str(cells[k]), *EACH[name])
            for name, cells in parts.items()
        }
        for k in range(runs)
    ]


def _parsed(path: Path, line: int, name: str, cell: str, expected: str, parse: Callable[[str], Any]) -> object:
    try:
        return parse(cell)
    except ValueError as error:
        raise SettingError(f"{path}, line {line}, {name}", expected, repr(cell)) from error
