"""copy_classifier from outside: what it does, and what it says when it cannot."""

import warnings
from itertools import islice, pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

import ectype as ec
from ectype.algorithm.memory import Automatic
from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import drop_compressed
from ectype.algorithm.training import Trainer, plain
from ectype.certificate.diagnosis import flattened
from ectype.errors import DirectoryError, EctypeError, EctypeWarning, OriginalError, SettingError, SpaceError
from ectype.models.copy_classifier import CopyClassifier
from ectype.plan.batch_schedule import growing
from ectype.plan.plan import Plan
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
QUICK = {"budget": 300, "schedule": 40, "certificate_n": 400}
PLANE = ec.Space.normal(2)


def same(first, second):
    """Whether two copies are the same, to the bit."""
    (about, arrays), (others, parts) = (copy.model.state() for copy in (first, second))
    return about == others and all(arrays[name].tobytes() == parts[name].tobytes() for name in {*arrays, *parts})


@pytest.mark.parametrize("method", ["sequential", "one-shot", "online"])
def test_every_method_copies(method):
    trained = {} if method == "one-shot" else {"schedule": 200}  # one-shot makes a blend of all answers at once
    result = ec.copy_classifier(disc, PLANE, method=method, budget=1000, certificate_n=1000, **trained)
    assert result.certificate.estimate > 0.9
    assert result.queries == {"training": 1000, "certificate": 1000, "repeat": 40}
    history = result.history
    rounds = {"one-shot": [1000], "online": list(range(100, 1001, 100))}
    assert [record.queries for record in history] == rounds.get(method, np.cumsum(growing(1000)).tolist())
    assert history[-1].fidelity == result.certificate.estimate
    assert result.kept == (100 if method == "online" else 1000)
    assert result.family == ("mlp" if method == "online" else "blend")
    assert result.stopped == "budget"


def test_dropping_pays_and_memory_is_automatic():
    result = ec.copy_classifier(
        disc, PLANE, iterations=12, preset="paper", schedule=300, delta=1e-2, certificate_n=1000
    )
    kept = [record.kept for record in result.history]
    assert kept[-1] < 0.5 * 1200
    assert sum(record.dropped for record in result.history) + kept[-1] == 1200
    lam = [record.lam for record in result.history]
    for t in range(2, 12):
        assert lam[t] == pytest.approx(lam[t - 1] / 2 if kept[t] >= kept[t - 1] else 1.5 * lam[t - 1])
    assert result.stopped == "iterations"


def test_the_papers_preset_is_algorithm_5_with_the_papers_settings():
    result = ec.copy_classifier(disc, PLANE, iterations=4, preset="paper", certificate_n=0, repeat=0, seed=7)
    network = MLP(2, (64, 32, 10), 2)
    rows = [PLANE.sample(100, np.random.default_rng([7, 2, t])) for t in range(4)]
    steps = ec.sequential(
        lambda t, theta: SampleSet(rows[t].astype(np.float32), disc(rows[t]).astype(np.int32)),
        network.initial(np.random.default_rng([7, 1, 0])),
        select=drop_compressed(network, 1e-6),
        memory=Automatic(initial=0.5),
        train=Trainer(network, plain(1000), "bounded", loss="rho", batch=32, balanced=True, rate=5e-4, seed=7),
    )
    *_, last = islice(steps, 4)
    np.testing.assert_array_equal(result.copy.model.theta, last.theta)
    assert result.kept == len(last.S)


