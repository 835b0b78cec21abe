"""The rule that chooses a threshold: its bound holds for the threshold chosen, and would not for a careless one."""

import numpy as np
import pytest

from ectype.cascades._routing import (
    HeldOutMargins,
    enough_rows,
    fewest_rows,
    last_certified,
    last_rejection,
    p_values,
    split_allowance,
    threshold_grid,
)
from ectype.certificate.bounds import lower_bound

AGREE, ERROR, ROWS = 0.97, 0.05, 1500


def drawn(rng, n):
    """Margins, and whether the two agree: as often as the margin says at the low end, and the worst case above.

    From a margin of 0.3 on they agree just less often than wanted, whatever threshold is chosen: no rule may answer
    there with more than the error allowance.
    """
    sure = rng.random(n)
    return HeldOutMargins(sure, rng.random(n) < np.where(sure > 0.3, AGREE - 0.001, 0.6 + sure))


def careless(held, grid):
    """The most lenient threshold whose own bound is high enough: each bound holds alone, but not the one selected."""
    rows, differ = held.counts(grid)
    good = [j for j in range(len(grid)) if lower_bound(rows[j] - differ[j], rows[j], 1 - ERROR) >= AGREE]
    return good[-1] if good else None


def test_the_bound_holds_for_the_threshold_that_is_chosen():
    """In the worst case: no threshold is good enough, and any that is certified is wrong."""
    rng = np.random.default_rng(0)
    grid = threshold_grid(rng.random(20_000))
    shares = 1 - grid
    wrong = {"fixed": 0, "careless": 0}
    for _ in range(400):
        held = drawn(rng, ROWS)
        wrong["fixed"] += last_certified(held, grid, shares, AGREE, ERROR) is not None
        wrong["careless"] += careless(held, grid) is not None
    assert wrong["fixed"] <= 0.05 * 400 + 2 * (400 * 0.05 * 0.95) ** 0.5  # two standard errors
    assert wrong["careless"] > 0.1 * 400  # what the first line would find, if the rule were invalid


def test_most_of_what_could_be_answered_is():
    """They agree always from 0.2 on, and half of the time below: at least three quarters can be answered."""
    rng = np.random.default_rng(1)
    grid = threshold_grid(rng.random(20_000))
    sure = rng.random(4000)
    held = HeldOutMargins(sure, (sure > 0.2) | (rng.random(4000) < 0.5))
    place = last_certified(held, grid, 1 - grid, 0.995, ERROR)
    assert 0.19 < grid[place] < 0.25


def test_p_values_are_those_of_the_exact_bound():
    """A threshold is rejected just where the Clopper-Pearson bound reaches what is wanted."""
    for rows, differ in ((598, 0), (597, 0), (2000, 4), (2000, 5), (2500, 6), (3000, 9)):
        bound = lower_bound(rows - differ, rows, 0.95)
        assert (p_values(np.array([rows]), np.array([differ]), 0.995)[0] <= 0.05) == (bound >= 0.995)
    assert p_values(np.array([0]), np.array([0]), 0.995).tolist() == [1.0]
    assert p_values(np.array([fewest_rows(0.995, 0.05)]), np.array([0]), 0.995)[0] <= 0.05


def test_a_hypothesis_that_is_kept_passes_on_nothing():
    p = np.array([0.5, 0.01, 0.02, 0.2, 0.001])
    for begins, last in (([1], 2), ([0], None), ([4], 4), ([0, 1], 2), ([1, 3], 2), ([1, 4], 4)):
        allowances = np.zeros(5)
        allowances[begins] = 0.05 / len(begins)
        assert last_rejection(p, allowances) == last
    assert last_rejection(np.array([0.02, 0.04, 0.06]), np.array([0.025, 0.025, 0.0])) == 1  # with both allowances
    assert last_rejection(np.zeros(3), np.zeros(3)) is None


@pytest.mark.parametrize(("n", "places"), [(300, 1), (700, 1), (2000, 2), (20_000, 2)])
def test_the_allowance_is_shared_out_and_no_more(n, places):
    shares = np.linspace(0.02, 1, 50)
    found = split_allowance(shares, n, 0.995, 0.05)
    assert found.sum() == pytest.approx(0.05)
    assert np.count_nonzero(found) == places
    assert n < 598 or (shares[np.flatnonzero(found)] * n >= 598).all()


def test_margins_that_are_all_alike_are_one_threshold():
    assert threshold_grid(np.ones(100)).tolist() == [0.0]
    assert split_allowance(np.array([1.0]), 100, 0.995, 0.05).tolist() == [0.05]
    held = HeldOutMargins(np.ones(700), np.ones(700, bool))
    assert last_certified(held, np.array([0.0]), np.array([1.0]), 0.995, 0.05) == 0
    fewer = HeldOutMargins(np.ones(500), np.ones(500, bool))
    assert last_certified(fewer, np.array([0.0]), np.array([1.0]), 0.995, 0.05) is None


@pytest.mark.parametrize(("n", "differ", "found"), [(500, 0, True), (2000, 8, True), (500, 100, False)])
def test_how_many_rows_would_do(n, differ, found):
    held = HeldOutMargins(np.ones(n), np.arange(n) >= differ)
    enough = enough_rows(held, np.array([0.0]), 0.995, 0.05)
    assert (enough is not None) == found
    if found:  # as many rows with as many differences are certified
        rows = np.array([enough])
        assert p_values(rows, np.ceil(rows * differ / n), 0.995)[0] <= 0.05
