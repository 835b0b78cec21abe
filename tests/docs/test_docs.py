"""The documents link to what exists, and nothing in them was left to fill in."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_nothing_was_left_to_fill_in(path):
    assert not re.findall(r"^[A-Z_]{4,}$|TODO|FIXME", path.read_text(), flags=re.M)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_benchmark_named_exists(path):
    for name in re.findall(r"benchmarks/\w+\.py", path.read_text()):
        assert (ROOT / name).is_file(), name
