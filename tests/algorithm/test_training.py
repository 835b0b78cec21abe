"""Training, compiled and not: Algorithms 3 and 4."""

import os
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.algorithm.memory import bounded, norm
from understudy.algorithm.network import MLP, forward
from understudy.algorithm.samples import Samples
from understudy.algorithm.training import Trainer, annealed, plain, staged, steps
from understudy.algorithm.training.batches import Groups, Shuffled, draw_rows
from understudy.algorithm.training.compiled import Kind, bucket, evaluate, gradient, program
from understudy.algorithm.training.schedule import step_sizes
from understudy.algorithm.training.uncompiled import Gradient, one_hot, with_ones
from understudy.algorithm.uncertainty import LOSSES, empirical_risk, rho
from understudy.errors import SettingError


@pytest.mark.parametrize(("penalty", "name"), [(bounded, "bounded"), (norm, "norm")])
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_the_gradient_agrees_with_finite_differences(small, rng, penalty, name, lam):
    network, theta, S = small
    previous = theta + rng.normal(scale=0.1, size=theta.shape).astype(np.float32)
    kind = Kind(network, LOSSES["rho"], penalty, 32)
    by_engine = np.asarray(gradient(kind, *map(jnp.asarray, (theta, previous, lam, S.X, S.y))))

    def objective(theta):  # in float64, from the definitions
        difference = theta - previous
        memory = np.tanh(np.mean(difference**2)) if name == "bounded" else np.linalg.norm(difference)
        return empirical_risk(forward(network.layers(theta), S.X.astype(np.float64)), S.y) + lam * memory

    np.testing.assert_allclose(by_engine, differences(objective, theta), atol=2e-6, rtol=1e-3)


def test_the_gradient_of_cross_entropy_agrees_with_finite_differences(small):
    network, theta, S = small
    kind = Kind(network, LOSSES["cross-entropy"], None, 32)
    by_engine = np.asarray(gradient(kind, *map(jnp.asarray, (theta, theta, 2.0, S.X, S.y))))

    def objective(theta):
        right = forward(network.layers(theta), S.X.astype(np.float64))[np.arange(len(S)), S.y]
        return -np.log(right).mean()

    np.testing.assert_allclose(by_engine, differences(objective, theta), atol=2e-6, rtol=1e-3)


@pytest.mark.parametrize(("hidden", "n_c"), [((), 2), ((7,), 3), ((64, 32, 10), 5)])
def test_the_gradient_in_numpy_is_the_compiled_one(rng, hidden, n_c):
    network = MLP(4, hidden, n_c)
    theta, X = network.initial(rng), rng.normal(size=(90, 4)).astype(np.float32)
    y, rows = rng.integers(n_c, size=90).astype(np.int32), rng.integers(90, size=32)
    g = np.empty_like(theta)
    found = Gradient(network, theta, g, 32)
    for _ in range(2):  # what is left of one call does not change the next
        found(with_ones(X[rows]), one_hot(y[rows], n_c))
        kind = Kind(network, LOSSES["cross-entropy"], None, 32)
        compiled = gradient(kind, *map(jnp.asarray, (theta, theta, 0.0, X[rows], y[rows])))
        np.testing.assert_allclose(g / 32, compiled, atol=1e-6, rtol=1e-4)
        theta -= 0.1 * g / 32
        rows = rows[::-1]


def differences(objective, theta, h=1e-6):
    """The gradient of a function by central differences, in float64."""
    theta = theta.astype(np.float64)
    steps = h * np.eye(len(theta))
    return np.array([(objective(theta + step) - objective(theta - step)) / (2 * h) for step in steps])


def test_the_gradient_is_not_lost_where_rho_is_tiny():
    network = MLP(1, (), 2)
    for gap in (10.0, 20.0):
        theta = jnp.array([0, 0, gap, 0])
        kind = Kind(network, LOSSES["rho"], bounded, 32)
        found = gradient(kind, theta, theta, 0.0, jnp.zeros((1, 1)), jnp.zeros(1, int))
        q = 1 / (1 + np.exp(gap))
        np.testing.assert_allclose(found[2:], [-2 * q * q * (1 - q), 2 * q * q * (1 - q)], rtol=1e-4)


def test_evaluation_ignores_the_padding(small):
    network, theta, S = small
    X, y = np.zeros((512, 2), np.float32), np.zeros(512, np.int32)
    X[: len(S)], y[: len(S)] = S.X, S.y
    risk, mean_rho = evaluate(network, *map(jnp.asarray, (theta, X, y, len(S))))
    values = rho(network.probabilities(theta, S.X), S.y)
    assert float(risk) == pytest.approx(np.mean(values**2), rel=1e-5)
    assert float(mean_rho) == pytest.approx(np.mean(values), rel=1e-5)


def at_random(groups, n):
    return np.asarray(draw_rows(jax.random.bits(jax.random.key(0), (2, n)), groups))


