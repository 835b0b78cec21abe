"""Merge the answers of several directories into one, to be given to runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ectype._common.atomic_io import as_path, atomic_folder
from ectype.errors import DirectoryError, PriorAnswersError
from ectype.ledger import LEDGER, LEDGER_FORMAT, LedgerEntry, Purpose, read_entries, settings_of, write_ledger
from ectype.original import Answers
from ectype.queries._answer_sources import DROPPED, Source, convert_rows
from ectype.space import Space
from ectype.types import Json

# What settings of merged answers keep of the run's that they come from.
KEPT = ("original", "fingerprint", "opened", "classes", DROPPED)
SHOWN = 5


@dataclass(frozen=True)
class MergeResult:
    """The number of answers in the merged directory, and of those left out, by reason."""

    answers: int
    left_out: dict[str, int]


def merge_answers(directories: Sequence[str | Path], out: str | Path) -> MergeResult:
    """Write the answers of several directories to a new one, in the space of the first.

    They must be of one original. Rows that the first space cannot have are left out and counted; answers that
    contradict each other are refused. Purposes and times are kept; attempts without an answer, and rounds of training,
    are not.
    """
    paths, new = [as_path(one) for one in directories], as_path(out)
    if new.exists() and (not new.is_dir() or any(new.iterdir())):
        raise DirectoryError(str(new), "a new or empty directory", "something else", "choose another name")
    found = [read_entries(path / LEDGER) for path in paths]
    settings = [settings_of(path / LEDGER) or {} for path in paths]
    _refuse_others(paths, settings)
    space, left_out, entries = found[0][0], Counter[str](), list[LedgerEntry]()
    for path, (own, listed), about in zip(paths, found, settings, strict=True):
        for entry in listed:
            kept, why = _convert(entry, str(path), own, space, tuple(about.get(DROPPED, ())))
            left_out.update(why)
            entries += [kept] if len(kept.answers) else []
    if not entries:
        raise DirectoryError(str(paths[0]), "answers that can be merged", "none")
    _refuse_conflicts(entries, space)
    merged = {key: settings[0][key] for key in KEPT if key in settings[0]}
    _write(new, {**merged, "merged": [str(path) for path in paths]}, space, entries)
    return MergeResult(sum(len(entry.answers) for entry in entries), dict(left_out))


def _refuse_others(paths: Sequence[Path], settings: Sequence[Json]) -> None:
    """Refuse answers of another original, as far as the directories say, or with other columns kept."""
    settings = [{**about, DROPPED: about.get(DROPPED, [])} for about in settings]
    for key in KEPT:
        for path, about in zip(paths, settings, strict=True):
            both = about.get(key) is not None and settings[0].get(key) is not None
            if both and about[key] != settings[0][key]:
                found, hint = f"another: {str(about.get(key))[:60]!r}", "merge those of one original, kept alike"
                raise DirectoryError(f"{path}: {key}", f"what {paths[0]} has", found, hint)


def _convert(
    entry: LedgerEntry, name: str, own: Space, space: Space, dropped: tuple[str, ...]
) -> tuple[LedgerEntry, Counter[str]]:
    """A request with its rows in the first space, and counts of the rows that it cannot have."""
    source = Source(name, entry.answers, own, entry.rows, None, dropped)
    found, left_out = convert_rows(source, space, dropped)
    scores = None if entry.answers.scores is None else entry.answers.scores[found.places]
    return entry._replace(rows=found.rows, answers=Answers(entry.answers.labels[found.places], scores)), left_out


def _refuse_conflicts(entries: Sequence[LedgerEntry], space: Space) -> None:
    labels, conflicts = dict[bytes, object](), list[str]()
    for entry in entries:
        for row, label in zip(np.ascontiguousarray(entry.rows), entry.answers.labels.tolist(), strict=True):
            known = labels.setdefault(row.tobytes(), label)
            if known != label and entry.purpose != Purpose.REPEAT:
                values = ", ".join(f"{name}={value:.6g}" for name, value in zip(space.names, row.tolist(), strict=True))
                conflicts.append(f"{values} is {known!r} and {label!r}")
    if conflicts:
        more = f"; and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
        hint = "one of the directories is of another original, or it is noisy: give them one by one with --answers"
        raise PriorAnswersError("merge", "one answer to every row", f"{'; '.join(conflicts[:SHOWN])}{more}", hint)


def _write(out: Path, settings: Json, space: Space, entries: Sequence[LedgerEntry]) -> None:
    with atomic_folder(out) as folder:
        about = {"format": LEDGER_FORMAT, "settings": settings, "space": space.to_json()}
        write_ledger(folder / LEDGER, about, entries)
        (folder / "space.json").write_text(space.to_json() + "\n", encoding="utf-8")
