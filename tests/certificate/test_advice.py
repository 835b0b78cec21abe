"""What a run advises: each kind where it is due, and none where it is not."""

import numpy as np
import pytest

import ectype as ec
from ectype.certificate.certificate import Bound, Certificate
from ectype.certificate.diagnosis import advise
from problems import disc

PLANE = ec.Space.normal(2)


def certificate(estimate, n=2000, on_data=None):
    return Certificate(estimate, estimate - 0.01, 0.95, n, on_data=on_data)


def course(power, error=0.08, rounds=6):
    """Errors that fall by a power of the queries, to this one at the end."""
    queries = [round(3000 * 1.46 ** (t - rounds + 1)) for t in range(rounds)]
    return [(n, error * (n / 3000) ** -power) for n in queries]


def kinds(*arguments, **options):
    return {one.about: one for one in advise(*arguments, **options)}


@pytest.mark.parametrize("power", [0.3, 0.6])
def test_a_falling_error_is_followed_to_twice_the_budget(power):
    """Half as far as the few rounds say, and half as far as errors usually fall."""
    found = kinds(certificate(0.92), course(power))
    assert set(found) == {"budget"}
    gain = 0.08 * (1 - 2 ** -((power + 0.25) / 2))
    assert found["budget"].gain == pytest.approx(gain, rel=0.01)
    assert f"about {100 * gain:.1f} points more faithful" in found["budget"].text
    assert f"({50 * gain:.1f} to {200 * gain:.1f} nine times in ten)" in found["budget"].text


def test_of_a_flat_curve_nothing_is_said():
    """Not that more answers would not help: where that was said, they helped."""
    assert kinds(certificate(0.92), course(0.0)) == {}


def test_too_few_rounds_tell_nothing():
    assert kinds(certificate(0.92), course(0.5, rounds=2)) == {}


def test_scores_that_were_not_used_would_help():
    for power in (0.0, 0.5):
        found = kinds(certificate(0.92), course(power), scores=True)
        assert found["scores"].gain is None
        assert "--scores" in found["scores"].text
    assert "scores" not in kinds(certificate(1.0), course(0.5), scores=True)  # nothing is left to gain


def labelled(**counts):
    parts = {label: Bound(agreed / n, 0.0, n) for label, (agreed, n) in counts.items()}
    n = sum(bound.n for bound in parts.values())
    return Certificate(sum(agreed for agreed, _ in counts.values()) / n, 0.0, 0.95, n, parts)


@pytest.mark.parametrize(
    ("counts", "budget", "due"),
    [
        ({"ok": (1900, 1980), "fraud": (8, 20)}, 1000, True),
        ({"ok": (1900, 1980), "fraud": (8, 20)}, 900, False),  # too few answers to know where to look
        ({"ok": (1900, 1980), "fraud": (12, 20)}, 1000, False),  # mostly found as it is
        ({"ok": (1800, 1900), "fraud": (30, 100)}, 1000, False),  # not rare
    ],
)
def test_a_rare_label_that_is_missed_is_looked_for(counts, budget, due):
    curve = [(round(budget * 1.46 ** (t - 5)), 0.05) for t in range(6)]
    found = kinds(labelled(**counts), curve, choosable=True)
    assert ("label" in found) == due
    assert "label" not in kinds(labelled(**counts), curve)  # where rows cannot be chosen, or are already
    if due:
        assert "draw='balanced' (--draw balanced)" in found["label"].text
        assert "'fraud', now 8 of 20 rows" in found["label"].text


def test_a_run_that_misses_a_rare_label_says_how_to_look_for_it():
    ring = ec.Original(lambda rows: np.where(np.abs((rows**2).sum(axis=1) - 7) < 0.3, "rare", "ok"), ["ok", "rare"])
    settings = {"preset": "fast", "to": "linear", "budget": 1200, "certificate_n": 400, "repeat": 0}
    result = ec.copy_classifier(ring, PLANE, **settings)
    assert result.certificate.worst.label == "rare"
    assert [one.about for one in result.advice if one.about == "label"] == ["label"]
    assert "Advice: with draw='balanced' (--draw balanced)" in " ".join(str(result).split())
    assert not any(one.about == "label" for one in ec.copy_classifier(ring, PLANE, draw="balanced", **settings).advice)


def test_a_family_is_named_only_if_the_difference_is_more_than_chance():
    assert kinds(certificate(0.90), course(0.5), blend=0.95)["family"].gain == pytest.approx(0.05)
    assert "family" not in kinds(certificate(0.90), course(0.5), blend=0.905)


def test_of_own_rows_on_which_the_copy_does_worse_nothing_is_said():
    """Asking about more of them helped as often as not."""
    assert set(kinds(certificate(0.95, on_data=certificate(0.90, 500)), course(0.5))) == {"budget"}


def test_a_run_keeps_its_advice(tmp_path):
    weights = np.random.default_rng(0).normal(size=8)
    smooth = ec.Original(lambda rows: rows @ weights + rows[:, 0] * rows[:, 1] > 0, [False, True], name="smooth")
    result = ec.copy_classifier(
        smooth, ec.Space.normal(8), to="tree", budget=400, certificate_n=1000, repeat=0, out=tmp_path / "run"
    )
    assert "family" in {one.about for one in result.advice}  # a tree is no match for a smooth boundary
    limited = ec.copy_classifier(smooth, ec.Space.normal(8), to="tree", max_leaves=9, budget=400, certificate_n=1000)
    assert "family" not in {one.about for one in limited.advice}  # a blend would not keep to that
    assert ec.load(tmp_path / "run").advice == result.advice
    assert result.summary()["advice"][0]["about"] == "family"
    assert ec.copy_classifier(disc, PLANE, budget=300, certificate_n=0, repeat=0).advice == []
