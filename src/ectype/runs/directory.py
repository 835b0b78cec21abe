"""A run's directory while it is written: resumable, and locked for one writer at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ectype._common.atomic_io import (
    COMMITTED,
    as_path,
    current,
    directory_errors,
    folder_lock,
    make_folder,
    missing_folders,
    remove_empty,
    remove_unfinished,
    roll_forward,
    unfinished_folder,
)
from ectype._common.manifest import RUN, read_run
from ectype._common.portable import UNFINISHED, lock_folder
from ectype.errors import DirectoryError, warn
from ectype.ledger import BESIDE_LEDGER, LEDGER, SESSIONS, Ledger, settings_of
from ectype.original import LabelledRows
from ectype.original.options import SEMANTIC_OPTIONS
from ectype.space import Space
from ectype.types import Json

SOURCE = "opened.source"
# What earlier versions did not write down; a run without it is the same as one with any.
TOLD_LATER = (SOURCE, "opened.fitted")
# What is remembered as a hash, in words.
HASHED = {
    "space": "another space",
    "fingerprint": "another file of the original",
    "fitted": "an original that was fitted otherwise",
    "rows": "other rows of your own",
    "answers": "other given answers, or none",
    "refresh_of": "a refresh of another run",
    "header": "other headers",
    "template": "another template",
}
# What follows from other settings, and need not be said beside them.
FOLLOWS = {
    "batch": ("budget", "answers"),
    "iterations": ("budget", "batch", "answers"),
    "known": ("answers",),
    "further": ("rows",),
    "schedule": ("budget", "preset", "method", "to"),
}
# What is another number when a run goes on.
FURTHER = ("budget", "iterations", "batch", "target", "stages")
# What a finished run consists of; a report may lie beside it.
FILES = ("copy.safetensors", "copy.json", "space.json", "history.jsonl", RUN)


def finished(path: Path) -> bool:
    """Whether a run was finished here."""
    return current(path / RUN).is_file()


def claim(path: str | Path, settings: dict[str, Any]) -> Path:
    """Check that a run with these settings can be written here; what killed processes left is tidied up.

    The directory must be writable, and be empty or hold the run that the settings describe.
    """
    path = as_path(path)
    with directory_errors(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            _refuse_other(path, settings)
        missing = missing_folders(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            remove_unfinished(path.parent)
            with unfinished_folder(path):  # it can be written
                pass
            with lock_folder(path) as ours:
                if ours is not False:
                    roll_forward(path)
        finally:
            remove_empty(missing)
    return path


@contextmanager
def open_run(
    path: str | Path, settings: dict[str, Any], space: Space, given: LabelledRows | None = None
) -> Iterator[Ledger]:
    """The ledger of a run that is written here, with answers that it was given; one that was interrupted resumes.

    If no query was made, the files are removed again.
    """
    path = claim(path, settings)
    with held(path):
        ledger = Ledger(path / LEDGER, settings, space, given)
        try:
            yield ledger
        finally:
            ledger.close()
            if ledger.empty and not finished(path):
                for suffix in ("", *BESIDE_LEDGER):
                    (path / f"{LEDGER}{suffix}").unlink(missing_ok=True)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Within, nobody else writes to this folder: it is made if need be, and removed again if it stays empty."""
    missing = missing_folders(path)
    with directory_errors(path):
        make_folder(path)
    try:
        with folder_lock(path):
            yield
    finally:
        remove_empty(missing)


def settings_there(path: Path) -> Json | None:
    """The settings of the run that is in a directory, finished or not, if there is one."""
    if finished(path):
        there = read_run(path).get("settings")
        if not isinstance(there, dict):
            raise DirectoryError(str(path / RUN), "the settings of a run", repr(there)[:80])
        return there
    return settings_of(path / LEDGER) if (path / LEDGER).is_file() else None


def _refuse_other(path: Path, settings: dict[str, Any]) -> None:
    if not path.is_dir():
        raise DirectoryError(str(path), "a directory", "a file", "choose another name")
    there = settings_there(path)
    if there is not None:
        refuse_differences(path, there, settings)
    elif not (path / LEDGER).is_file() and any(map(_foreign, path.iterdir())):
        expected = "a new or empty directory, or one with the same run"
        raise DirectoryError(str(path), expected, "other files", "choose another directory")


def _foreign(entry: Path) -> bool:
    """Whether a file is none of ours; without a ledger, ours are of a run that was being saved from memory."""
    return not (entry.name.startswith((UNFINISHED, SESSIONS)) or entry.name in (COMMITTED, *FILES))


def refuse_differences(path: Path, there: Json, now: Json) -> None:
    """Refuse settings, or an original, other than those of the run that was found; what is only doubtful is said."""
    before, after = _flat(there), _flat(now)
    lacking = {key for key in TOLD_LATER if key not in before} | ({*FURTHER} if goes_on(there, now) else set())
    differ = [key for key in sorted({*before, *after} - lacking) if _json(before, key) != _json(after, key)]
    if SOURCE in differ and "original" in differ:
        differ.remove(SOURCE)
    if SOURCE in differ:
        module = str(now["original"]).partition(":")[0]
        message = f"{path}: the source of {module} was changed since this run was begun; if it answers otherwise now, "
        warn(f"{message}this copy is of neither: then choose another directory")
        differ.remove(SOURCE)
    if differ:
        said = [key for key in differ if key not in FOLLOWS or not {*differ} & {*FOLLOWS[key]}]
        found = ", ".join(_difference(key, before, after) for key in said)
        hint = "choose another directory, or use the same settings and original"
        raise DirectoryError(str(path), "a new directory, or one with the same run", f"a run with {found}", hint)


def goes_on(there: Json, now: Json) -> bool:
    """Whether a run is to go on from the one that is there."""
    return now.get("stages") == [*there.get("stages", ()), there.get("budget")]


def _flat(about: Json, prefix: str = "") -> Json:
    """What a run is recognised by, value by value; how its original was opened is an object of its own."""
    found: Json = {}
    for key, value in about.items():
        nested = isinstance(value, dict) and (prefix or key == "opened")
        found |= _flat(value, f"{prefix}{key}.") if nested else {prefix + key: value}
    return found


def _json(about: Json, key: str) -> str:
    """A value as it is written down: there, True is not 1."""
    return json.dumps(about.get(key, SEMANTIC_OPTIONS.get(_word(key))), sort_keys=True)


def _word(key: str) -> str:
    return key.removeprefix("opened.")


def _difference(key: str, before: Json, after: Json) -> str:
    """What differs, in words: values that people gave, but neither hashes nor structures of ours."""
    word = _word(key).partition(".")[0]
    was, now = (about.get(key, SEMANTIC_OPTIONS.get(_word(key))) for about in (before, after))
    if word in HASHED:
        return HASHED[word]
    if word == "query":  # of which only hashes are kept
        return f"another {_word(key)} in its URL"
    if isinstance(was, dict) or isinstance(now, dict):
        return f"another {word}"
    return f"{_word(key)} {was!r} (now {now!r})"
