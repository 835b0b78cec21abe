"""CONTRIBUTING.md is a map of the source: its table and picture miss nothing, and name nothing that is gone."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ectype"
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
ROWS = [line for line in TEXT.splitlines() if line.startswith("| `")]
NAMED = [name for row in ROWS for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
PICTURE = re.search(r"^```mermaid\n(.*?)^```", TEXT, flags=re.M | re.S)[1]
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
MODULES = sorted(path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__"))


def test_the_table_names_every_package_and_module_once():
    assert sorted(NAMED) == sorted([*(f"{name}/" for name in PACKAGES), *MODULES])


def test_the_table_fits_on_a_screen():
    assert len(ROWS) <= 22
    assert max(map(len, ROWS)) <= 120


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_the_tests_of_a_room_are_where_it_says(row):
    for path in re.findall(r"`(tests/[^`]+)`", row.split("|")[3]):
        assert (ROOT / path).exists(), path


def test_the_picture_names_every_package_and_nothing_that_is_gone():
    drawn = {*re.findall(r"\w+", PICTURE)} - {"flowchart", "LR", "subgraph", "faces", "end"}
    assert {*PACKAGES} <= drawn
    assert drawn <= {*PACKAGES, *(name.removesuffix(".py") for name in MODULES)}


@pytest.mark.parametrize("name", sorted({*re.findall(r"`([a-z_]+/[\w/]*\w\.py)`", TEXT)}))
def test_files_that_are_named_exist(name):
    assert any((place / name).is_file() for place in (ROOT, SOURCE)), name