def shuffled(groups, n):
    rows = Shuffled(np.random.default_rng(0), groups)
    return np.concatenate([rows.draw(n // 10) for _ in range(10)])


@pytest.mark.parametrize("drawn", [at_random, shuffled])
def test_balanced_batches_draw_every_class_present_equally_often(drawn):
    counts = np.array([1, 0, 300, 30])  # class 1 is absent
    rows = drawn(Groups.of(counts, 4), 96000)
    y = np.repeat(np.arange(4), counts)
    share = np.bincount(y[rows], minlength=4) / len(rows)
    np.testing.assert_allclose(share, [1 / 3, 0, 1 / 3, 1 / 3], atol=0.01)
    within = np.bincount(rows, minlength=len(y))[y == 2]
    assert within.min() > 0.6 * within.mean()  # every row of a class has its turn
    assert rows.max() < len(y)


@pytest.mark.parametrize("drawn", [at_random, shuffled])
@pytest.mark.parametrize(("counts", "weight"), [([300], 3.0), ([300], 0.5), ([1, 0, 300, 30], 3.0), ([100, 200], 1e6)])
def test_what_is_rehearsed_is_drawn_as_often_as_its_weight_says(counts, weight, drawn):
    counts = np.array(counts)
    groups = Groups.of(counts, 64).before(counts.sum(), 50, weight)
    rows = drawn(groups, 96000)
    old, kinds = rows[rows < counts.sum()], (counts > 0).sum()
    assert len(old) / len(rows) == pytest.approx(max(1 / (1 + weight), kinds / 64), abs=0.01)
    share = np.bincount(np.repeat(np.arange(len(counts)), counts)[old], minlength=len(counts)) / len(old)
    np.testing.assert_allclose(share, (counts > 0) / kinds, atol=0.05)  # in whole places
    assert rows.max() == counts.sum() + 49


@pytest.mark.parametrize("counts", [[7], [7, 0, 5]])
def test_shuffled_rows_all_come_before_one_comes_again(counts):
    counts = np.array(counts)
    rows = Shuffled(np.random.default_rng(0), Groups.of(counts, 96))
    drawn = np.concatenate([rows.draw(n) for n in (1, 16, 2, 40, 300)])
    for first, count in zip((np.cumsum(counts) - counts)[counts > 0], counts[counts > 0], strict=True):
        of_class = drawn[(drawn >= first) & (drawn < first + count)]
        rounds = of_class[: len(of_class) // count * count].reshape(-1, count)
        assert (np.sort(rounds) == np.arange(first, first + count)).all()
        assert len(np.unique(rounds, axis=0)) > 1  # each time in another order


def test_the_step_size_falls_over_the_share_of_a_round_that_is_annealed():
    k = np.full(5, 1e6)  # so late that moments need no correction
    progress = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    assert step_sizes(0.1, k, progress, plain()) == pytest.approx([0.1] * 5)
    assert step_sizes(0.1, k, progress, steps(9, anneal=0.5)) == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.0])
    cosine = [0.05 + 0.05 * np.cos(np.pi * p) for p in progress]
    assert step_sizes(0.1, k, progress, annealed()) == pytest.approx(cosine)


def test_the_step_size_rises_while_it_warms_up():
    k, none = np.array([1.0, 20, 40, 80]), np.zeros(4)
    at_once, warm = (step_sizes(0.1, k, none, steps(9, warm=n)) for n in (0, 40))
    assert warm / at_once == pytest.approx([1 / 40, 0.5, 1, 1])


def test_the_last_rounds_take_short_steps(small):
    network, theta, S = small
    train = Trainer(network, schedule=steps(1), rate=1e-3, ending=5)
    moved = [np.abs(train(theta, S, 0.0, t).theta - theta).max() for t in (4, 5, 6)]
    assert moved == pytest.approx([1e-3, 2.5e-5, 2.5e-5], rel=0.05)


def test_plain_runs_every_epoch_and_staged_stops_early(small):
    network, theta, S = small
    easy = Samples(S.X, (S.X[:, 0] > 0).astype(np.int32))
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


def test_compiled_programs_are_kept_for_the_next_process(tmp_path):
    code = (
        "import understudy as us;"
        "us.copy_classifier(lambda rows: rows[:, 0] > 0, us.Space.normal(1), budget=100, schedule=2, certificate_n=0)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert any((tmp_path / "understudy" / "jax").iterdir())


def test_a_stage_never_exceeds_the_epochs_of_the_round(small):
    network, theta, S = small
    assert Trainer(network, schedule=staged(1e-9, epochs=13, capacity=8, look_every=5))(theta, S, 0.0, 0).epochs == 13


@pytest.mark.parametrize("penalty", [bounded, norm])
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
        "import hashlib, numpy as np, understudy as us;"
        "disc = lambda rows: (rows**2).sum(axis=1) < 1;"
        "r = us.copy_classifier(disc, us.Space.normal(2), budget=300, schedule=30, certificate_n=0, seed=5);"
        "print(hashlib.sha256(r.copy.model.theta.tobytes()).hexdigest())"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) == 65


def test_a_growing_sample_set_compiles_a_handful_of_programs(rng):
    network = MLP(3, (11, 7), 2)
    theta, trainer = network.initial(rng), Trainer(network, schedule=plain(1))
    before = program()._cache_size()
    for t in range(30):  # pure sequential at the paper's sizes
        X = rng.normal(size=(100 * (t + 1), 3)).astype(np.float32)
        trainer(theta, Samples(X, (X[:, 0] > 0).astype(np.int32)), 0.1 * t, t)
    assert program()._cache_size() - before == 4
    assert sorted({bucket(100 * t) for t in range(1, 31)}) == [512, 1024, 2048, 4096]


def test_unbalanced_batches_follow_the_sample_set(rng):
    network = MLP(2, (4,), 2)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    S = Samples(X, (np.arange(200) < 190).astype(np.int32))  # labels that say nothing about the rows
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


def plainly(network, **settings):
    """A trainer that can do without a program."""
    usual = {"loss": "cross-entropy", "penalty": None, "batch": 8, "rate": 1e-2, "decay": 0.05, "schedule": steps(150)}
    return Trainer(network, compiled=False, **{**usual, **settings})


@pytest.mark.parametrize("schedule", [steps(150), steps(150, anneal=0.3, warm=50), plain(70), annealed(70)])
def test_steps_in_numpy_are_those_of_the_program(small, schedule):
    network, theta, S = small
    # One point, however often: all batches are alike, whoever draws them.
    same = Samples(np.repeat(S.X[:1], 16, axis=0), np.repeat(S.y[:1], 16))
    train = plainly(network, schedule=schedule)
    found, expected = (replace(train, compiled=kind)(theta, same, 0.0, 3) for kind in (False, True))
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-4, rtol=1e-3)
    assert found.risk == pytest.approx(expected.risk, rel=0.01)
    assert (found.epochs, found.stages) == (expected.epochs, expected.stages)


def test_a_round_in_numpy_learns_and_is_the_same_with_the_same_seed(small):
    network, theta, S = small
    disc = Samples(S.X, ((S.X**2).sum(axis=1) < 1).astype(np.int32))
    train = plainly(network, schedule=steps(2000))
    found, again, other = (replace(train, seed=seed)(theta, disc, 0.0, 0) for seed in (1, 1, 2))
    assert found.risk < 0.03
    assert found.theta.tobytes() == again.theta.tobytes() != other.theta.tobytes()
    values = rho(network.probabilities(found.theta, disc.X), disc.y)
    assert (found.risk, found.mean_rho) == pytest.approx((np.mean(values**2), np.mean(values)))


def test_what_numpy_cannot_train_is_compiled(small):
    network, theta, S = small
    for settings in ({"loss": "rho"}, {"penalty": bounded}, {"schedule": staged(1e-3, epochs=50)}):
        train = plainly(network, **settings)
        expected = replace(train, compiled=True)(theta, S, 0.5, 0).theta
        assert train(theta, S, 0.5, 0).theta.tobytes() == expected.tobytes()


def test_steps_in_numpy_that_lead_nowhere_are_an_error(small):
    network, theta, S = small
    with pytest.raises(SettingError, match="training: expected a finite risk"):
        plainly(network, rate=1e30)(theta, S, 0.0, 0)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_last_round_may_take_longer(small, compiled):
    network, theta, S = small
    train = replace(plainly(network, schedule=steps(5, last=50), last=3), compiled=compiled)
    usual, longer = (replace(train, schedule=steps(n)) for n in (5, 50))
    for t, alike in ((2, usual), (3, longer), (4, usual)):
        assert train(theta, S, 0.0, t).theta.tobytes() == alike(theta, S, 0.0, t).theta.tobytes()


def test_a_fast_run_imports_no_more_than_it_needs():
    code = (
        "import sys, understudy as us;"
        "r = us.copy_classifier(lambda rows: (rows**2).sum(axis=1) < 1, us.Space.normal(2), preset='fast');"
        "assert r.certificate.estimate > 0.97, r.certificate;"
        "print(sorted({'jax', 'scipy.stats', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("compiled", [True, False])
def test_rehearsal_holds_on_to_what_was_answered_where_there_are_no_points(rng, compiled):
    network = MLP(1, (16,), 2)
    line = np.linspace(-2, 2, 200, dtype=np.float32)[:, None]
    everything = Samples(line, (line[:, 0] > 0).astype(np.int32))
    learn = Trainer(network, schedule=steps(1500), loss="cross-entropy", penalty=None, rate=4e-3, compiled=compiled)
    theta = learn(network.initial(rng), everything, 0.0, 0).theta
    contrary = Samples(line[:20], np.ones(20, np.int32))  # the far left has changed its mind

    def after(lam, rehearse=None):
        train = replace(learn, rehearse=rehearse)
        now = network.probabilities(train(theta, contrary, lam, 1).theta, line).argmax(axis=1)
        return (now == everything.y)[40:].mean(), (now[:20] == 1).mean()

    forgets, _ = after(0.0)
    remembers, learns = after(3.0, lambda t: line[20:])
    assert forgets < 0.7
    assert remembers > 0.95
    assert learns > 0.9
