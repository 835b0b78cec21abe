"""The compact table of units: what goes into it, and how it is read again.

It has a row for each unit, without what was measured by iteration; `store.export` writes it.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from understudy.errors import DirectoryError, SettingError
from understudy.files import as_path
from understudy.paper.store import read_store, unit_of
from understudy.paper.units import Record, Unit

HINT = "`understudy paper export` writes such a table"


def merged(stores: Sequence[str | Path]) -> list[Record]:
    """The records of several stores, of the same settings and the same data; a unit is taken from the first."""
    found: dict[Unit, Record] = {}
    first: dict[str, Any] = {}
    data: dict[str, str] = {}
    for folder in stores:
        settings, records = read_store(folder)
        first = first or settings
        keys = [key for key in sorted({*first, *settings}) if first.get(key) != settings.get(key)]
        if keys:
            other = ", ".join(f"{key} {settings.get(key)!r} (not {first.get(key)!r})" for key in keys)
            raise DirectoryError(str(folder), f"the settings of {stores[0]}", other, "export them apart")
        for record in records:
            if data.setdefault(record["problem"], record["data"]) != record["data"]:
                raise DirectoryError(str(folder), "the data of the other stores", f"another {record['problem']}")
            found.setdefault(unit_of(record), record)
    return list(found.values())


def read_table(path: str | Path) -> list[Record]:
    """The records of a table that `store.export` wrote; of the points kept, the last count is there and no other."""
    path = as_path(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            _check_header(path, reader.fieldnames)
            records = [(reader.line_num, _record(path, reader.line_num, row)) for row in reader]
    except (OSError, UnicodeError, csv.Error) as error:
        raise SettingError(str(path), "a table of units", str(error), HINT) from error
    seen: dict[Unit, int] = {}
    for line, record in records:
        first = seen.setdefault(unit_of(record), line)
        if first != line:
            raise SettingError(f"{path}, line {line}", "every unit once", f"the unit of line {first} again")
    return [record for _, record in records]


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


# Columns that need not be there.
OPTIONAL = ("iterations",)
# What a column holds, and how to read it. Others are taken as text.
COLUMNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "problem": ("a name", _text),
    "space": ("a name", _text),
    "method": ("a name", _text),
    "delta": ("a number or nothing", _or_none(_number)),
    "repetition": ("a whole number", int),
    "memory": ("a word or a number", _memory),
    "points": ("a whole number or nothing", _or_none(int)),
    "iterations": ("a whole number or nothing", _or_none(int)),
    "accuracy": ("a number", _number),
    "fidelity": ("a number", _number),
    "conv": ("a number or nothing", _or_none(_number)),
    "eff": ("a number or nothing", _or_none(_number)),
    "kept": ("a whole number", _kept),
    "fidelity_fresh": ("a number", _number),
    "queries": ("a whole number", int),
    "original_accuracy": ("a number", _number),
    "seconds": ("a number", _number),
}


def _check_header(path: Path, header: Sequence[str] | None) -> None:
    missing = [name for name in COLUMNS if name not in {*(header or ()), *OPTIONAL}]
    if missing:
        raise SettingError(f"{path}, line 1", f"the columns {', '.join(COLUMNS)}", f"no {', '.join(missing)}", HINT)


def _record(path: Path, line: int, row: dict[str, Any]) -> Record:
    if None in row or None in row.values():
        raise SettingError(f"{path}, line {line}", f"{len(row) - (None in row)} cells", "another number of them", HINT)
    return {name: _parsed(path, line, name, cell) for name, cell in row.items()}


def _parsed(path: Path, line: int, name: str, cell: str) -> object:
    if name not in COLUMNS:
        return cell
    expected, parse = COLUMNS[name]
    try:
        return parse(cell)
    except ValueError as error:
        raise SettingError(f"{path}, line {line}, {name}", expected, repr(cell)) from error
