"""What a run advises: each kind where it is due, and none where it is not."""

import numpy as np
import pytest

import understudy as us
from cases import disc
from understudy.certificate.advice import SCORED, advised
from understudy.certificate.values import Certificate

PLANE = us.Space.normal(2)


def certificate(estimate, n=2000, on_data=None):
    return Certificate(estimate, estimate - 0.01, 0.95, n, on_data=on_data)


def course(power, error=0.08, rounds=6):
    """Errors that fall by a power of the queries, to this one at the end."""
    queries = [round(3000 * 1.46 ** (t - rounds + 1)) for t in range(rounds)]
    return [(n, error * (n / 3000) ** -power) for n in queries]


def kinds(*arguments, **options):
    return {one.about: one for one in advised(*arguments, **options)}


@pytest.mark.parametrize("power", [0.3, 0.6])
def test_a_falling_error_is_followed_to_twice_the_budget(power):
    found = kinds(certificate(0.92), course(power))
    assert set(found) == {"budget"}
    assert found["budget"].gain == pytest.approx(0.08 * (1 - 2**-power), rel=0.01)
    assert f"{100 * found['budget'].gain:.1f} points" in found["budget"].text


def test_a_flat_curve_says_so():
    found = kinds(certificate(0.92), course(0.0))
    assert set(found) == {"flat"}
    assert found["flat"].gain is None


def test_too_few_rounds_tell_nothing():
    assert kinds(certificate(0.92), course(0.5, rounds=2)) == {}


def test_scores_that_were_not_used_are_worth_more_answers():
    found = kinds(certificate(0.92), course(0.5), scores=True)
    assert found["scores"].gain == pytest.approx(0.08 * (1 - SCORED**-0.5), rel=0.01)
    assert "--scores" in found["scores"].text
    assert kinds(certificate(0.92), course(0.0), scores=True)["scores"].gain is None
    assert "scores" not in kinds(certificate(1.0), course(0.5), scores=True)  # nothing is left to gain


def test_a_family_is_named_only_if_the_difference_is_more_than_chance():
    assert kinds(certificate(0.90), course(0.5), blend=0.95)["family"].gain == pytest.approx(0.05)
    assert "family" not in kinds(certificate(0.90), course(0.5), blend=0.905)


def test_own_rows_on_which_the_copy_does_worse():
    assert "rows" in kinds(certificate(0.95, on_data=certificate(0.90, 500)), course(0.5))
    assert "rows" not in kinds(certificate(0.95, on_data=certificate(0.94, 500)), course(0.5))


def test_a_run_keeps_its_advice(tmp_path):
    weights = np.random.default_rng(0).normal(size=8)
    smooth = us.Original(lambda rows: rows @ weights + rows[:, 0] * rows[:, 1] > 0, [False, True], name="smooth")
    result = us.copy_classifier(
        smooth, us.Space.normal(8), to="tree", budget=400, certificate_n=1000, repeat=0, out=tmp_path / "run"
    )
    assert "family" in {one.about for one in result.advice}  # a tree is no match for a smooth boundary
    limited = us.copy_classifier(smooth, us.Space.normal(8), to="tree", max_leaves=9, budget=400, certificate_n=1000)
    assert "family" not in {one.about for one in limited.advice}  # a blend would not keep to that
    assert us.load(tmp_path / "run").advice == result.advice
    assert result.summary()["advice"][0]["about"] == "family"
    assert us.copy_classifier(disc, PLANE, budget=300, certificate_n=0, repeat=0).advice == []
