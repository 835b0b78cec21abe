"""Steps of the kernel, against a reference in float64."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import reference
from interrupts import interrupted
from shapes import SHAPES, case

from ectype._kernel import KernelTraining, RowGroups, TrainingMethod
from ectype._kernel._ffi import SETS, address, use
from ectype._kernel._training import FIRST_MOMENT, SECOND_MOMENT
from ectype.algorithm.memory import PENALTIES
from ectype.errors import KernelError

ALL = TrainingMethod(batch=33, rate=0.01, activation="relu", penalty="none", lam=0.0)


def both(widths, theta, X, y, method, *, steps=100, groups=None, **more):
    """The same training by the kernel, and by the reference."""
    groups = groups or RowGroups.of(np.array([len(X)]))
    return tuple(
        kind(widths, theta, X, y, method, steps=steps, groups=groups, **more)
        for kind in (KernelTraining, reference.Training)
    )


def moments(training, first=None, second=None):
    """Where the kernel writes its moments to. If some are given, the training begins anew with them."""
    job, size = training._job, len(training._theta)
    found = np.zeros((2, size), np.float32)
    job.first, job.second = address(found[0]), address(found[1])
    if first is not None:
        # The kernel's moments lack the constant factors of their definitions.
        found[0] = first * job.batch / (1 - FIRST_MOMENT)
        found[1] = second * job.batch**2 / (1 - SECOND_MOMENT)
        training._kernel.training_begin(training._at, address(training._block))
    return found


def gradient(training):
    """The gradient of a batch: what the first moment is after one step from zero."""
    found = moments(training)
    training.run(1)
    assert training.theta is not None
    return found[0].astype(np.float64) / training._job.batch


def assert_close(found, expected, share=1e-6):
    """Alike up to this share of the length of the whole: single numbers are sums whose terms may cancel."""
    assert np.isfinite(found).all()
    assert np.linalg.norm(found - expected) <= share * np.linalg.norm(expected) + 1e-30


# --- the reference itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "mish"])
@pytest.mark.parametrize(("loss", "soft"), [("rho", False), ("cross-entropy", False), ("cross-entropy", True)])
@pytest.mark.parametrize("penalty", ["none", "bounded", "norm"])
def test_the_gradient_of_the_reference_agrees_with_finite_differences(rng, activation, loss, soft, penalty):
    widths = (3, 6, 4, 3)
    theta, X, y = case(widths, n=20, soft=soft)
    y = y.astype(np.float64) / y.sum(axis=1, keepdims=True, dtype=np.float64) if soft else y
    theta, weights = theta.astype(np.float64), rng.uniform(0, 2, 20)
    before = theta + rng.normal(scale=0.3, size=theta.shape)
    method = TrainingMethod(loss=loss, activation=activation, penalty=penalty, lam=0.7)

    def objective(theta):
        return reference.objective(widths, theta, X, y, method, weights, before)

    h = 1e-6
    expected = [(objective(theta + step) - objective(theta - step)) / (2 * h) for step in h * np.eye(len(theta))]
    found = reference.gradient(widths, theta, X, y, method, weights, before)
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=1e-6)


def test_the_penalties_of_the_reference_are_those_of_the_algorithm(rng):
    for name, penalty in PENALTIES.items():
        difference = rng.normal(size=40)
        assert reference.penalty(name, difference) == pytest.approx(penalty(difference), rel=1e-12)
        assert not reference.penalty_slope(name, np.zeros(40)).any()


# --- one step ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("widths", SHAPES, ids=str)
@pytest.mark.parametrize("batch", [1, 5, 16, 33, 256])
def test_the_gradient_is_right_for_any_shape(widths, batch, instructions):
    for activation, (loss, soft) in product(
        ("relu", "mish"), (("rho", False), ("cross-entropy", False), ("cross-entropy", True))
    ):
        theta, X, y = case(widths, soft=soft)
        method = replace(ALL, batch=batch, activation=activation, loss=loss)
        training, expected = both(widths, theta, X, y, method, seed=3)
        rows = expected.order.batch(0, batch)
        found, right = gradient(training), reference.gradient(widths, expected.theta, X[rows], y[rows], method)
        assert_close(found, right, 2e-6)  # of its length: every layer rounds to float32
        assert np.abs(found - right).max() <= 1e-6 * max(1, np.abs(right).max())


@pytest.mark.parametrize("widths", [(3, 2), (5, 20, 3)], ids=str)
@pytest.mark.parametrize(("loss", "soft"), [("rho", False), ("cross-entropy", False), ("cross-entropy", True)])
def test_rows_count_as_much_as_their_weights_say(widths, loss, soft, rng):
    theta, X, y = case(widths, soft=soft)
    weights = rng.uniform(0, 3, len(X)).astype(np.float32)
    method = replace(ALL, loss=loss)
    training, expected = both(widths, theta, X, y, method, weights=weights)
    rows = expected.order.batch(0, 33)
    assert_close(gradient(training), reference.gradient(widths, theta, X[rows], y[rows], method, weights[rows]))


@pytest.mark.parametrize("penalty", ["bounded", "norm"])
@pytest.mark.parametrize("activation", ["relu", "mish"])
@pytest.mark.parametrize("far", [1e-4, 0.1, 1.0, 3.0])
def test_the_memory_term_pulls_as_its_gradient_says(penalty, activation, far, rng):
    widths = (5, 20, 3)
    theta, X, y = case(widths)
    method = replace(ALL, penalty=penalty, lam=0.7, activation=activation)
    # From here the first step leads away; rows that count nothing show the pull of the second step alone.
    away = rng.choice([-1.0, 1.0], len(theta)) * rng.uniform(0.5, 1, len(theta))
    training, _ = both(widths, theta, X, y, replace(method, rate=far), weights=np.zeros(len(X)))
    read = moments(training, away, np.full(len(theta), 1.0))
    training.run(1)
    moved = training.theta.astype(np.float64)
    assert np.abs(moved - theta).max() > 0.01 * far
    training.restart()
    training.run(1)
    assert training.theta.any()
    expected = 0.7 * reference.penalty_slope(penalty, moved - theta)
    # Differences of parameters are exact, but parameters are rounded: close ones say less about their distance.
    assert_close(read[0] / 33, expected, 1e-6)


def test_the_gradient_is_not_lost_where_rho_is_tiny():
    for gap in (10.0, 20.0):
        theta = np.array([0, 0, gap, 0], np.float32)
        training = KernelTraining((1, 2), theta, np.zeros((1, 1)), np.zeros(1, int), TrainingMethod(batch=1), steps=1)
        q = 1 / (1 + np.exp(gap))
        np.testing.assert_allclose(gradient(training)[2:], [-2 * q * q * (1 - q), 2 * q * q * (1 - q)], rtol=1e-6)


@pytest.mark.parametrize("widths", SHAPES, ids=str)
@pytest.mark.parametrize(("penalty", "decay"), [("none", 0.0), ("bounded", 0.05), ("norm", 0.05)])
def test_a_step_from_known_moments_leads_where_adam_says(widths, penalty, decay, instructions, rng):
    theta, X, y = case(widths)
    method = replace(ALL, penalty=penalty, lam=0.7, decay=decay, epsilon=1e-3, anneal=0.9, warm=30)
    training, expected = both(widths, theta, X, y, method, seed=5)
    first, second = rng.normal(scale=0.1, size=len(theta)), rng.uniform(0.01, 0.1, len(theta))
    training._job.stage_steps, training._job.round_steps = 7, 40
    read = moments(training, first, second)
    expected.first, expected.second, expected.in_stage, expected.in_round = first, second, 7, 40
    for one in (training, expected):
        one.run(1)
    # Parameters are rounded to 24 bits; how far they moved is known to what is left of these.
    np.testing.assert_allclose(training.theta, expected.theta, rtol=1.5e-7, atol=1e-8)
    np.testing.assert_allclose(read[0] * (1 - FIRST_MOMENT) / 33, expected.first, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(read[1] * (1 - SECOND_MOMENT) / 33**2, expected.second, rtol=1e-6)


# --- many steps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
@pytest.mark.parametrize("penalty", ["none", "bounded", "norm"])
@pytest.mark.parametrize(("loss", "soft"), [("rho", False), ("cross-entropy", True)])
@pytest.mark.parametrize("activation", ["relu", "mish"])
def test_fifty_steps_lead_where_the_reference_says(order, penalty, loss, soft, activation, rng):
    widths, steps = (5, 20, 17, 3), 50
    theta, X, y = case(widths, soft=soft)
    method = TrainingMethod(
        33, 5e-3, loss, order, activation, penalty, lam=0.05, epsilon=1e-3, decay=0.01, anneal=0.5, warm=10
    )
    groups = RowGroups.of(np.array([40, 0, 20])).beside(60, 10, 0.5, 16)
    weights = rng.uniform(0.5, 2, len(X)).astype(np.float32)
    pair = both(widths, theta, X, y, method, groups=groups, weights=weights, steps=steps, seed=2**64 - 1)
    for one in pair:
        one.run(steps)
    found, expected = (one.theta for one in pair)
    # A step of Adam moves by rate * m / (sqrt(v) + epsilon): an error e of the gradient shows as rate * e / epsilon at
    # most. Gradients, all below 0.1, are known to 1e-6 of themselves, and parameters are rounded to 2^-24. Errors of 50
    # steps add up.
    most = steps * (method.rate * 1e-7 / method.epsilon + 2.0**-24 * np.abs(expected).max())
    assert np.abs(expected - theta).max() > 1000 * most
    assert np.abs(found - expected).max() < most


@pytest.mark.parametrize("activation", ["relu", "mish"])
def test_instruction_sets_with_fused_multiplication_give_the_same_bits(activation):
    theta, X, y = case((5, 20, 17, 3))
    method = TrainingMethod(
        33, 5e-3, "rho", "shuffled", activation, "bounded", lam=0.05, decay=0.01, anneal=0.5, warm=10
    )
    found = {}
    for name in SETS[1:]:
        if use(name) == name:
            training = KernelTraining((5, 20, 17, 3), theta, X, y, method, steps=50)
            training.run(50)
            found[name] = training.theta.tobytes()
    use()
    assert len(set(found.values())) <= 1


def sizes(method, steps, pieces):
    """The sizes of the steps that a training takes, stage by stage: weights of zero rows do nothing but decay."""
    shrinking = replace(method, decay=0.5 / method.rate)
    rows = np.zeros((4, 1)), np.zeros(4, int)
    theta, found = np.ones(4, np.float32), []
    training = KernelTraining((1, 2), theta, *rows, shrinking, steps=steps, weights=np.zeros(4))
    for piece in pieces:
        for _ in range(piece):
            training.run(1)
            found.append((1 - training.theta[0] / np.float64(theta[0])) / shrinking.decay)
            theta = training.theta
        training.restart()
    return np.array(found)


@pytest.mark.parametrize(("anneal", "warm"), [(0.0, 0), (1.0, 0), (0.5, 0), (0.3, 20), (0.0, 20), (1.0, 100)])
def test_step_sizes_over_a_round(anneal, warm):
    method = TrainingMethod(rate=1e-3, anneal=anneal, warm=warm)
    expected = [reference.step_size(method, k, k, 60) for k in range(60)]
    np.testing.assert_allclose(sizes(method, 60, [60]), expected, rtol=1e-5, atol=1e-9)
    in_stages = [reference.step_size(method, k, t + k, 60) for t, n in ((0, 15), (15, 45)) for k in range(n)]
    np.testing.assert_allclose(sizes(method, 60, [15, 45]), in_stages, rtol=1e-5, atol=1e-9)


def test_beyond_its_steps_a_round_that_anneals_stands_still():
    found = sizes(TrainingMethod(rate=1e-3, anneal=0.1), 20, [40])
    assert (found[:20] > 0).all()
    assert not found[20:].any()


def test_a_restart_forgets_moments_and_nothing_else():
    theta, X, y = case((5, 20, 3))
    pair = both(
        (5, 20, 3), theta, X, y, TrainingMethod(33, 5e-3, order="shuffled", penalty="norm", lam=0.05, epsilon=1e-3)
    )
    for one in pair:
        one.run(10)
        one.restart()
        one.run(10)
    np.testing.assert_allclose(pair[0].theta, pair[1].theta, atol=2e-6)
    read = moments(pair[0])
    pair[0].restart()
    before = pair[0].theta
    assert not read.any()
    assert pair[0]._job.round_steps == 20
    pair[0].run(0)
    assert before.tobytes() == pair[0].theta.tobytes()


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
def test_steps_in_pieces_and_at_once_give_the_same_bits(order):
    theta, X, y = case((5, 20, 3))
    method = TrainingMethod(33, 5e-3, order=order, penalty="bounded", lam=0.3, anneal=0.7, warm=50, decay=0.01)
    at_once, in_pieces, read_between = (
        KernelTraining((5, 20, 3), theta, X, y, method, steps=3000, seed=9) for _ in range(3)
    )
    at_once._piece = 10**9
    in_pieces._piece = 7
    at_once.run(3000)
    in_pieces.run(3000)
    for n in (1, 0, 999, 2000):
        read_between.run(n)
        assert read_between.theta.any()
    assert at_once.theta.tobytes() == in_pieces.theta.tobytes() == read_between.theta.tobytes()


def test_an_interrupt_is_heard_between_pieces_and_the_training_can_go_on():
    theta, X, y = case((5, 64, 64, 3))
    method = TrainingMethod(33, 1e-3)
    training = KernelTraining((5, 64, 64, 3), theta, X, y, method, steps=2**40)
    training._piece = 100
    interrupted(lambda: training.run(2**40), after=0.02)  # the kernel is at work by then
    done = training._job.round_steps
    assert done % 100 == 0
    training.run(50)
    undisturbed = KernelTraining((5, 64, 64, 3), theta, X, y, method, steps=2**40)
    undisturbed.run(done + 50)
    assert training.theta.tobytes() == undisturbed.theta.tobytes()


def test_a_piece_is_short_however_large_the_network():
    theta, X, y = case((100, 300, 300, 10))
    assert KernelTraining((100, 300, 300, 10), theta, X, y, TrainingMethod(batch=512), steps=1)._piece < 20
    assert KernelTraining((1, 2), *case((1, 2)), TrainingMethod(batch=1), steps=1)._piece > 10**6


# --- which rows -------------------------------------------------------------------------------------------------------


def times_drawn(groups, n, batch, steps, order, seed=0):
    """How often each of n rows is in each batch: rows are one-hot, and so each has a gradient of its own."""
    method = TrainingMethod(batch, rate=0.0, loss="cross-entropy", order=order)
    rows = np.eye(n), np.zeros(n, int)
    training = KernelTraining((n, 2), np.zeros(2 * n + 2), *rows, method, steps=steps, groups=groups, seed=seed)
    found, read = np.empty((steps, n), int), moments(training)
    for step in range(steps):
        training.restart()
        training.run(1)
        assert not training.theta.any()
        found[step] = np.rint(2 * read[0, 1 : 2 * n : 2])
    assert (found.sum(axis=1) == batch).all()
    return found


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
@pytest.mark.parametrize("batch", [1, 5, 33])
@pytest.mark.parametrize("counts", [[23], [7, 0, 5, 11], [1, 22]])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_rows_come_in_the_order_of_the_reference(order, batch, counts, seed):
    groups = RowGroups.of(np.array(counts))
    for chosen in (groups, groups.beside(3, 20, 0.7, 32)):
        by_kernel = times_drawn(chosen, 23, batch, 100, order, seed)
        expected = {"drawn": reference.Drawn, "shuffled": reference.Shuffled}[order](chosen, seed)
        for step, found in enumerate(by_kernel):
            np.testing.assert_array_equal(found, np.bincount(expected.batch(step, batch), minlength=23))


@pytest.mark.parametrize("counts", [[7], [7, 0, 5]])
@pytest.mark.parametrize("places", [0, 16])
def test_shuffled_rows_all_come_before_one_comes_again(counts, places):
    counts = np.array(counts)
    groups, n = RowGroups.of(counts), counts.sum()
    groups = groups.beside(n, 3, 0.5, places) if places else groups
    one_by_one = times_drawn(groups, n + 3, 1, 500, "shuffled").argmax(axis=1)
    for first, count in zip(groups.starts, groups.counts, strict=True):
        of_group = one_by_one[(one_by_one >= first) & (one_by_one < first + count)]
        rounds = of_group[: len(of_group) // count * count].reshape(-1, count)
        assert len(rounds) > 10
        assert (np.sort(rounds) == np.arange(first, first + count)).all()
        assert len(np.unique(rounds, axis=0)) > 1  # each time in another order


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
def test_balanced_batches_draw_every_class_present_equally_often(order):
    counts = np.array([1, 0, 300, 30])  # class 1 is absent
    rows = times_drawn(RowGroups.of(counts), 331, 960, 100, order).sum(axis=0)
    y = np.repeat(np.arange(4), counts)
    share = np.bincount(y, weights=rows, minlength=4) / rows.sum()
    np.testing.assert_allclose(share, [1 / 3, 0, 1 / 3, 1 / 3], atol=0.01)
    within = rows[y == 2]
    assert within.min() > 0.6 * within.mean()  # every row of a class has its turn


@pytest.mark.parametrize("order", ["drawn", "shuffled"])
@pytest.mark.parametrize(("counts", "weight"), [([300], 3.0), ([300], 0.5), ([1, 0, 300, 30], 3.0), ([100, 200], 1e6)])
def test_what_is_rehearsed_is_drawn_as_often_as_its_weight_says(counts, weight, order):
    counts = np.array(counts)
    n, kinds = counts.sum(), (counts > 0).sum()
    groups = RowGroups.of(counts).beside(n, 50, weight, 64)
    rows = times_drawn(groups, n + 50, 960, 100, order).sum(axis=0)
    old = rows[:n]
    assert old.sum() / rows.sum() == pytest.approx(max(1 / (1 + weight), kinds / 64), abs=0.01)
    share = np.bincount(np.repeat(np.arange(len(counts)), counts), weights=old, minlength=len(counts)) / old.sum()
    np.testing.assert_allclose(share, (counts > 0) / kinds, atol=0.05)  # in whole places
    assert rows[n:].min() > 0


# --- what does not fit ------------------------------------------------------------------------------------------------


@pytest.fixture
def no_kernel(monkeypatch):
    """Nothing reaches the kernel."""
    monkeypatch.setattr("ectype._kernel._training.library", lambda: pytest.fail("a pointer would have been passed"))


def fitting():
    theta, X, y = case((3, 4, 2), n=10)
    return {"widths": (3, 4, 2), "theta": theta, "X": X, "y": y, "method": TrainingMethod(), "steps": 5}


def groups_of(starts, counts, places):
    return RowGroups(*(np.array(part, np.int64) for part in (starts, counts, places)))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("widths", {"widths": ()}),
        ("widths", {"widths": (3,)}),
        ("widths", {"widths": (3, 0, 2)}),
        ("widths", {"widths": (3, -4, 2)}),
        ("widths", {"widths": (3, *[4] * 16, 2)}),
        ("theta", {"theta": np.zeros(25)}),
        ("theta", {"theta": np.zeros((26, 1))}),
        ("theta", {"widths": (3, 5, 2)}),
        ("X", {"X": np.zeros((10, 4))}),
        ("X", {"X": np.zeros(30)}),
        ("X", {"X": np.zeros((0, 3)), "y": np.zeros(0, int), "groups": groups_of([0], [1], [0])}),
        ("y", {"y": np.zeros(9, int)}),
        ("y", {"y": np.full(10, 2)}),
        ("y", {"y": np.full(10, -1)}),
        ("targets", {"y": np.zeros((10, 3)), "method": TrainingMethod(loss="cross-entropy")}),
        ("targets", {"y": np.zeros((9, 2)), "method": TrainingMethod(loss="cross-entropy")}),
        ("targets", {"y": np.zeros((10, 2, 1)), "method": TrainingMethod(loss="cross-entropy")}),
        ("loss", {"y": np.zeros((10, 2)), "method": TrainingMethod(loss="rho")}),
        ("weights", {"weights": np.ones(9)}),
        ("weights", {"weights": np.ones((10, 1))}),
        ("batch", {"method": TrainingMethod(batch=0)}),
        ("batch", {"method": TrainingMethod(batch=-1)}),
        ("epsilon", {"method": TrainingMethod(epsilon=0.0)}),
        ("epsilon", {"method": TrainingMethod(epsilon=float("nan"))}),
        ("steps", {"steps": -1}),
        ("steps", {"steps": 2**62}),
        ("steps", {"method": TrainingMethod(warm=-1)}),
        *((name, {"method": TrainingMethod(**{name: "other"})}) for name in ("activation", "loss", "order", "penalty")),
        ("groups", {"groups": groups_of([], [], [])}),
        ("groups", {"groups": groups_of([0], [11], [0])}),
        ("groups", {"groups": groups_of([-1], [5], [0])}),
        ("groups", {"groups": groups_of([10], [1], [0])}),
        ("groups", {"groups": groups_of([2**31 - 1], [2**31 - 1], [0])}),
        ("groups", {"groups": groups_of([0, 3], [3, 0], [0, 1])}),
        ("groups", {"groups": groups_of([0, 3], [3], [0])}),
        ("groups", {"groups": groups_of([0], [3, 3], [0])}),
        ("groups", {"groups": groups_of([0], [10], [])}),
        ("groups", {"groups": groups_of([0], [10], [1])}),
        ("groups", {"groups": groups_of([0], [10], [-1])}),
        ("groups", {"groups": groups_of([[0]], [[10]], [[0]])}),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_before_the_kernel_sees_it(no_kernel, name, wrong):
    with pytest.raises(KernelError, match=f"^{name}: "):
        KernelTraining(**{**fitting(), **wrong})


def test_what_fits_is_not_refused():
    KernelTraining(**fitting()).run(3)
    KernelTraining(**{**fitting(), "steps": 0}).run(0)
    many = (3, *[2] * 15, 2)
    KernelTraining(**{**fitting(), "widths": many, "theta": case(many)[0]}).run(3)


def test_arrays_of_other_types_and_orders_are_read_as_they_are():
    given = fitting()
    expected = KernelTraining(**given)
    expected.run(20)
    theta = np.repeat(given["theta"].astype(np.float64), 2)[::2]
    X, y = np.asfortranarray(given["X"].astype(np.float64)), given["y"].astype(np.int64)[::-1][::-1]
    found = KernelTraining(**{**given, "theta": theta, "X": X, "y": y})
    found.run(20)
    assert found.theta.tobytes() == expected.theta.tobytes()
    assert theta.astype(np.float32).tobytes() == given["theta"].tobytes()  # what was given stays as it was


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("activation", ["relu", "mish"])
def test_numbers_that_are_none_end_in_parameters_that_are_none(wrong, activation, instructions):
    given = fitting()
    given["X"][:, 1] = wrong
    training = KernelTraining(**{**given, "method": TrainingMethod(activation=activation, penalty="norm", lam=1.0)})
    training.run(20)
    assert not np.isfinite(training.theta).all()
