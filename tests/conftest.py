"""What tests share."""

from __future__ import annotations

import os
import pty
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

# Before SciPy is imported: without it one of scikit-learn's estimator checks is skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest

from understudy.algorithm.network import MLP
from understudy.algorithm.samples import Samples


def disc(rows):
    """An original anyone can check by hand: inside or outside the unit circle."""
    return (np.asarray(rows) ** 2).sum(axis=1) < 1


def child_processes():
    """The processes that this one has started and not waited for yet."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found.update(map(int, (task / "children").read_text().split()))
    return found


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def small(rng):
    """A small network, its parameters and a labelled sample set in the plane."""
    network = MLP(2, (8, 5), 3)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    return network, network.initial(rng), Samples(X, rng.integers(0, 3, 60).astype(np.int32))


@pytest.fixture(scope="module")
def small_lessons():
    """Relays of a few rows, for tests that look at the way and not at how far it leads."""
    from understudy.models.distillation import Effort
    from understudy.runs.presets import PRESETS

    little = Effort(relay_steps=300, beside_steps=300, rounds=40, free_rows=1000)
    with pytest.MonkeyPatch.context() as patch:
        for name, preset in PRESETS.items():
            patch.setitem(PRESETS, name, replace(preset, effort=little))
        yield


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=3, help="how often a run is killed and resumed")


@pytest.fixture(scope="session")
def kills(request):
    return request.config.getoption("--kills")


def shown_on_a_terminal(command, **options):
    """What a command that ends well shows on a terminal: its standard error."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment, **options)
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 4096):
            shown += part
    except OSError:  # the other side closed
        pass
    os.close(master)
    process.communicate(timeout=60)
    assert process.returncode == 0
    return shown
