"""Originals on which more answers may make a worse copy: waves in six columns, ever finer.

Copies by `copy_classifier` with its defaults and no certificate, in N(0, 1); fidelity on 20,000 fresh rows.

    python benchmarks/wave.py [--finer 1.7 1.9 2.0] [--budgets 1000 3000 10000] [--seeds 0 1]
"""

from __future__ import annotations

import argparse

from advice import FRESH, Wave


def main() -> None:
    import numpy as np

    import ectype as ec

    parser = argparse.ArgumentParser(description="Fidelity by the number of answers, of waves in six columns.")
    parser.add_argument("--finer", type=float, nargs="+", default=[1.7, 1.9, 2.0])
    parser.add_argument("--budgets", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    space = ec.Space.normal(6)
    fresh = space.sample(FRESH, np.random.default_rng(9))
    print(f"{'wave':<28}{'seed':>5}" + "".join(f"{n:>9}" for n in options.budgets))
    for finer in options.finer:
        original = Wave(finer).predict
        for seed in options.seeds:
            settings = {"certificate_n": 0, "repeat": 0, "seed": seed, "progress": False}
            copies = [ec.copy_classifier(original, space, budget=n, **settings).copy for n in options.budgets]
            alike = [float((copy.predict(fresh) == original(fresh)).mean()) for copy in copies]
            print(f"{f'sin({finer} * sum) > 0':<28}{seed:>5}" + "".join(f"{share:>9.4f}" for share in alike))


if __name__ == "__main__":
    main()
