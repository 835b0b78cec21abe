import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.svm import SVC

import ectype as ec
from ectype.certificate.bounds import HeldOut, lower_bound
from ectype.certificate.certificate import Bound, Certificate
from ectype.certificate.certify import certify
from ectype.errors import SettingError
from ectype.original import Labels
from ectype.space import Space
from problems import disc


@pytest.mark.parametrize(("agreed", "n"), [(1960, 2000), (2000, 2000), (1, 50), (17, 30), (0, 10)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_bound_is_clopper_pearson(agreed, n, confidence):
    exact = binomtest(agreed, n, alternative="greater").proportion_ci(confidence, "exact").low
    assert lower_bound(agreed, n, confidence) == pytest.approx(exact, abs=1e-9)


def test_the_bound_holds_as_often_as_it_says(rng):
    truth = 0.97
    agreed = rng.binomial(500, truth, size=4000)
    held = np.mean([lower_bound(int(k), 500) <= truth for k in agreed])
    assert held >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 4000)


def test_stopping_at_a_target_does_not_break_the_confidence(rng):
    """Copies that never deserve the target, looked at 30 times each, on one held-out set per run."""
    labels, truth, target, broken, broken_class, runs = Labels([0, 1]), 0.9, 0.9, 0, 0, 400
    for _ in range(runs):
        codes = rng.integers(0, 2, 300)
        held_out = HeldOut(np.zeros((300, 1)), codes, labels)
        for look in range(30):
            predicted = np.where(rng.uniform(size=300) > truth, 1 - codes, codes)
            proof = held_out.certify(predicted, 0.95, among=30)
            if proof.lower > target or look == 29:
                broken += proof.lower > truth
                broken_class += proof.per_class[0].lower > truth
                break
    assert broken / runs <= 0.05
    assert broken_class / runs <= 0.05


def test_the_error_is_shared_out_among_those_chosen_from():
    held_out = HeldOut(np.zeros((100, 1)), np.zeros(100, int), Labels([0]))
    proof = held_out.certify(np.zeros(100), 0.95, among=5)
    assert (proof.confidence, proof.level, proof.lower) == (0.95, 0.99, lower_bound(100, 100, 0.99))


def test_per_class_by_the_originals_answer():
    held_out = HeldOut(np.zeros((10, 1)), np.array([0] * 6 + [2] * 4), Labels(["a", "b", "c"]))
    proof = held_out.certify(np.array([0] * 5 + [1] + [2] * 4), 0.95)
    assert proof.estimate == 0.9
    assert proof.per_class == {"a": Bound(5 / 6, lower_bound(5, 6), 6), "c": Bound(1.0, lower_bound(4, 4), 4)}


def test_any_copy_against_any_original_on_fresh_rows(rng):
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] > 0, "right", "left")
    original, copy = SVC().fit(X, y), SVC(kernel="linear").fit(X, y)
    proof = certify(copy, original, Space.normal(2), n=5000, seed=3)
    rows = Space.normal(2).sample(50_000, rng)
    assert proof.estimate == pytest.approx(np.mean(original.predict(rows) == copy.predict(rows)), abs=0.01)
    assert proof.lower < proof.estimate
    assert proof.n == 5000
    assert set(proof.per_class) == {"left", "right"}
    assert certify(copy, original, Space.normal(2), n=500, seed=1) == certify(
        copy, original, Space.normal(2), n=500, seed=1
    )


def test_a_label_only_the_copy_knows_is_a_disagreement():
    proof = certify(lambda rows: np.where(rows[:, 0] > 2, "rare", "a"), lambda rows: ["a"] * len(rows), Space.normal(1))
    assert 0.95 < proof.estimate < 1
    assert certify(lambda rows: [1] * len(rows), lambda rows: ["a"] * len(rows), Space.normal(1)).estimate == 0


def test_an_original_that_changes_its_rows_fools_nobody():
    def shifting(rows):
        rows -= 3.0
        return rows[:, 0] > 0

    copy = lambda rows: rows[:, 0] > 3  # noqa: E731
    assert certify(copy, shifting, Space.uniform(0, 6, 2), n=500).estimate == 1


def test_json_round_trip_keeps_the_type_of_labels():
    proof = Certificate(0.9, 0.8, 0.95, 10, {1: Bound(1.0, 0.5, 4), 2: Bound(0.8, 0.3, 6)})
    assert Certificate.from_json(proof.as_json()) == proof


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n: expected a whole number of at least 1, found 0"),
        ({"n": 2.5}, "n: expected a whole number"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"confidence": "x"}, "between 0 and 1"),
        ({"seed": -1}, "seed: expected a whole number of at least 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(SettingError, match=message):
        certify(len, len, Space.normal(1), **options)


@pytest.mark.usefixtures("small_lesson")
def test_a_blend_is_certified(tmp_path):
    plane = Space.normal(2)
    ec.copy_classifier(disc, plane, budget=300, certificate_n=400, repeat=0, out=tmp_path / "run")
    loaded = ec.load(tmp_path / "run")
    assert loaded.family == "blend"
    rows = plane.sample(100_000, np.random.default_rng(2))
    truth = (loaded.copy.predict(rows) == disc(rows)).mean()
    assert loaded.certificate.lower < truth
    proofs = [certify(loaded.copy, disc, plane, n=1000, seed=seed) for seed in range(40)]
    assert np.mean([proof.estimate for proof in proofs]) == pytest.approx(truth, abs=0.002)
    assert sum(proof.lower > truth for proof in proofs) <= 5  # 40 * 5 %, and a little luck
    for proof in proofs[:3]:
        assert proof.per_class.keys() == {False, True}
        assert proof.near.estimate < proof.away.estimate  # its probabilities say where it may be wrong
