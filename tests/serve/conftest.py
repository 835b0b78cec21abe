import numpy as np
import pytest
from served import copied

import understudy as us
from cases import loans


@pytest.fixture(scope="module")
def plane():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return copied(us.Space.normal(2), X, (X[:, 0] > X[:, 1]).astype(int), ["down", "up"])


@pytest.fixture(scope="module")
def lending():
    frame, decisions = loans(600, 0)
    return copied(us.Space.from_data(frame), frame, (decisions == "refuse").astype(int), ["grant", "refuse"])
