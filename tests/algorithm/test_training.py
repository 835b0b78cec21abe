"""Training rounds: Algorithms 3 and 4. What a step of the engine computes is tested in tests/engine."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ectype._kernel import KernelTraining
from ectype.algorithm import training as module
from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.training import Trainer, annealed, plain, staged, steps
from ectype.algorithm.uncertainty import rho
from ectype.errors import SettingError


def test_the_risk_is_that_of_the_sample_set(small):
    network, theta, S = small
    found = Trainer(network, schedule=plain(5), rehearse=lambda t: S.X[:9] + 1)(theta, S, 2.0, 0)
    values = rho(network.probabilities(found.theta, S.X), S.y)
    assert (found.risk, found.mean_rho) == pytest.approx((np.mean(values**2), np.mean(values)), rel=1e-5)


@pytest.fixture
def trainings(monkeypatch):
    """What the engine is asked to train, and how."""
    seen = []

    def training(widths, theta, X, y, method, **more):
        seen.append({"X": X, "y": y, "method": method, **more})
        return KernelTraining(widths, theta, X, y, method, **more)

    monkeypatch.setattr(module, "KernelTraining", training)
    return seen


@pytest.mark.parametrize("balanced", [True, False])
def test_every_class_is_a_group_of_rows_in_balanced_batches(small, trainings, balanced):
    network, theta, S = small
    S = S.where(S.y != 1)  # a class that is absent
    Trainer(network, schedule=steps(1), balanced=balanced)(theta, S, 0.0, 0)
    (seen,) = trainings
    groups = seen["groups"]
    parts = [seen["y"][start : start + count] for start, count in zip(groups.starts, groups.counts, strict=True)]
    assert [np.unique(part).tolist() for part in parts] == ([[0], [2]] if balanced else [[0, 2]])
    assert sum(map(len, parts)) == len(S)
    assert np.bincount(groups.places).tolist() == [1] * len(parts)
    given, found = (
        {(*x, y) for x, y in zip(X.tolist(), y, strict=True)} for X, y in ((S.X, S.y), (seen["X"], seen["y"]))
    )
    assert given == found


@pytest.mark.parametrize(("lam", "share"), [(3.0, 0.75), (0.5, 1 / 3), (1e6, 1 - 3 / 96)])
def test_what_is_rehearsed_is_drawn_as_often_as_its_weight_says(small, trainings, lam, share):
    network, theta, S = small
    rows = S.X[:7] + 1
    Trainer(network, schedule=steps(1), rehearse=lambda t: rows)(theta, S, lam, 0)
    (seen,) = trainings
    groups, answers = seen["groups"], network.probabilities(theta, rows).argmax(axis=1)
    assert (int(groups.starts[-1]), int(groups.counts[-1])) == (len(S), 7)
    assert seen["X"][len(S) :].tobytes() == rows.tobytes()
    assert seen["y"][len(S) :].tolist() == answers.tolist()  # as the previous copy labels them
    assert np.mean(groups.places == len(groups.starts) - 1) == pytest.approx(share, abs=0.01)
    assert seen["method"].penalty == "none"


def test_nothing_is_rehearsed_without_a_weight(small, trainings):
    network, theta, S = small
    Trainer(network, schedule=steps(1), rehearse=lambda t: pytest.fail("no rows are needed"))(theta, S, 0.0, 0)
    assert len(trainings[0]["X"]) == len(S)


def test_the_memory_term_and_its_weight_reach_the_engine(small, trainings):
    network, theta, S = small
    for penalty in ("bounded", "norm", "none"):
        Trainer(network, schedule=steps(1), penalty=penalty)(theta, S, 0.7, 0)
    assert [(given["method"].penalty, given["method"].lam) for given in trainings] == [
        ("bounded", 0.7), ("norm", 0.7), ("none", 0.7),
    ]  # fmt: skip


def test_the_schedule_reaches_the_engine(small, trainings):
    network, theta, S = small
    for schedule in (plain(3), annealed(3), steps(9, anneal=0.5, warm=4)):
        Trainer(network, schedule=schedule)(theta, S, 0.0, 0)
    seen = [(given["method"].anneal, given["method"].warm, given["steps"]) for given in trainings]
    assert seen == [(0.0, 0, 6), (1.0, 0, 6), (0.5, 4, 9)]  # 60 points are two batches of 32


def test_plain_runs_every_epoch_and_staged_stops_early(small):
    network, theta, S = small
    easy = SampleSet(S.X, (S.X[:, 0] > 0).astype(np.int32))
    assert Trainer(network, schedule=plain(37))(theta, easy, 0.0, 0).epochs == 37
    loose = Trainer(network, schedule=staged(1e-2, epochs=3000))(theta, easy, 0.0, 0)
    tight = Trainer(network, schedule=staged(1e-3, epochs=3000))(theta, easy, 0.0, 0)
    assert loose.risk < 1e-2
    assert tight.risk < 1e-3
    assert loose.epochs < tight.epochs < 3000
    assert loose.stages <= tight.stages


def test_stages_halve_the_bound_and_double_the_capacity(small):
    network, theta, S = small
    # Labels at random: the risk never falls below a bound, so every stage uses up its capacity.
    stuck = Trainer(network, schedule=staged(1e-9, bound=1e-6, epochs=7 * 8, capacity=8, look_every=8))
    out = stuck(theta, S, 0.0, 0)
    assert (out.epochs, out.stages) == (56, 3)  # capacities 8 + 16 + 32
    # A bound above any risk is met at every look: the bound halves once a look until it is epsilon.
    met = Trainer(network, schedule=staged(1.0, bound=16.0, epochs=1000, capacity=100, look_every=1))
    assert met(theta, S, 0.0, 0).epochs == 0  # the risk is below epsilon from the start: nothing to do
    falling = Trainer(network, schedule=staged(1e-9, bound=16.0, epochs=10, capacity=100, look_every=1))
    assert falling(theta, S, 0.0, 0).stages >= 5  # 16, 8, 4, 2, 1 are above any risk


def test_a_large_first_bound_takes_many_stages_and_all_epochs(small):
    network, theta, S = small
    counted = Trainer(network, schedule=staged(1e-9, bound=1e9, epochs=300, capacity=64, look_every=8))(
        theta, S, 0.0, 0
    )
    by_hand = Trainer(network, schedule=staged(1e-9, bound=1e9, epochs=200, capacity=64, look_every=8))(
        theta, S, 0.0, 0
    )
    assert counted.epochs == 300
    assert counted.stages >= 30  # 1e9 halves thirty times before it is below any risk
    assert not np.array_equal(counted.theta, by_hand.theta)  # the last hundred epochs were trained


def test_more_steps_than_can_be_counted_are_refused(small):
    network, theta, S = small
    with pytest.raises(SettingError, match="fewer than 2\\*\\*31 steps a round"):
        Trainer(network, schedule=plain(2**30))(theta, S, 0.0, 0)


def test_a_risk_that_is_not_finite_is_an_error(small):
    network, theta, S = small
    with pytest.raises(SettingError, match="training: expected a finite risk"):
        Trainer(network, schedule=plain(5))(theta, S, np.inf, 0)


def test_a_stage_never_exceeds_the_epochs_of_the_round(small):
    network, theta, S = small
    assert Trainer(network, schedule=staged(1e-9, epochs=13, capacity=8, look_every=5))(theta, S, 0.0, 0).epochs == 13


@pytest.mark.parametrize("penalty", ["bounded", "norm"])
def test_the_memory_term_holds_the_parameters_back(small, penalty):
    network, theta, S = small

    def moved(lam):
        out = Trainer(network, schedule=plain(200), penalty=penalty)(theta, S, lam, 0)
        return np.linalg.norm(out.theta - theta)

    free, held, tied = moved(0.0), moved(1.0), moved(100.0)
    assert held < 0.8 * free
    assert tied < 0.5 * free


def test_an_empty_sample_set_changes_nothing(small):
    network, theta, S = small
    out = Trainer(network)(theta, S.where(np.zeros(len(S), bool)), 0.5, 3)
    assert out.theta is theta
    assert (out.risk, out.epochs) == (0.0, 0)


def test_same_seed_same_bits_and_another_seed_another_copy(small):
    network, theta, S = small

    def run(seed, t=0):
        return Trainer(network, schedule=annealed(20), seed=seed)(theta, S, 0.1, t).theta

    assert run(1).tobytes() == run(1).tobytes()
    assert run(1).tobytes() != run(2).tobytes()
    assert run(1).tobytes() != run(1, t=1).tobytes()


def test_same_seed_same_bits_in_another_process():
    code = (
        "import hashlib, numpy as np, ectype as ec;"
        "disc = lambda rows: (rows**2).sum(axis=1) < 1;"
        "r = ec.copy_classifier(disc, ec.Space.normal(2), budget=300, schedule=30, certificate_n=0, seed=5);"
        "parts = r.copy.model.state()[1];"
        "print(hashlib.sha256(b''.join(parts[name].tobytes() for name in sorted(parts))).hexdigest())"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) == 65


def test_unbalanced_batches_follow_the_sample_set(rng):
    network = MLP(2, (4,), 2)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    S = SampleSet(X, (np.arange(200) < 190).astype(np.int32))  # labels that say nothing about the rows
    theta = network.initial(rng)
    share = {}
    for balanced in (True, False):
        out = Trainer(network, schedule=plain(300), balanced=balanced)(theta, S, 0.0, 0)
        share[balanced] = network.probabilities(out.theta, X)[:, 1].mean()
    assert share[False] > 0.85
    assert share[True] < 0.75


def test_a_number_of_steps_does_not_depend_on_the_number_of_points(small):
    network, theta, S = small
    train = Trainer(network, schedule=steps(1), decay=0.5, rate=1e-3)
    for part in (S, S.where(np.arange(len(S)) < 5)):
        moved = np.abs(train(theta, part, 0.0, 0).theta - theta)
        assert (moved <= 1.01e-3 * (1 + 0.5 * np.abs(theta))).all()  # no further than a single step of Adam goes
        assert moved.max() > 0.9e-3


def shortly(network, **settings):
    """A trainer as in `preset="fast"`."""
    usual = {"loss": "cross-entropy", "penalty": "none", "order": "shuffled", "batch": 8, "rate": 1e-2, "decay": 0.05}
    return Trainer(network, **{**usual, "schedule": steps(150), **settings})


def test_a_short_round_learns_and_is_the_same_with_the_same_seed(small):
    network, theta, S = small
    disc = SampleSet(S.X, ((S.X**2).sum(axis=1) < 1).astype(np.int32))
    train = shortly(network, schedule=steps(2000))
    found, again, other = (replace(train, seed=seed)(theta, disc, 0.0, 0) for seed in (1, 1, 2))
    assert found.risk < 0.03
    assert found.theta.tobytes() == again.theta.tobytes() != other.theta.tobytes()
    values = rho(network.probabilities(found.theta, disc.X), disc.y)
    assert (found.risk, found.mean_rho) == pytest.approx((np.mean(values**2), np.mean(values)))


def test_steps_that_lead_nowhere_are_an_error(small):
    network, theta, S = small
    with pytest.raises(SettingError, match="training: expected a finite risk"):
        shortly(network, rate=1e30)(theta, S, 0.0, 0)


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_inputs_that_are_not_finite_end_in_that_error(small, wrong, order):
    network, theta, S = small
    S.X[3, 0] = wrong
    for schedule in (plain(20), staged(1e-9, epochs=20), steps(50)):
        train = Trainer(network, schedule=schedule, order=order)
        with pytest.raises(SettingError, match="training: expected a finite risk"):
            train(theta, S, 0.5, 0)


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
def test_the_last_round_may_take_longer(small, order):
    network, theta, S = small
    train = shortly(network, schedule=steps(5, last=50), last=3, order=order)
    usual, longer = (replace(train, schedule=steps(n)) for n in (5, 50))
    for t, alike in ((2, usual), (3, longer), (4, usual)):
        assert train(theta, S, 0.0, t).theta.tobytes() == alike(theta, S, 0.0, t).theta.tobytes()


@pytest.mark.parametrize("preset", ["default", "fast"])
def test_a_run_imports_no_more_than_it_needs(preset):
    code = (
        "import sys, ectype as ec;"
        f"r = ec.copy_classifier(lambda rows: (rows**2).sum(axis=1) < 1, ec.Space.normal(2), preset={preset!r});"
        "assert r.certificate.estimate > 0.97, r.certificate;"
        "print(sorted({'jax', 'jaxlib', 'scipy.stats', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
def test_rehearsal_holds_on_to_what_was_answered_where_there_are_no_points(rng, order):
    network = MLP(1, (16,), 2)
    line = np.linspace(-2, 2, 200, dtype=np.float32)[:, None]
    everything = SampleSet(line, (line[:, 0] > 0).astype(np.int32))
    learn = Trainer(network, schedule=steps(1500), loss="cross-entropy", penalty="none", rate=4e-3, order=order)
    theta = learn(network.initial(rng), everything, 0.0, 0).theta
    contrary = SampleSet(line[:20], np.ones(20, np.int32))  # the far left has changed its mind

    def after(lam, rehearse=None):
        train = replace(learn, rehearse=rehearse)
        now = network.probabilities(train(theta, contrary, lam, 1).theta, line).argmax(axis=1)
        return (now == everything.y)[40:].mean(), (now[:20] == 1).mean()

    forgets, _ = after(0.0)
    remembers, learns = after(3.0, lambda t: line[20:])
    assert forgets < 0.7
    assert remembers > 0.95
    assert learns > 0.9
