"""Rules for an auditor: a small tree that rises with income and never sees a column, and how much it leaves out.

python auditor.py [--budget 2000]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from loans import LABEL, fitted, table

import ectype as ec


def main(budget: int) -> None:
    """Copy under constraints, print the rules, and say what they cost."""
    past = table(3000)
    original = fitted(past)
    space = ec.Space.from_data(past.drop(columns=LABEL), ordered={"grade": ["D", "C", "B", "A"]})
    constraints = {"to": "tree", "max_leaves": 10, "exclude": ["age"], "increasing": ["years_employed"]}
    with TemporaryDirectory() as folder:
        result = ec.copy_classifier(original, space, budget=budget, out=Path(folder, "run"), **constraints)
        ec.export(result.copy, Path(folder, "rules.txt"))
        print(Path(folder, "rules.txt").read_text())
        print(f"sees {', '.join(result.copy.space.names)}")
        print(
            f"fidelity {result.certificate.estimate:.3f}, at least {result.certificate.lower:.3f} with 95 % confidence"
        )
        # What fewer leaves would cost, from the same answers: no query is made.
        sizes = ec.frontier(Path(folder, "run"), ["tree"])
        print(sizes[["family", "bytes", "fidelity", "lower"]].to_string(index=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Rules for an auditor.")
    parser.add_argument("--budget", type=int, default=2000)
    main(parser.parse_args().budget)