def test_points_are_dropped_where_that_was_asked_for_and_only_then_is_anything_rehearsed():
    few = ec.copy_classifier(disc, PLANE, iterations=20, schedule=5, delta=1e-300, certificate_n=0, max_kept=250)
    assert [record.kept for record in few.history] == [100, 200] + [250] * 18
    assert [record.lam for record in few.history] == [0.0] * 2 + [7.0] * 18  # nothing to remember before
    everything = ec.copy_classifier(disc, PLANE, iterations=20, schedule=5, delta=1e-300, certificate_n=0)
    assert everything.kept == 2000
    unbounded = ec.copy_classifier(disc, PLANE, iterations=20, schedule=5, certificate_n=0)
    assert [record.kept for record in unbounded.history] == list(range(100, 2001, 100))
    growing_too = ec.copy_classifier(disc, PLANE, budget=2000, schedule=5, certificate_n=0)
    for whole in (unbounded, growing_too):  # where nothing is dropped, nothing is rehearsed
        assert {(record.dropped, record.lam) for record in whole.history} == {(0, 0.0)}
    assert [one.family for one in (few, everything, unbounded)] == ["mlp"] * 2 + ["blend"]


def test_the_fast_preset_spends_the_budget_in_three_parts_and_drops_nothing():
    result = ec.copy_classifier(disc, PLANE, budget=1001, preset="fast", certificate_n=0)
    assert [(record.queries, record.kept) for record in result.history] == [(n, n) for n in (333, 666, 999)]
    assert [result.settings["schedule"][key] for key in ("steps", "last", "anneal", "warm")] == [200, 600, 0.5, 80]
    large = ec.copy_classifier(disc, PLANE, budget=9000, preset="fast", schedule=1, certificate_n=0)
    assert large.kept == 9000
    few = Plan.of(ec.Settings(budget=3, preset="fast"))
    assert (few.batch, few.iterations) == (1, 3)
    usual = ec.copy_classifier(disc, PLANE, preset="fast", schedule=1, certificate_n=0)
    assert (len(usual.history), usual.history[-1].queries) == (3, 3000)
    chosen = ec.copy_classifier(disc, PLANE, preset="fast", schedule=1, batch=50, budget=500, certificate_n=0)
    assert [record.queries for record in chosen.history] == list(range(50, 501, 50))


def test_a_run_may_end_when_its_curve_is_flat():
    settings = {"iterations": 40, "schedule": 20, "certificate_n": 400, "repeat": 0, "delta": 1e-300}
    result = ec.copy_classifier(disc, PLANE, until_flat=True, **settings)
    curve = [record.fidelity for record in result.history]
    assert result.stopped == "plateau"
    assert 4 <= len(curve) < 40
    courses = [[(100 * k, fidelity) for k, fidelity in enumerate(curve[:t], 1)] for t in range(1, len(curve) + 1)]
    assert [flattened(course) for course in courses] == [False] * (len(curve) - 1) + [True]
    # Stopping by the held-out rows makes their bound wider: at each of 40 iterations it might have stopped.
    assert result.certificate.level == pytest.approx(1 - 0.05 / 40)
    whole = ec.copy_classifier(disc, PLANE, **{**settings, "iterations": len(curve)})
    assert whole.certificate.estimate == result.certificate.estimate
    assert whole.certificate.lower > result.certificate.lower


def test_a_run_whose_curve_is_flat_ends_with_a_copy_of_all_its_answers():
    settings = {"budget": 4000, "schedule": 20, "certificate_n": 400, "repeat": 0}
    result = ec.copy_classifier(lambda rows: rows[:, 0] > 0, PLANE, until_flat=True, **settings)
    assert result.stopped == "plateau"
    assert 4 <= len(result.history) < 12
    assert result.kept == result.queries["training"] == result.history[-1].queries < 4000
    assert result.family == "blend"
    assert result.certificate.level == pytest.approx(1 - 0.05 / 12)
    assert result.certificate.estimate == result.history[-1].fidelity > 0.95


def test_labels_come_back_in_their_own_type(rng):
    X = rng.normal(size=(300, 2))
    for labels in (np.array(["low", "high"]), np.array([-1, 1]), np.array([False, True])):
        model = SVC().fit(X, labels[(X[:, 0] > 0).astype(int)])
        copy = ec.copy_classifier(model, PLANE, **QUICK).copy
        answers = copy.predict(X)
        assert answers.dtype.kind == labels.dtype.kind
        assert set(answers) <= set(labels.tolist())
        assert copy.classes_.tolist() == sorted(labels.tolist())
        assert np.mean(answers == model.predict(X)) > 0.9
        assert copy.predict_proba(X).shape == (300, 2)


