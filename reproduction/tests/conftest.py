"""What tests share. What they have in common with the library's, `commands` and `processes`, is in `tests`."""

import os

# Before libraries with threads are imported: on a busy machine threads that wait for each other burn several times what
# one needs.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

# No doctests are looked for here: another file has this name, and as modules only one could be imported.
collect_ignore = ["conftest.py"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)
