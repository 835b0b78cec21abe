"""The results of a sweep: a line of JSON for each finished unit, on disk before the next one is taken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from ectype._common.atomic_io import (
    as_path,
    directory_errors,
    folder_lock,
    make_folder,
    missing_folders,
    remove_empty,
    write_text,
)
from ectype._common.portable import UNFINISHED
from ectype.errors import DirectoryError
from ectype_paper.units import Record, Unit

NAME = "units.jsonl"
FORMAT = 1


class UnitStore:
    """The finished units of a sweep with these settings; one process writes at a time. See `open_store`."""

    def __init__(self, path: Path, records: dict[Unit, Record], descriptor: int):
        self.path, self.records, self._descriptor = path, records, descriptor

    def add(self, record: Record) -> None:
        """Keep a finished unit for good."""
        unit = unit_of(record)
        assert unit not in self.records
        line = (json.dumps(record, allow_nan=False) + "\n").encode()
        with directory_errors(self.path):
            written = os.write(self._descriptor, line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written")
            self.records[unit] = record  # it is there from now on, even if the wait for the disk is interrupted
            os.fsync(self._descriptor)

    def refuse_other_data(self, digests: dict[str, str]) -> None:
        """Make sure that what is finished was measured on the data there is now."""
        for unit, record in self.records.items():
            there = str(record["data"])
            now = digests.get(unit.problem, there)
            if there != now:
                found = f"{unit.problem} with the hash {there[:12]} (now {now[:12]})"
                hint = "choose another directory, or use the same data"
                raise DirectoryError(str(self.path), "units of the same data", found, hint)


@contextmanager
def open_store(folder: str | Path, settings: dict[str, Any]) -> Iterator[UnitStore]:
    """A store to add to: new, or one that was made with the same settings, without a line that was never finished.

    Where nothing was ever finished, nothing is left behind.
    """
    path = as_path(folder) / NAME
    missing = missing_folders(path.parent)
    with directory_errors(path.parent):
        make_folder(path.parent)
    with ExitStack() as last:
        last.callback(remove_empty, missing)
        last.enter_context(folder_lock(path.parent))
        if not path.exists():
            _begin(path, settings)
        header, records, whole = _parse(path)
        _refuse_other(path, header["settings"], settings)
        with directory_errors(path):
            os.truncate(path, whole)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            yield UnitStore(path, records, descriptor)
        finally:
            os.close(descriptor)
            if not records:
                path.unlink()


def read_store(folder: str | Path) -> tuple[dict[str, Any], list[Record]]:
    """The settings and the records of a store, finished or not; nothing is changed."""
    header, records, _ = _parse(as_path(folder) / NAME)
    return header["settings"], list(records.values())


def unit_of(record: Record) -> Unit:
    """The unit that a record is of."""
    # A part that has a default may be missing: it came to be after the record was written.
    return Unit(
        *(
            record[part.name] if part.default is MISSING else record.get(part.name, part.default)
            for part in fields(Unit)
        )
    )


def _begin(path: Path, settings: dict[str, Any]) -> None:
    """Write the first line, which is never half a line."""
    foreign = [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(UNFINISHED)]
    if foreign:
        hint = "choose another directory"
        raise DirectoryError(str(path.parent), "a new or empty directory, or a store", foreign[:3], hint)
    write_text(path, json.dumps({"format": FORMAT, "settings": settings}) + "\n")


def _parse(path: Path) -> tuple[dict[str, Any], dict[Unit, Record], int]:
    """The first line, the records, and how many bytes of the file are whole lines."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DirectoryError(str(path), "a store that a sweep wrote", "nothing") from error
    except OSError as error:
        raise DirectoryError(str(path), "a store that can be read", str(error)) from error
    whole = content.rfind(b"\n") + 1  # what follows was being written when the writer was killed
    lines = [_json(path, number, line) for number, line in enumerate(content[:whole].splitlines(), 1)]
    if not lines or lines[0].get("format") != FORMAT or not isinstance(lines[0].get("settings"), dict):
        raise DirectoryError(f"{path}, line 1", f"the settings of a sweep, in format {FORMAT}", str(lines[:1])[:80])
    records: dict[Unit, Record] = {}
    for number, record in enumerate(lines[1:], 2):
        try:
            records.setdefault(unit_of(record), record)
        except (KeyError, TypeError) as error:
            raise DirectoryError(f"{path}, line {number}", "the record of a unit", f"no {error}") from error
    return lines[0], records, whole


def _json(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        hint = "remove the line to have its unit run again"
        raise DirectoryError(f"{path}, line {number}", "a line of JSON", str(error), hint) from error
    if not isinstance(content, dict):
        raise DirectoryError(f"{path}, line {number}", "a JSON object", type(content).__name__)
    return content


def _refuse_other(path: Path, there: dict[str, Any], settings: dict[str, Any]) -> None:
    keys = [key for key in sorted({*there, *settings}) if there.get(key) != settings.get(key)]
    if keys:
        found = ", ".join(f"{key} {there.get(key)!r} (now {settings.get(key)!r})" for key in keys)
        hint = "choose another directory, or use the same settings"
        raise DirectoryError(str(path.parent), "a store of the same settings", f"one with {found}", hint)
