"""An original changes: the copy finds out, and is brought up to date for a part of what it cost.

python refresh.py [--budget 2000]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from loans import LABEL, fitted, table

import ectype as ec


def main(budget: int) -> None:
    """Copy, ask again while nothing changed, and again after it did."""
    past = table(3000)
    then = fitted(past)
    stricter = past.assign(**{LABEL: np.where(past["amount"] > 60_000, "no", past[LABEL])})
    now = fitted(stricter)  # retrained, and nobody was told
    space = ec.Space.from_data(past.drop(columns=LABEL), ordered={"grade": ["D", "C", "B", "A"]})
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        first = ec.copy_classifier(ec.Original(then.predict, name="loans"), space, budget=budget, out=run)
        print(f"copied: fidelity {first.certificate.estimate:.3f}")
        same = ec.refresh(run, ec.Original(then.predict, name="loans"), deterministic=True)
        print(f"the same model: {same.refreshed['verdict']}, {same.refreshed['check']['asked']} rows asked again")
        other = ec.refresh(run, ec.Original(now.predict, name="loans"), deterministic=True)
        fresh = table(2000, seed=1).drop(columns=LABEL)
        before, after = (ec.metrics.fidelity(each.copy.predict(fresh), now.predict(fresh)) for each in (first, other))
        print(f"retrained: {other.refreshed['verdict']}, {other.queries['training']} queries for training")
        print(f"agreement with the retrained model: {before:.3f} before, {after:.3f} after")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Bring a copy up to date.")
    parser.add_argument("--budget", type=int, default=2000)
    main(parser.parse_args().budget)
