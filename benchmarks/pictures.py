"""The pictures of the README and of the site's first page.

    python benchmarks/pictures.py [--out docs]

`decisions.svg`: the decisions of the demo's original, an RBF-SVM on two-turn spirals, and those of its copy from 3000
answers, made here. `rounds.svg`: which rows such a run asks about, by round. `scaling.svg`: fidelity by the number of
answers, drawn from the tables of docs/background/benchmarks.md, which benchmarks/scaling.py printed; so that no number
is copied by hand.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from charts import by_answers, heading, picture

if TYPE_CHECKING:
    import pandas as pd

TABLES = Path(__file__).parents[1] / "docs" / "background" / "benchmarks.md"
BUDGET, GRID, REACH = 3000, 220, 2.2
SIDE, GAP, HEAD = 290, 20, 84
# Of a small map, and the rounds that each of three shows: the last of them.
SMALL, SHOWN = 190, (1, 3, 6)


def curves(text: str) -> dict[str, dict[int, float]]:
    """Fidelity on fresh rows by method and answers, from the page's tables."""
    printed = re.search(r"fidelity on fresh rows of the space, mean.*?\n(.*?)\n```", text, flags=re.S)
    more = re.search(r"^\| \| fresh rows: 30,000 \| 100,000.*?\n\n", text, flags=re.M | re.S)
    assert printed is not None
    assert more is not None
    head, *lines = printed[1].splitlines()
    budgets, found = [int(n) for n in head.split()], {}
    for line in lines:
        name, *values = re.split(r" {2,}", line.strip())
        found[name] = dict(zip(budgets, map(float, values), strict=True))
    for line in more[0].strip().splitlines()[2:]:
        name, first, second, *_ = (cell.strip() for cell in line.strip("| ").split("|"))
        found[name] |= {30_000: float(first), 100_000: float(second)}
    return found


def decisions() -> str:
    """Two maps beside each other: what the original says in the plane, and what its copy says."""
    from sklearn.svm import SVC

    import ectype as ec

    X, y = ec.toy_problems.spirals()
    original = SVC(C=1000, gamma=1).fit(X[:8000], y[:8000])
    result = ec.copy_classifier(original, ec.Space.normal(2), budget=BUDGET, certificate_n=5000, seed=0)
    side = np.linspace(-REACH, REACH, GRID)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
    assert result.certificate is not None  # it was asked for
    agree = 100 * result.certificate.estimate
    maps = [
        _map(original.decision_function(grid), GAP, "The original", "an SVM, only asked for labels"),
        _map(
            result.copy.predict_proba(grid)[:, 1] - 0.5,
            2 * GAP + SIDE,
            f"Its copy, from {BUDGET} answers",
            f"agrees on {agree:.1f} % of inputs",
        ),
    ]
    title = "The decisions of an original in the plane, and those of its copy"
    return picture("\n".join(maps), title)


def rounds() -> str:
    """Three maps beside each other: the rows that a run asked about in its first round, the next two, and the last."""
    from sklearn.svm import SVC

    import ectype as ec
    from ectype.ledger import LEDGER, query_table, space_of

    X, y = ec.toy_problems.spirals()
    original = SVC(C=1000, gamma=1).fit(X[:8000], y[:8000])
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        result = ec.copy_classifier(original, ec.Space.normal(2), budget=BUDGET, seed=0, out=run)
        asked = query_table(run / LEDGER, space_of(run / LEDGER))
    asked = asked[asked["purpose"] == "training"]
    maps, before = [], 0
    for place, last in enumerate(SHOWN):
        record = result.history[last - 1]
        rows = asked.iloc[before : record.queries]
        first = 1 if place == 0 else SHOWN[place - 1] + 1
        name = f"Round {last}" if first == last else f"Rounds {first} {'and' if last == first + 1 else 'to'} {last}"
        assert record.fidelity is not None  # there is a certificate
        words = f"{len(rows):,} rows: {record.fidelity:.4f}"
        maps.append(_dots(rows, GAP + place * (SMALL + GAP), name, words))
        before = record.queries
    return picture("\n".join(maps), "Which rows a run asks about, round by round", height=HEAD + SMALL + GAP)


def _dots(rows: pd.DataFrame, left: int, title: str, below: str) -> str:
    """Rows in the plane, a dot each, in the colour of their label."""
    scale = SMALL / (2 * REACH)
    inside = rows[(rows[["x0", "x1"]].abs() < REACH).all(axis=1)]
    drawn = []
    for label, kind in ((0, "one"), (1, "two")):
        places = inside.loc[inside["label"].astype(int) == label, ["x0", "x1"]].to_numpy()
        path = "".join(f"M{(x + REACH) * scale:.1f} {(REACH - y) * scale:.1f}h0" for x, y in places)
        drawn.append(f'<path class="{kind} dots" d="{path}"/>')
    frame = f'<rect class="rule" fill="none" width="{SMALL}" height="{SMALL}"/>'
    body = f'<g transform="translate({left} {HEAD})">{frame}{"".join(drawn)}</g>'
    return f"{heading(left, title, below)}\n{body}"


def _map(score: np.ndarray, left: int, title: str, below: str) -> str:
    """The plane in two colours, by whether the score is above 0, with a line between them."""
    from contourpy import contour_generator

    scale = SIDE / (GRID - 1)
    areas = contour_generator(z=score.reshape(GRID, GRID), fill_type="OuterCode").filled(0.0, np.inf)
    path = "".join(_path(points, codes, scale) for points, codes in zip(*areas, strict=True))
    at = f"translate({left} {HEAD})"
    return (
        f"{heading(left, title, below)}\n"
        f'<g transform="{at}"><rect class="one" width="{SIDE}" height="{SIDE}"/>'
        f'<path class="two" fill-rule="evenodd" d="{path}"/><path class="edge" d="{path}"/></g>'
    )


def _path(points: Any, codes: Any, scale: float) -> str:
    """The outlines of an area: a code of 1 begins another."""
    steps = []
    for (across, up), code in zip(points, codes, strict=True):
        steps.append(f"{'M' if code == 1 else 'L'}{across * scale:.1f} {SIDE - up * scale:.1f}")
    return "".join(steps) + "Z"


def main() -> None:
    parser = argparse.ArgumentParser(description="The pictures of the README.")
    parser.add_argument("--out", type=Path, default=TABLES.parents[1], metavar="FOLDER")
    options = parser.parse_args()
    (options.out / "decisions.svg").write_text(decisions())
    (options.out / "rounds.svg").write_text(rounds())
    words = "Fidelity by number of answers", "mean of eight originals, beside models fitted once"
    found = curves(TABLES.read_text())
    by_answers(found, options.out / "scaling.svg", "answers of the original", ["ectype"], words=words)


if __name__ == "__main__":
    main()
