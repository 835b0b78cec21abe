"""docs/paper_to_code.md maps the whole paper, to functions that exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "paper_to_code.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| ")][
    1:
]
PAPER = [
    *(f"Eq. {k}" for k in range(1, 14)),
    *(f"Algorithm {k}" for k in range(1, 6)),
    "Theorem 1", "Theorem 2", "single-pass, one-shot", "single-pass, online", "fixed lambda", "automatic lambda",
    "balanced batches", "A_C", "conv", "eff", "empirical fidelity error", "spirals, moons, yin-yang", "f_O", "f_C",
    "P_S", "operational points", *(f"Figure {k}" for k in range(1, 9)), "Table 2", "Table 3", "Table 4",
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_names_code_that_exists(row):
    names = re.findall(r"`(ectype[\w.]*):(\w+)`", row[2])
    assert names
    for module, name in names:
        assert hasattr(import_module(module), name), f"{module}:{name}"
    for module, name, field in re.findall(r"`(ectype[\w.]*):(\w+)` \(`(\w+)`\)", row[2]):
        assert field in getattr(import_module(module), name).__annotations__


@pytest.mark.parametrize("item", PAPER)
def test_nothing_of_the_paper_is_missing(item):
    assert any(re.match(rf"{re.escape(item)}(\W|$)", row[0]) for row in ROWS)
