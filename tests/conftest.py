"""What tests share."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace

# Before SciPy is imported: without it one of scikit-learn's estimator checks is skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Before libraries with threads are imported, here or in a process that a test starts: on a busy machine threads that
# wait for each other burn several times what one needs.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet

# No doctests are looked for in these: several have this name, and as modules only one of them could be imported.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def small(rng):
    """A small network, its parameters and a labelled sample set in the plane."""
    network = MLP(2, (8, 5), 3)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    return network, network.initial(rng), SampleSet(X, rng.integers(0, 3, 60).astype(np.int32))


@contextmanager
def little_effort():
    """Within, relays are of a few rows."""
    from ectype.models.capacity import Capacity
    from ectype.plan.presets import PRESETS

    little = Capacity(share=0.2, free_rows=1000)
    with pytest.MonkeyPatch.context() as patch:
        for name, preset in PRESETS.items():
            patch.setitem(PRESETS, name, replace(preset, effort=little))
        yield


@pytest.fixture(scope="module")
def small_lessons():
    """Relays of a few rows, for tests that look at the way and not at how far it leads."""
    with little_effort():
        yield


@pytest.fixture
def small_lesson():
    """The same for a single test, where others of its module look at how far it leads."""
    with little_effort():
        yield


@pytest.fixture(scope="module")
def _unmeasured_processes():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@pytest.fixture
def unmeasured(no_cover, _unmeasured_processes):
    """No coverage, here and in processes that are started: it makes long programs take up to five times as long.

    For what the tests of a room of its own cover line by line.
    """


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=3, help="how often a run is killed and resumed")
    parser.addoption("--write-bytes", action="store_true", help="write what test_same_bytes.py is to find")


@pytest.fixture(scope="session")
def kills(request):
    return request.config.getoption("--kills")
