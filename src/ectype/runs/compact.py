"""A directory's ledger in fewer bytes, committed together with the run.json that knows its chain."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ectype._common import manifest
from ectype._common.atomic_io import as_path, folder_lock, replace_together
from ectype._common.manifest import RUN, Key
from ectype.errors import DirectoryError
from ectype.ledger import LEDGER, chain_anchor, compact_ledger
from ectype.runs.directory import finished


@dataclass(frozen=True)
class Compacted:
    """The bytes of a ledger before and after, and how many rounds of training were left out."""

    before: int
    after: int
    rounds: int


def compact(directory: str | Path) -> Compacted:
    """Write the ledger of a directory anew, in fewer bytes: the same answers, with a chain and checksums of their own.

    A run that is finished, or kept traffic or merged answers that nobody writes to. One that was signed is signed
    again, by the key in the environment.
    """
    path = as_path(directory)
    ledger = path / LEDGER
    if not ledger.is_file():
        raise DirectoryError(str(path), "a directory with a ledger", "none")
    with folder_lock(path):
        if (path / f"{LEDGER}-head").exists():
            hint = "wait for it, or run its command once more"
            raise DirectoryError(str(path), "a run that is finished", "one that is at work, or was killed", hint)
        run = manifest.read_run(path) if finished(path) else None
        key = Key.needed() if run is not None and manifest.SIGNATURE in run else None
        with replace_together(path) as work:
            before, dropped = ledger.stat().st_size, compact_ledger(ledger, work / LEDGER)
            if run is not None:
                _seal(run, work, key)
    return Compacted(before, ledger.stat().st_size, dropped)


def _seal(run: dict[str, object], work: Path, key: Key | None) -> None:
    """run.json with where the new chain is."""
    anchor = chain_anchor(work / LEDGER)
    assert anchor is not None
    content = {name: part for name, part in run.items() if name not in (manifest.CHECKSUMS, manifest.SIGNATURE)}
    sealed = manifest.seal({**content, "ledger": asdict(anchor)}, key)
    (work / RUN).write_text(json.dumps(sealed, indent=1) + "\n", encoding="utf-8")
