"""Everything public has an example, which the doctests run, and the scripts in examples/ work."""

import re
from pathlib import Path

import pytest

import ectype as ec
from commands import run_program

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", [name for name in ec.__all__ if name != "__version__"])
def test_every_public_name_has_an_example(name):
    assert ">>> " in getattr(ec, name).__doc__


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("endpoint", r"^\d+ rows in \d+ requests reached the endpoint\nthe copy agrees on 0\.[89]"),
        ("mixed_table", r"bytes of ONNX; 0 of 10000 rows answered otherwise(.|\n)*original's label to 0\.[89]"),
        ("auditor", r"^if (.|\n)*sees years_employed, income, amount, purpose, grade, owner\n"),
        ("refresh", r"the same model: unchanged(.|\n)*retrained: changed"),
    ],
)
def test_the_examples_run(name, says):
    """With fewer queries than they have by themselves."""
    done = run_program(EXAMPLES / f"{name}.py", "--budget", 500)
    assert done.returncode == 0, done.stderr
    assert re.search(says, done.stdout), done.stdout


def test_no_example_is_forgotten():
    named = set(re.findall(r"`(\w+\.py)`", (EXAMPLES / "README.md").read_text()))
    assert named == {path.name for path in EXAMPLES.glob("*.py")}
