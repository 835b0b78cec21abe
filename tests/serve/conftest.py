import numpy as np
import pytest
from in_process_server import copied

import ectype as ec
from problems import loans


@pytest.fixture(scope="module")
def plane():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return copied(ec.Space.normal(2), X, (X[:, 0] > X[:, 1]).astype(int), ["down", "up"])


@pytest.fixture(scope="module")
def lending():
    frame, decisions = loans(600, 0)
    return copied(ec.Space.from_data(frame), frame, (decisions == "refuse").astype(int), ["grant", "refuse"])
