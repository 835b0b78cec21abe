"""The documents link to what exists, name programs that understand them, and nothing was left to fill in."""

import argparse
import re
import shlex

import pytest
from pages import DOCS, PAGES, ROOT

from commands import run_program

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *(DOCS / page for page in PAGES)])
# As they stand in blocks, and in a line of text.
PROGRAM = re.compile(r"\bpython ((?:benchmarks|compat|tools)/\w+\.py[^`\n#]*)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_nothing_was_left_to_fill_in(path):
    assert not re.findall(r"^[A-Z_]{4,}$|TODO|FIXME", path.read_text(), flags=re.M)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_benchmark_named_exists(path):
    for name in re.findall(r"(?:reproduction/)?(?:benchmarks|compat|tools)/\w+\.py", path.read_text()):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize(
    "command", sorted({line for path in DOCUMENTS for line in PROGRAM.findall(path.read_text()) if " " in line.strip()})
)
def test_programs_understand_the_arguments_that_documents_give_them(command, monkeypatch):
    """They are read, and nothing is run: at full size that takes up to hours."""
    real = argparse.ArgumentParser.parse_args

    def only_read(parser, *given):
        real(parser, *given)
        raise SystemExit(0)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_read)
    file, *arguments = shlex.split(command)
    done = run_program(ROOT / file, *arguments)
    assert done.returncode == 0, done.stderr
