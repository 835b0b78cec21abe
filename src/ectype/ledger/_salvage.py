"""Go on from what is left of a damaged ledger, in a new directory."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from ectype._common.atomic_io import as_path, atomic_folder
from ectype._common.bounded_io import parse_json
from ectype.errors import DirectoryError, IntegrityError
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._connections import NAME, connect
from ectype.ledger._recovery import RecoverableRows, errors_of
from ectype.ledger._schema import begin


def salvage(directory: str | Path, out: str | Path) -> int:
    """Write the answers of a damaged ledger that are whole to the ledger of a new directory; gives how many rows.

    The command of the run goes on there, and asks only what was lost.
    """
    path, new = as_path(directory) / NAME, as_path(out)
    left = RecoverableRows.of(path)
    if not left.usable:
        raise IntegrityError(str(path), "answers that can be used", "none", "restore it from a backup")
    if new.exists() and (not new.is_dir() or any(new.iterdir())):
        raise DirectoryError(str(new), "a new or empty directory", "something else", "choose another name")
    with errors_of(new / NAME), atomic_folder(new) as folder, closing(connect(folder / NAME)) as connection:
        begin(connection, {str(key): parse_json(str(row[1])) for key, row in left.rows["meta"].items()})
        connection.execute("BEGIN IMMEDIATE")
        rows = [(table, row) for table, kept in left.rows.items() if table != "meta" for row in kept.values()]
        hash_chain.write(connection, rows, hash_chain.last(connection))
        connection.execute("COMMIT")
    return left.answered
