"""A boosted pipeline on a mixed data frame with gaps becomes a network in one ONNX file.

python mixed_table.py [--budget 2000]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import onnxruntime
import pandas as pd
from loans import LABEL, fitted, table

import ectype as ec

# What the file takes for each column.
TYPES = {"tensor(double)": "float64", "tensor(int64)": "int64", "tensor(bool)": "bool", "tensor(string)": "object"}


def ask(file: Path, frame: pd.DataFrame) -> list[str]:
    """What the file says to a data frame, gaps and all."""
    session = onnxruntime.InferenceSession(file)
    inputs = {value.name: frame[[value.name]].to_numpy().astype(TYPES[value.type]) for value in session.get_inputs()}
    return session.run(["label"], inputs)[0].ravel().tolist()


def main(budget: int) -> None:
    """Copy, export, and compare the file with the original on rows that nobody has seen."""
    past, fresh = table(3000), table(1000, seed=1).drop(columns=LABEL)
    original = fitted(past)
    space = ec.Space.from_data(past.drop(columns=LABEL), ordered={"grade": ["D", "C", "B", "A"]})
    # It gives probabilities, so the copy learns from them; half of the real rows are part of the queries.
    result = ec.copy_classifier(original, space, to="mlp", scores=True, rows=fresh[:500], budget=budget)
    print(f"fidelity {result.certificate.estimate:.3f}, at least {result.certificate.lower:.3f} with 95 % confidence")
    with TemporaryDirectory() as folder:
        file = Path(folder, "loans.onnx")
        made = ec.export(result.copy, file)
        print(
            f"{made.bytes:,} bytes of ONNX; "
            f"{made.disagreements} of {made.rows} rows answered otherwise than by the copy"
        )
        held_out = fresh[500:]
        alike = ec.metrics.fidelity(ask(file, held_out), original.predict(held_out))
        print(f"the file gives the original's label to {alike:.3f} of {len(held_out)} rows that nobody has seen")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A boosted pipeline becomes a network in one file.")
    parser.add_argument("--budget", type=int, default=2000)
    main(parser.parse_args().budget)