def test_a_table_of_real_columns_is_copied_in_its_own_units(rng):
    frame = pd.DataFrame({"income": rng.lognormal(10, 1, 500), "age": rng.integers(18, 90, 500)})
    model = LogisticRegression(max_iter=1000).fit(frame / [1e5, 100], frame["income"] > 20000 + 100 * frame["age"])
    original = ec.Original(lambda rows: model.predict(rows / [1e5, 100]), classes=[False, True])
    result = ec.copy_classifier(original, ec.Space.from_data(frame), budget=1000, schedule=200)
    assert result.certificate.estimate > 0.93
    shuffled = frame[["age", "income"]]
    np.testing.assert_array_equal(result.copy.predict(frame), result.copy.predict(shuffled))
    assert result.copy.predict(frame.assign(extra=1)).shape == (500,)
    with pytest.raises(SpaceError, match="all 2 columns of the space, found no 'income' among those given: 'age'"):
        result.copy.predict(frame[["age"]])


def test_an_original_fitted_on_a_frame_is_asked_with_frames(rng):
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    model = LogisticRegression().fit(frame, frame["a"] > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns when names are missing
        ec.copy_classifier(model, ec.Space.from_data(frame), **QUICK)
    with pytest.raises(
        SpaceError, match="the 2 columns that LogisticRegression takes, found none called 'b'; describe"
    ):
        ec.copy_classifier(model, ec.Space.from_data(frame.rename(columns={"b": "c"})), **QUICK)


def test_the_target_stops_the_run():
    result = ec.copy_classifier(disc, PLANE, budget=3000, schedule=200, target=0.9)
    assert result.stopped == "target"
    assert result.queries["training"] < 3000
    assert result.certificate.lower >= 0.9
    unreachable = ec.copy_classifier(disc, PLANE, **QUICK, target=0.9999)
    assert unreachable.stopped == "budget"


def test_the_budget_pays_for_whole_batches_only():
    asked = []
    original = ec.Original(lambda rows: asked.append(len(rows)) or disc(rows))
    result = ec.copy_classifier(original, PLANE, budget=350, batch=100, schedule=5, certificate_n=0)
    assert result.queries == {"training": 300, "certificate": 0, "repeat": 6}
    assert sum(asked) == 306
    assert result.certificate is None
    assert result.history[-1].fidelity is None


def test_batches_that_grow_spend_all_of_the_budget():
    asked = []
    original = ec.Original(lambda rows: asked.append(len(rows)) or disc(rows))
    result = ec.copy_classifier(original, PLANE, budget=351, schedule=5, certificate_n=0)
    assert result.queries == {"training": 351, "certificate": 0, "repeat": 8}
    assert asked == [53, 8, *growing(351)[1:]]  # a few again, among the first
    assert all(after > before for before, after in pairwise(growing(351)[1:]))


def test_training_never_sees_the_certificates_rows():
    asked = []
    original = ec.Original(lambda rows: asked.append(rows) or disc(rows))
    ec.copy_classifier(original, PLANE, **QUICK)
    rows = [tuple(row) for chunk in asked for row in chunk]
    assert (len(rows), len(set(rows))) == (714, 700)  # a few are asked again


def test_accuracy_is_recorded_where_test_data_is_given(rng):
    X = rng.normal(size=(200, 2))
    result = ec.copy_classifier(disc, PLANE, **QUICK, test=(X, disc(X)))
    assert result.history[-1].accuracy == ec.metrics.accuracy(disc(X), result.copy.predict(X))
    assert result.history[-1].agreement is None


def test_agreement_is_recorded_where_the_originals_answers_are_given(rng):
    X = rng.normal(size=(500, 2))
    truth = disc(X) ^ (rng.uniform(size=500) < 0.1)
    result = ec.copy_classifier(disc, PLANE, **QUICK, test=(X, truth, disc(X)))
    found = result.copy.predict(X)
    assert result.history[-1].agreement == ec.metrics.fidelity(disc(X), found)
    assert result.history[-1].accuracy == ec.metrics.accuracy(truth, found) < result.history[-1].agreement
    with pytest.raises(SettingError, match="one label per row"):
        ec.copy_classifier(disc, PLANE, **QUICK, test=(X, truth, disc(X)[:9]))


def test_one_class_is_copied_with_a_warning():
    with pytest.warns(EctypeWarning, match="answered 'yes' to every one of the first 445 queries"):
        result = ec.copy_classifier(lambda rows: ["yes"] * len(rows), PLANE, **QUICK)
    assert result.certificate.estimate == 1
    assert set(result.copy.predict([[0.0, 0.0], [9.0, 9.0]])) == {"yes"}


def test_one_class_of_two_declared_is_copied_with_a_warning():
    original = ec.Original(lambda rows: ["yes"] * len(rows), classes=["no", "yes"])
    with pytest.warns(EctypeWarning, match="check that the space covers"):
        result = ec.copy_classifier(original, PLANE, **QUICK)
    assert result.certificate.estimate == 1


def test_an_original_that_does_not_always_answer_alike_sets_a_ceiling():
    noise = np.random.default_rng(0)

    def moody(rows):
        return disc(rows) ^ (noise.random(len(rows)) < 0.1)

    with pytest.warns(EctypeWarning, match=r"answered \d+ of 500 rows differently when asked again: no copy can"):
        result = ec.copy_classifier(moody, PLANE, budget=1000, certificate_n=4000, schedule=50, repeat=0.1)
    assert result.queries["repeat"] == result.repeats.n == 500
    # Two answers differ with chance 0.18; a copy that is always right agrees with chance 0.9.
    assert result.repeats.ceiling == pytest.approx(0.9, abs=0.02)
    assert result.certificate.estimate < result.repeats.ceiling + 0.01
    assert result.summary()["repeats"]["ceiling"] == result.repeats.ceiling
    steady = ec.copy_classifier(disc, PLANE, **QUICK)
    assert (steady.repeats.disagreed, steady.repeats.ceiling) == (0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method: expected one of 'sequential', 'pure', 'one-shot', 'online', found 'magic'"),
        (
            {"to": "svm"},
            "to: expected one of 'mlp', 'linear', 'tree', 'forest', 'boosting', 'blend', 'auto', found 'svm'",
        ),
        ({"penalty": "l3"}, "penalty: expected one of 'bounded', 'norm', 'function', found 'l3'"),
        ({"budget": 0}, "budget: expected a whole number of at least 1, found 0"),
        ({"budget": -5}, "budget: expected a whole number of at least 1, found -5"),
        (
            {"budget": 99, "batch": 100},
            "budget: expected at least one batch of 100 queries, found 99; raise the budget",
        ),
        ({"batch": 0}, "batch: expected a whole number of at least 1, found 0"),
        ({"batch": 2.5}, "batch: expected a whole number of at least 1, found 2.5"),
        ({"iterations": 0}, "iterations: expected a whole number of at least 1, found 0"),
        ({"delta": np.array([1, 2])}, "delta: expected a number from 0 to below 1"),
        ({"budget": 99, "delta": 1e-6}, "budget: expected at least one batch of 100 queries, found 99"),
        ({"max_kept": 39}, "max_kept: expected at least one batch of 40 queries, found 39; keep more points"),
        ({"batch": 200, "max_kept": 150}, "max_kept: expected at least one batch of 200 queries, found 150"),
        ({"preset": "paper", "max_kept": 99}, "max_kept: expected at least one batch of 100 queries, found 99"),
        ({"method": "online", "max_kept": 50}, "max_kept: expected the method sequential, the only one that chooses"),
        ({"method": "one-shot", "max_kept": 50}, "max_kept: expected the method sequential, the only one that chooses"),
        ({"method": "pure", "max_kept": 50}, "max_kept: expected the method sequential, the only one that chooses"),
        ({"iterations": True}, "iterations: expected a whole number"),
        ({"certificate_n": -1}, "certificate_n: expected a whole number of at least 0, found -1"),
        ({"confidence": 95}, "confidence: expected a number between 0 and 1, found 95"),
        ({"target": 1.5}, "target: expected a number between 0 and 1, found 1.5"),
        ({"target": 0.9, "certificate_n": 0}, "held-out rows to measure the target with, found 0"),
        ({"max_kept": 0}, "max_kept: expected a whole number of at least 1, found 0"),
        ({"decay": 1}, "decay: expected a share from 0 to below 1, found 1"),
        ({"delta": -1e-3}, "delta: expected a number from 0 to below 1, found -0.001"),
        ({"memory": "some"}, "memory: expected 'automatic', 'none' or a number from 0 to below 1e+06, found 'some'"),
        ({"memory": -1.0}, "memory: expected 'automatic'"),
        ({"memory": 1e39}, "memory: expected 'automatic'"),
        ({"memory": np.array([1, 2])}, "memory: expected 'automatic'"),
        ({"method": np.array(["pure"])}, "method: expected one of"),
        ({"delta": 10**400}, "delta: expected a number from 0 to below 1"),
        ({"layers": 5}, "layers: expected the sizes of the hidden layers, such as (64, 32, 10), found 5"),
        ({"layers": "abc"}, "layers: expected the sizes"),
        (
            {"schedule": ec.training.steps(50, anneal=1.5)},
            "schedule.anneal: expected a share from 0 to 1, found 1.5",
        ),
        (
            {"schedule": ec.training.staged(look_every=0)},
            "schedule.look_every: expected a whole number of at least 1",
        ),
        (
            {"schedule": ec.training.staged(capacity=0)},
            "schedule.capacity: expected a whole number of at least 1",
        ),
        ({"schedule": ec.training.plain(-5)}, "schedule.epochs: expected a whole number of at least 1"),
        ({"schedule": ec.training.staged(float("nan"))}, "schedule.epsilon: expected a number"),
        ({"schedule": 3_000_000_000}, "schedule: expected a whole number of at least 1 and at most"),
        ({"test": 5}, "test: expected a pair of rows and labels, found 5"),
        ({"test": ([[1.0, 2.0]], [None])}, "test: expected one label per row, found None in row 0"),
        ({"layers": (64, 0)}, "layers: expected a whole number of at least 1, found 0"),
        ({"schedule": 0}, "schedule: expected a whole number of at least 1 and at most"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, found -1"),
        ({"draw": "worst"}, "draw: expected one of 'random', 'margin', 'balanced', 'committee', 'boundary'"),
        (
            {"draw": "balanced", "method": "one-shot"},
            "draw: expected none for the method one-shot, which asks",
        ),
        ({"until_flat": "yes"}, "until_flat: expected True or False, found 'yes'"),
        ({"until_flat": True, "certificate_n": 0}, "held-out rows to measure until_flat with, found 0"),
        ({"repeat": 1}, "repeat: expected a share from 0 to below 1, found 1"),
        ({"test": ([[1.0, 2.0, 3.0]], [1])}, "test: expected rows of 2 columns"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_asked(options, message, tmp_path):
    asked = []
    original = ec.Original(lambda rows: asked.append(1) or disc(rows))
    with pytest.raises((SettingError, SpaceError)) as caught:
        ec.copy_classifier(original, PLANE, out=tmp_path / "run", **options)
    assert message in str(caught.value)
    assert not asked
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (lambda rows: [np.nan] * len(rows), "NaN in row 0"),
        (lambda rows: [1] * (len(rows) - 1), "one label per row"),
        (lambda rows: np.full(len(rows), 0.3), "scores or probabilities"),
        (lambda rows: np.full((len(rows), 2), 0.5), "scores or one-hot rows"),
        (lambda rows: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_bad_original_leaves_a_ledger_that_the_mended_one_resumes(answers, message, tmp_path):
    box = ec.Original(answers, name="box")
    with pytest.raises(OriginalError, match=message):
        ec.copy_classifier(box, PLANE, out=tmp_path / "run", **QUICK)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["ledger.sqlite"]
    box.predict = disc
    assert ec.copy_classifier(box, PLANE, out=tmp_path / "run", **QUICK).certificate.estimate > 0.8


def test_an_original_that_changes_its_rows_is_copied_all_the_same():
    def shifting(rows):
        rows -= 3.0
        return rows[:, 0] > 0

    result = ec.copy_classifier(shifting, ec.Space.uniform(0, 6, 2), budget=1000, schedule=100)
    rows = ec.Space.uniform(0, 6, 2).sample(2000, np.random.default_rng(5))
    assert ec.metrics.fidelity(rows[:, 0] > 3, result.copy.predict(rows)) > 0.9


def test_classes_are_those_of_all_first_answers_and_stay_with_the_run():
    bands = ec.Original(lambda rows: np.digitize(rows[:, 0], [-1.5, -0.5, 0.5, 1.5]))
    quick = {"budget": 200, "schedule": 20, "certificate_n": 10}
    result = ec.copy_classifier(bands, ec.Space.normal(1), **quick)
    assert result.copy.classes_.tolist() == [0, 1, 2, 3, 4]
    narrow = ec.copy_classifier(bands, ec.Space.uniform(-0.4, 1, 1), **quick)
    assert narrow.copy.classes_.tolist() == [2, 3]
    with pytest.warns(EctypeWarning, match=r"none of the first 50 answers was 0, 1, 4, .*draw=\"balanced\""):
        declared = ec.copy_classifier(bands, ec.Space.uniform(-0.4, 1, 1), classes=range(5), **quick)
    assert declared.copy.classes_.tolist() == [0, 1, 2, 3, 4]


def test_a_label_that_was_not_declared_is_an_error():
    asked = []

    def drifting(rows):
        asked.append(len(rows))
        return np.full(len(rows), 2) if len(asked) > 3 else disc(rows).astype(int)

    with pytest.raises(OriginalError, match=r"a label among \[0, 1\], found 2; declare every class"):
        ec.copy_classifier(ec.Original(drifting, classes=[0, 1]), PLANE, **QUICK)


@pytest.mark.parametrize("draw", ["random", "margin"])
def test_a_late_label_gives_the_copy_another_output(tmp_path, draw):
    asked = []

    def rare(rows):
        asked.append(len(rows))
        return np.where(rows[:, 0] > 2.5, "rare", np.where(disc(rows), "in", "out"))

    quick = {"budget": 1500, "certificate_n": 20, "seed": 3, "repeat": 0, "draw": draw, "delta": 1e-300}
    result = ec.copy_classifier(rare, PLANE, **quick)
    assert sum(asked) == 1520  # what was asked before stays: nothing is asked about again
    assert result.copy.classes_.tolist() == ["in", "out", "rare"]
    assert result.copy.predict([[0.0, 0.0], [1.5, 1.5], [4.5, 0.0]]).tolist() == ["in", "out", "rare"]
    again = ec.copy_classifier(rare, PLANE, **quick, out=tmp_path / "run")
    np.testing.assert_array_equal(result.copy.model.theta, again.copy.model.theta)


def test_a_space_of_another_width_than_the_original_takes(rng):
    model = SVC().fit(rng.normal(size=(30, 3)), [0, 1, 1] * 10)
    with pytest.raises(SpaceError, match="the 3 columns that SVC takes, found 2"):
        ec.copy_classifier(model, PLANE, **QUICK)
    with pytest.raises(SpaceError, match="expected a Space, found int"):
        ec.copy_classifier(model, 3, **QUICK)

    def picky(rows):
        if rows.shape[1] != 3:
            raise ValueError("I take 3 columns")
        return rows[:, 0] > 0

    with pytest.raises(
        OriginalError, match=r"40 rows of 2 columns, found ValueError: I take 3.*that the space has the columns"
    ):
        ec.copy_classifier(picky, PLANE, budget=100, certificate_n=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[np.nan, 0.0]], "finite numbers, found nan in row 0"),
        ([[1.0, np.inf]], "finite numbers, found inf in row 0"),
        ([[1.0, 2.0, 3.0]], "rows of 2 columns, found 3"),
        ([1.0, 2.0], "a table of rows and columns"),
        ([["a", "b"]], "a table of numbers"),
    ],
)
def test_a_copy_refuses_rows_it_cannot_read(rows, message):
    copy = ec.copy_classifier(disc, PLANE, budget=100, schedule=2, certificate_n=0).copy
    with pytest.raises(SpaceError, match=message):
        copy.predict(rows)


def test_the_same_run_in_the_same_directory_is_loaded_and_another_refused(tmp_path):
    asked = []
    original = ec.Original(lambda rows: asked.append(len(rows)) or disc(rows), name="disc")
    first = ec.copy_classifier(original, PLANE, out=tmp_path / "run", **QUICK)
    again = ec.copy_classifier(original, PLANE, out=tmp_path / "run", **QUICK)
    paid = sum(asked)
    assert paid == 714  # once for each row, and a few again on purpose
    other = ec.Original(disc, name="another")
    with pytest.raises(DirectoryError, match="found a run with original 'disc' \\(now 'another'\\)"):
        ec.copy_classifier(other, PLANE, out=tmp_path / "run", **QUICK)
    assert same(first.copy, again.copy)
    assert again.history == first.history
    with pytest.raises(DirectoryError, match="found a run with seed 0 \\(now 1\\); choose another directory"):
        ec.copy_classifier(original, PLANE, out=tmp_path / "run", seed=1, **QUICK)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(DirectoryError, match="found other files; choose another directory"):
        ec.copy_classifier(original, PLANE, out=tmp_path / "other", **QUICK)
    assert sum(asked) == paid
    assert (tmp_path / "other" / "thesis.tex").read_text() == "mine"


def test_a_directory_that_cannot_be_written_is_refused_before_anything_is_asked(tmp_path):
    asked = []
    original = ec.Original(lambda rows: asked.append(len(rows)) or disc(rows))
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run", tmp_path / ("n" * 300), "/proc/run", "nul\0", 5):
        with pytest.raises(DirectoryError):
            ec.copy_classifier(original, PLANE, out=out, **QUICK)
    assert not asked
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("options", "stopped", "queries"),
    [
        ({"budget": 3000, "iterations": 2, "schedule": 2}, "iterations", 200),
        ({"budget": 250, "iterations": 20, "schedule": 2}, "budget", 200),
        ({"budget": 250, "method": "one-shot"}, "budget", 250),
        ({"budget": 50, "method": "one-shot"}, "budget", 50),
        ({"iterations": 2, "method": "one-shot"}, "iterations", 200),
    ],
)
def test_what_stopped_the_run_and_what_it_asked(options, stopped, queries):
    result = ec.copy_classifier(disc, PLANE, certificate_n=0, **options)
    assert (result.stopped, result.queries["training"]) == (stopped, queries)


def test_numpy_numbers_and_small_label_types_can_be_saved(tmp_path):
    original = ec.Original(lambda rows: disc(rows).astype(np.uint8))
    result = ec.copy_classifier(original, PLANE, budget=np.int64(200), delta=np.float32(1e-3), memory=np.float32(0.1),
                                schedule=ec.training.Schedule(np.int64(5)), certificate_n=np.int32(50),
                                out=tmp_path / "run")  # fmt: skip
    assert ec.load(tmp_path / "run").copy.predict([[0.0, 0.0]]).dtype == result.copy.predict([[0.0, 0.0]]).dtype


def test_frames_whose_columns_have_no_names_are_arrays(rng):
    frame = pd.DataFrame(rng.normal(size=(100, 2)))
    result = ec.copy_classifier(disc, ec.Space.from_data(frame), budget=100, schedule=5, certificate_n=0,
                                test=(frame, disc(frame)))  # fmt: skip
    assert result.copy.predict(frame).shape == (100,)


def test_values_far_out_give_an_answer():
    copy = ec.copy_classifier(disc, PLANE, **QUICK).copy
    assert np.isfinite(copy.predict_proba([[1e39, 0.0], [-1e300, 1e300]])).all()


def test_test_labels_of_another_type_are_refused(rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(SettingError, match=r"test: expected labels among \[False, True\], found labels such as 'True'"):
        ec.copy_classifier(disc, PLANE, **QUICK, test=(X, disc(X).astype(str)))


def test_every_error_is_one_of_ectype():
    for name in ("SettingError", "SpaceError", "OriginalError", "DirectoryError", "BudgetError"):
        assert issubclass(getattr(ec.errors, name), EctypeError)


def test_steps_can_be_followed_and_the_result_is_the_same():
    run, records = ec.copy_steps(disc, PLANE, ec.Settings(budget=200, schedule=10, certificate_n=0)), []
    while True:
        try:
            records.append(next(run))
        except StopIteration as end:
            result = end.value
            break
    assert records == result.history
    assert same(result.copy, ec.copy_classifier(disc, PLANE, budget=200, schedule=10, certificate_n=0).copy)
    assert not same(result.copy, ec.copy_classifier(disc, PLANE, budget=201, schedule=10, certificate_n=0).copy)


def test_many_features_and_classes_in_one_shot():
    """Small enough for every test run; benchmarks/scale.py does the full size."""
    original = ec.Original(lambda rows: np.abs(rows[:, :20]).argmax(axis=1), classes=range(20))
    result = ec.copy_classifier(original, ec.Space.normal(200), method="one-shot", preset="fast", budget=5000,
                                schedule=2, certificate_n=500)  # fmt: skip
    assert result.kept == 5000
    assert result.copy.predict(np.zeros((1, 200))).dtype.kind == "i"
    assert result.peak_mb > 50


def test_to_scikit_learn_a_copy_is_a_fitted_classifier(rng):
    copy = ec.copy_classifier(disc, PLANE, budget=300, preset="fast", certificate_n=0).copy
    rows = rng.normal(size=(200, 2))
    answers = disc(rows)
    assert is_classifier(copy)
    check_is_fitted(copy)
    assert clone(copy) is copy
    assert copy.score(rows, answers) == accuracy_score(answers, copy.predict(rows)) > 0.9
    weights = np.arange(200)
    assert copy.score(rows, answers, weights) == accuracy_score(answers, copy.predict(rows), sample_weight=weights)
    assert cross_val_score(copy, rows, answers, cv=3).mean() == pytest.approx(copy.score(rows, answers), abs=0.01)
    assert permutation_importance(copy, rows, answers, n_repeats=2).importances_mean.shape == (2,)
    surer = CalibratedClassifierCV(FrozenEstimator(copy)).fit(rows, answers)
    assert surer.predict_proba(rows).shape == (200, 2)
    assert Pipeline([("as it is", "passthrough"), ("copy", copy)]).predict(rows).tolist() == copy.predict(rows).tolist()
    assert CopyClassifier(**copy.get_params()).predict(rows).tolist() == copy.predict(rows).tolist()
    assert repr(copy) == "CopyClassifier(mlp of 2 columns, answers False, True)"
