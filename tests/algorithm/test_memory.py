from itertools import pairwise

import numpy as np
import pytest

from ectype._kernel._training import PENALTIES as ENGINE
from ectype.algorithm.memory import PENALTIES, Automatic, Fixed, bounded, norm


def test_automatic_lambda_follows_its_rule_on_a_scripted_sequence_of_set_sizes():
    sizes = [100, 200, 200, 150, 149, 300, 0, 0]
    rule, lam, seen = Automatic(), Automatic().initial, []
    for before, now in pairwise(sizes):
        lam = rule(lam, now, before)
        seen.append(lam)
    # grows, stays, shrinks, shrinks, grows, empties, stays empty
    expected = [0.25, 0.125, 0.1875, 0.28125, 0.140625, 0.2109375, 0.31640625]
    assert seen == expected


def test_lambda_stops_growing_before_it_overflows():
    lam = 0.5
    for _ in range(1000):
        lam = Automatic()(lam, 0, 0)
    assert lam == 1e6


def test_fixed_lambda_stays():
    assert Fixed(0.05)(123.0, 1, 2) == 0.05


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_a_penalty_vanishes_at_zero_and_grows_with_the_distance(penalty, rng):
    assert penalty(np.zeros(50)) == 0
    away = rng.normal(size=50) * 0.1
    assert 0 < penalty(away) < penalty(2 * away)  # against its gradient is towards the previous parameters


def test_the_engine_knows_every_penalty():
    assert set(PENALTIES) | {"none"} == set(ENGINE)


def test_the_printed_norm_and_the_bounded_mean_square(rng):
    difference = rng.normal(size=40)
    assert norm(difference) == pytest.approx(np.linalg.norm(difference))
    assert bounded(difference) == pytest.approx(np.tanh(np.mean(difference**2)))
    assert bounded(difference * 100) <= 1
