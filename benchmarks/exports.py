"""What exported files take: bytes, and the time in which 10,000 fresh rows are answered, for C and for SQL.

Copies of every family of a problem with mixed columns and gaps are exported. C is compiled by the system's compiler,
SQL is run in SQLite and DuckDB; the time is that of the comparison which every export makes.

    python benchmarks/exports.py
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import ectype as ec
import parity
from ectype.errors import ExportError
from ectype.models.copy_classifier import CopyClassifier

KINDS = (("c", None), ("sql", "sqlite"), ("sql", "duckdb"))


def measured(copy: CopyClassifier, kind: str, dialect: str | None, folder: Path) -> dict[str, Any]:
    try:
        written = ec.export(copy, folder / f"copy.{kind}", dialect=dialect)
    except ExportError as error:
        return {"refused": f"at most {error.expected.split()[2]} bytes, found {error.found}"}
    return {"bytes": written.bytes, "seconds": written.seconds, "disagree": written.disagreements}


def exports(budget: int, families: list[str]) -> list[dict[str, Any]]:
    predict, space = parity.problem("mixed")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for family in families:
            copy = ec.copy_classifier(predict, space, to=family, budget=budget, certificate_n=0).copy
            for kind, dialect in KINDS:
                outcome = measured(copy, kind, dialect, Path(folder))
                found.append({"family": family, "format": kind, "in": dialect or "cc", **outcome})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ["tree", "linear", "mlp", "boosting", "forest", "blend"]
    parser.add_argument("--families", nargs="+", choices=known, default=known)
    parser.add_argument("--budget", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = exports(options.budget, options.families)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'family':<9} {'format':<6} {'in':<7} {'bytes':>9} {'seconds':>8} {'disagree':>9}")
    for row in found:
        line = "{family:<9} {format:<6} {in:<7} ".format(**row)
        print(line + (row.get("refused") or "{bytes:>9} {seconds:>8.2f} {disagree:>9}".format(**row)), flush=True)


if __name__ == "__main__":
    main()
