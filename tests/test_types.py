"""What users see of our types: a script of theirs passes mypy --strict, and nothing that matters to them is Any."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
import ectype as ec


def original(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0] > 0


space = ec.Space.normal(2)
result = ec.copy_classifier(original, space, budget=300, seed=0, to="tree", exclude=["x1"])
reveal_type(space)
reveal_type(result)
reveal_type(result.certificate)
reveal_type(result.copy)
reveal_type(result.history)
reveal_type(ec.load("my-copy"))
reveal_type(ec.certify(result.copy, original, space))
reveal_type(ec.export(result.copy, "copy.onnx"))
reveal_type(ec.refresh("my-copy", original))
reveal_type(ec.frontier("my-copy"))
reveal_type(ec.open_original("mymodels:classifier"))
reveal_type(ec.Space.from_data(np.zeros((3, 2))))
reveal_type(ec.SequentialCopy(budget=300).fit([[1.0]]))
if result.certificate is not None:
    reveal_type(result.certificate.lower)
    reveal_type(result.certificate.per_class)
"""
WRONG = """
import ectype as ec

ec.copy_classifier(len, ec.Space.normal(2), budgett=3)
ec.copy_classifier(len, ec.Space.normal(2), budget="many")
"""


def checked(tmp_path, text):
    """What mypy says of a script in a folder of its own, with our package as it is installed."""
    (tmp_path / "script.py").write_text(text)
    environment = {**os.environ, "MYPYPATH": str(Path(__file__).parents[1] / "src")}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "script.py"]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)


@pytest.mark.usefixtures("unmeasured")  # nothing of ours is run
def test_a_users_script_is_typed_and_mistakes_in_it_are_found(tmp_path):
    done = checked(tmp_path, SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == SCRIPT.count("reveal_type(")
    assert not [kind for kind in revealed if re.search(r"\bAny\b", kind)]
    wrong = checked(tmp_path, WRONG)
    assert 'Unexpected keyword argument "budgett"' in wrong.stdout
    assert 'Argument "budget" to "copy_classifier" has incompatible type "str"' in wrong.stdout
