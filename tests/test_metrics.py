import pytest

from ectype import metrics
from ectype.errors import SettingError


def test_conv_on_a_hand_computed_history():
    assert metrics.convergence([0.6, 0.8, 0.7, 0.5]) == pytest.approx((0.6 + 0.8 + 0.7 + 0.5) / 4 / 0.8)
    assert metrics.convergence([0.9]) == 1
    assert metrics.convergence([0.0, 0.0]) == 0


def test_eff_on_a_hand_computed_history():
    # Keeping all of 50 a round would use 50, 100, 150, 200.
    assert metrics.efficiency([50, 80, 70, 60], n=50) == pytest.approx(1 - 260 / 500)
    assert metrics.efficiency([50, 80, 70], n=[50, 100, 200]) == pytest.approx(1 - 200 / (50 + 150 + 350))
    with pytest.raises(SettingError, match="n: expected one number, or 3"):
        metrics.efficiency([50, 80, 70], n=[50, 100])


def test_eff_is_zero_for_pure_sequential_and_near_one_for_an_empty_set():
    assert metrics.efficiency([100, 200, 300, 400], n=100) == 0
    assert metrics.efficiency([100] + [0] * 29, n=100) == pytest.approx(1 - 100 / (100 * 30 * 31 / 2))


def test_shapes_that_do_not_match_are_refused():
    for a, b in (([0, 1, 1], [1]), ([[0], [1]], [0, 1]), ([], [])):
        with pytest.raises(SettingError, match="two lists of the same length"):
            metrics.accuracy(a, b)
    with pytest.raises(SettingError, match="one number per iteration"):
        metrics.convergence([])


def test_fidelity_compares_labels_of_any_type():
    assert metrics.fidelity(["a", "b", "b"], ["a", "b", "a"]) == pytest.approx(2 / 3)
    assert metrics.accuracy([True, False], [True, True]) == 0.5
