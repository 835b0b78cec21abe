"""Trees of the kernel, against a reference in float64."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import reference
from interrupts import interrupted
from reference_trees import chances, depth_of, gains, leaf_of, leaves_of, loss, slopes, trees_of

from ectype._kernel import LEAF, Boosting, BoostingSettings, TreeArrays, TreeEnsemble, fit_extra_trees
from ectype._kernel import _trees as trees
from ectype._kernel._ffi import library
from ectype._kernel._trees import MOST_BINS, bin_columns
from ectype.errors import KernelError

# Every input looked at, so that a reference knows which.
ALL = BoostingSettings(rounds=5, leaves=8, share=1.0)


def problem(n=400, d=4, n_c=2, soft=False, seed=0):
    """Rows whose classes lie in the plane of the first two inputs, some labels being wrong."""
    rng = np.random.default_rng([seed, n, d, n_c])
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = (np.floor(2 * X[:, 0] + X[:, 1 % d] ** 2 + rng.normal(scale=0.3, size=n)).astype(int) % n_c).astype(np.int32)
    return X, 0.8 * np.eye(n_c)[y] + 0.2 / n_c if soft else y


def boosted(X, y, n_c, how=ALL, **more):
    """Boosting, all its rounds made."""
    boosting = Boosting(X, y, n_c, how, **more)
    boosting.run(how.rounds)
    return boosting


def bytes_of(grown):
    return b"".join(part.tobytes() for part in grown)


def sums_of(grown, outputs, classes, inputs):
    """Trees that were grown, as the kernel answers with them."""
    starts = np.cumsum(grown.sizes) - grown.sizes
    shift, own = np.repeat(starts, grown.sizes), np.arange(len(grown.feature))
    below = np.stack([grown.left + shift, grown.right + shift], axis=1)
    children = np.where((grown.feature == LEAF)[:, None], own[:, None], below)
    return TreeEnsemble(grown.feature, grown.threshold, children, grown.values, starts, outputs, classes, inputs)


def walked(grown, outputs, classes, X):
    """What trees say of rows, tree by tree."""
    scores = np.zeros((len(X), classes))
    for tree, output in zip(trees_of(grown), outputs, strict=True):
        said = tree["values"][leaves_of(tree, X)].astype(np.float64)
        scores[:, output : output + said.shape[1]] += said
    return scores


# --- bins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2, 7, 255, 256])
@pytest.mark.parametrize("n", [1, 2, 50, 5000])
def test_a_bin_is_the_number_of_edges_below(n, most, rng):
    X = rng.normal(size=(n, 4)).astype(np.float32)
    X[:, 1], X[:, 2] = 3.5, rng.integers(0, 3, n)  # constant, and with many ties
    bins, edges, counts = bin_columns(X, most)
    assert bins.dtype == np.uint8
    assert (counts <= most).all()
    assert counts[1] == 1
    assert counts[2] == min(most, len(np.unique(X[:, 2])))
    for j in range(4):
        known = edges[j, : counts[j] - 1]
        assert (np.diff(known) > 0).all()
        np.testing.assert_array_equal(bins[:, j], (X[:, j][:, None] > known).sum(axis=1))
        assert len(np.unique(bins[:, j])) == counts[j]  # none is empty
        assert np.isinf(edges[j, counts[j] - 1 :]).all()


def test_values_that_fit_have_a_bin_each_and_others_share_them_evenly(rng):
    X = np.stack([rng.permutation(5000), rng.permutation(5000) % 200], axis=1).astype(np.float32)
    bins, edges, counts = bin_columns(X, 255)
    assert counts[1] == 200
    np.testing.assert_array_equal(edges[1, :199], np.arange(199) + 0.5)
    np.testing.assert_array_equal(bins[:, 1], X[:, 1])
    sizes = np.bincount(bins[:, 0])
    assert len(sizes) == 255
    assert sizes.max() <= 2 * 5000 / 255


def test_neighbouring_and_extreme_numbers_are_told_apart():
    most = np.finfo(np.float32).max
    X = np.array([[1, -most, 0], [np.nextafter(np.float32(1), 2), most, 1e-45]], np.float32)
    bins, edges, _ = bin_columns(X, 255)
    np.testing.assert_array_equal(bins, [[0, 0, 0], [1, 1, 1]])
    assert (edges[:, 0] >= X[0]).all()
    assert (edges[:, 0] < X[1]).all()


def test_many_rows_are_binned_by_quantiles_of_some_of_them(rng, monkeypatch):
    X = rng.normal(size=(130_000, 2)).astype(np.float32)
    bins, edges, _ = bin_columns(X, 16)
    sizes = np.bincount(bins[:, 0])
    assert len(sizes) == 16
    assert sizes.min() > 0.9 * 130_000 / 16
    monkeypatch.setattr(trees, "BINNING", 5000)  # in pieces
    again, edges_again, _ = bin_columns(X, 16)
    assert bins.tobytes() == again.tobytes()
    assert edges.tobytes() == edges_again.tobytes()


# --- boosting ---------------------------------------------------------------------------------------------------------


def check_round(X, y, n_c, how, weights, scores, found, tolerance=2e-3):
    """Make sure that the trees of a round split where most is gained, and that leaves have the values they should."""
    g, h = slopes(scores, y, n_c, weights)
    bins, edges, counts = bin_columns(X, 255)
    limit = 32767 if len(X) < 65536 else 2**31 // len(X) - 2
    for output, tree in enumerate(found):
        units = np.abs(g[:, output]).max() / limit, h[:, output].max() / limit
        level, rows, worth = levels(tree), {0: np.arange(len(X))}, {}
        for node, feature in enumerate(tree["feature"]):
            of = rows[node]
            node_g, node_h = g[of, output], h[of, output]
            every = gains(bins[of], counts, node_g, node_h, how.l2, how.least)
            worth[node] = 0 if how.depth and level[node] >= how.depth else max(every.max(), 0)
            if feature == LEAF:
                error_g, error_h = (len(of) * unit / 2 for unit in units)
                curve = node_h.sum() + how.l2
                value = -node_g.sum() / curve
                most = (error_g + abs(value) * error_h) / max(curve - error_h, 1e-9)
                assert abs(tree["values"][node, 0] - how.rate * value) <= how.rate * most + 1e-6
                continue
            cut = np.flatnonzero(edges[feature] == tree["threshold"][node])[0]
            assert every[feature, cut] >= worth[node] - tolerance * (1 + worth[node])
            assert every[feature, cut] > 0
            below = X[of, feature] <= tree["threshold"][node]
            rows[tree["left"][node]], rows[tree["right"][node]] = of[below], of[~below]
        check_order(tree, worth, how, tolerance)


def check_order(tree, worth, how, tolerance):
    """Of all leaves there were, the one that gained most was split, until there were enough or none gained."""
    inner = np.flatnonzero(tree["feature"] != LEAF)
    assert len(tree["feature"]) == 2 * len(inner) + 1
    assert len(inner) < how.leaves
    assert not how.depth or depth_of(tree) <= how.depth
    assert sorted([0, *tree["left"][inner], *tree["right"][inner]]) == list(range(len(tree["feature"])))
    made = dict(zip(inner.tolist(), tree["left"][inner].tolist(), strict=True))  # children are counted as they are made
    for node, then in made.items():
        assert node < then
        rivals = [worth[other] for other in range(then) if made.get(other, np.inf) > then]
        assert worth[node] >= max(rivals, default=0) - tolerance * (1 + worth[node])
    if len(inner) < how.leaves - 1:
        assert max(gain for node, gain in worth.items() if node not in made) <= tolerance


def levels(tree):
    """The level of every node; children come after their parents."""
    found = np.zeros(len(tree["feature"]), int)
    for node in np.flatnonzero(tree["feature"] != LEAF):
        found[[tree["left"][node], tree["right"][node]]] = found[node] + 1
    return found


@pytest.mark.parametrize("n_c", [2, 3, 12])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", [ALL, replace(ALL, depth=2, l2=0.1, least=1.0), replace(ALL, leaves=2, rate=1.0)])
def test_every_split_is_the_best_and_every_leaf_has_its_value(n_c, soft, weighted, how, rng):
    X, y = problem(n_c=n_c, soft=soft)
    weights = rng.uniform(0.1, 2, len(X)).astype(np.float32) if weighted else None
    boosting = Boosting(X, y, n_c, how, weights=weights)
    outputs = 1 if n_c == 2 else n_c
    for done in range(how.rounds):
        before = boosting.scores.copy()
        boosting.run(1)
        found = list(trees_of(boosting.grown))
        assert len(found) == (done + 1) * outputs
        check_round(X, y, n_c, how, weights, before, found[-outputs:])


@pytest.mark.parametrize("n", [65_535, 65_536, 300_000])
def test_many_rows_round_their_slopes_more_coarsely(n):
    X, y = problem(n=n, d=2)
    boosting = boosted(X, y, 2, replace(ALL, rounds=3, leaves=4))
    for rounds in range(3):
        before = Boosting(X, y, 2, replace(ALL, leaves=4))
        before.run(rounds)
        found = list(trees_of(boosting.grown))[rounds : rounds + 1]
        check_round(X, y, 2, replace(ALL, leaves=4), None, before.scores, found, tolerance=1e-2)
    assert loss(boosting.scores, y, 2) < np.log(2) - 0.003


def test_the_first_round_splits_where_the_reference_does_to_the_bin():
    """From scores of zero all slopes are alike or opposite, and nothing is lost when they are rounded."""
    for seed in range(20):
        X, y = problem(n=60, seed=seed)
        bins, edges, counts = bin_columns(X, 255)
        (tree,) = trees_of(boosted(X, y, 2, replace(ALL, rounds=1, leaves=2)).grown)
        every = gains(bins, counts, 0.5 - y, np.full(60, 0.25), 1.0, 1e-3)
        feature, cut = np.unravel_index(every.argmax(), every.shape)
        assert every[tree["feature"][0]].max() == pytest.approx(every.max(), rel=1e-12)
        if (every > every.max() - 1e-9).sum() == 1:  # none is as good
            assert (tree["feature"][0], tree["threshold"][0]) == (feature, edges[feature, cut])


@pytest.mark.parametrize("n_c", [2, 5])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_loss_falls_with_rounds(n_c, share):
    X, y = problem(n_c=n_c, d=6)
    boosting = Boosting(X, y, n_c, BoostingSettings(rounds=60, share=share))
    found = [loss(boosting.scores, y, n_c)]
    for _ in range(6):
        boosting.run(10)
        found.append(loss(boosting.scores, y, n_c))
    assert found[0] == pytest.approx(np.log(n_c))
    assert (np.diff(found) < 0).all()
    assert found[-1] < 0.25 * found[0]


@pytest.mark.parametrize("n_c", [2, 4])
def test_targets_of_zero_and_one_are_labels(n_c):
    X, y = problem(n_c=n_c)
    hard, soft = boosted(X, y, n_c), boosted(X, np.eye(n_c)[y], n_c)
    assert bytes_of(hard.grown) == bytes_of(soft.grown)
    assert hard.scores.tobytes() == soft.scores.tobytes()


@pytest.mark.parametrize("soft", [False, True])
def test_a_weight_of_three_is_a_row_given_three_times(soft, rng):
    X, y = problem(n=200, soft=soft)
    times = rng.integers(0, 4, 200)
    how = replace(ALL, rounds=3)
    weighted, repeated = boosted(X, y, 2, how, weights=times), boosted(X.repeat(times, 0), y.repeat(times, 0), 2, how)
    np.testing.assert_allclose(weighted.scores.repeat(times, 0), repeated.scores, atol=2e-3)
    assert not np.allclose(weighted.scores, boosted(X, y, 2, how).scores, atol=2e-2)
    alike = boosted(X, y, 2, how, weights=np.full(200, 2.0)), boosted(X, y, 2, replace(how, l2=0.5, least=5e-4))
    np.testing.assert_allclose(alike[0].scores, alike[1].scores, atol=2e-3)


@pytest.mark.parametrize("n_c", [2, 3])
def test_directions_are_kept_everywhere(n_c):
    """Of what is noisy and bends, so that trees without directions would bend too."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 3)).astype(np.float32)
    y = ((X[:, 0] + np.sin(4 * X[:, 0]) - X[:, 1] + np.sin(5 * X[:, 1]) + rng.normal(size=2000)) > 0).astype(int)
    y += n_c - 2
    how, ways = BoostingSettings(rounds=40, share=1.0), np.array([1, -1, 0])
    kept, free = boosted(X, y, n_c, how, directions=ways), boosted(X, y, n_c, how)
    assert loss(kept.scores, y, n_c) < 0.8 * np.log(2)
    for j, way in ((0, 1), (1, -1)):
        at = rng.normal(size=(50, 1, 3)).repeat(200, axis=1).astype(np.float32)
        at[:, :, j] = np.linspace(-4, 4, 200)
        for boosting, holds in ((kept, True), (free, False)):
            outputs = np.tile(np.arange(boosting.outputs), how.rounds)
            said = walked(boosting.grown, outputs, boosting.outputs, at.reshape(-1, 3)).reshape(50, 200, -1)
            steps = way * np.diff(said[..., -1], axis=1)
            assert (steps >= -1e-12).all() == holds
            assert (steps > 1e-3).any()


@pytest.mark.parametrize("way", [1, -1])
def test_what_only_goes_the_other_way_is_not_split_by(way, rng):
    X = rng.normal(size=(300, 1)).astype(np.float32)
    y = (way * X[:, 0] < 0).astype(int)
    assert (boosted(X, y, 2, directions=np.array([way])).grown.sizes == 1).all()
    assert (fit_extra_trees(X, y, 2, 5, directions=np.array([way])).sizes == 1).all()
    assert (fit_extra_trees(X, y, 2, 5, directions=np.array([-way])).sizes > 1).all()


def test_no_direction_for_any_input_is_like_none_given():
    X, y = problem()
    free, told = boosted(X, y, 2), boosted(X, y, 2, directions=np.zeros(4, int))
    np.testing.assert_allclose(free.scores, told.scores, atol=1e-6)


@pytest.mark.parametrize(("leaves", "depth"), [(2, 0), (7, 0), (64, 3), (8, 3), (9, 1), (1000, 0)])
def test_trees_have_no_more_leaves_and_levels_than_they_may(leaves, depth):
    X, y = problem()
    grown = boosted(X, y, 2, replace(ALL, leaves=leaves, depth=depth)).grown
    most = min(leaves, 2**depth if depth else leaves, len(X))
    for tree in trees_of(grown):
        assert (tree["feature"] == LEAF).sum() <= most
        assert depth_of(tree) <= (depth or leaves - 1)
    assert max((tree["feature"] == LEAF).sum() for tree in trees_of(grown)) >= min(most, 8)


@pytest.mark.parametrize(("share", "most"), [(0.01, 1), (0.3, 3), (0.5, 5), (0.95, 10), (1.0, 10)])
def test_a_tree_looks_at_its_share_of_inputs(share, most, rng):
    X = rng.normal(size=(300, 10)).astype(np.float32)
    y = (X.sum(axis=1) + rng.normal(size=300) > 0).astype(int)
    seen = [
        {*tree["feature"].tolist()} - {LEAF}
        for tree in trees_of(boosted(X, y, 2, BoostingSettings(rounds=40, leaves=40, share=share, least=0)).grown)
    ]
    assert max(map(len, seen)) == most
    assert set.union(*seen) == {*range(10)}  # each has its turn
    other = boosted(X, y, 2, BoostingSettings(rounds=40, leaves=40, share=share), seed=1).grown
    same = boosted(X, y, 2, BoostingSettings(rounds=40, leaves=40, share=share), seed=0).grown
    assert (bytes_of(other) == bytes_of(same)) == (most == 10)


def test_an_input_that_is_constant_is_never_split_by():
    X, y = problem()
    X[:, 2] = 7
    for how in (ALL, replace(ALL, share=0.25)):
        assert not (boosted(X, y, 2, how).grown.feature == 2).any()
    only = boosted(np.ones((50, 1)), np.arange(50) % 5 == 0, 2, replace(ALL, rounds=100, rate=0.5))
    assert (only.grown.sizes == 1).all()
    np.testing.assert_allclose(chances(only.scores), 0.2, atol=2e-4)


@pytest.mark.parametrize("n_c", [2, 3])
def test_two_rows_and_one(n_c):
    X, y = np.array([[0.0], [1.0]]), np.array([0, n_c - 1])
    two = boosted(X, y, n_c, replace(ALL, rounds=200, l2=0.1))
    p = chances(two.scores)[:, -1]
    assert p[0] < 0.05
    assert p[1] > 0.95
    one = boosted(X[:1], y[1:], n_c, replace(ALL, rounds=200, l2=0.1))
    assert chances(one.scores)[0, -1] > 0.9
    assert (one.grown.sizes == 1).all()


def test_classes_that_nobody_is_of_become_improbable(rng):
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 90, 7)
    boosting = boosted(X, y, 100, replace(ALL, rounds=40))
    p = chances(boosting.scores)
    assert boosting.scores.shape == (300, 100)
    assert (p.argmax(axis=1) == y).all()
    assert p[:, 50].max() < 1e-3
    everyone = boosted(X, np.full(300, 4), 6, replace(ALL, rounds=40, rate=0.5))
    assert chances(everyone.scores)[:, 4].min() > 0.99


@pytest.mark.parametrize("n_c", [2, 3])
@pytest.mark.parametrize("with_base", [False, True])
def test_scores_are_those_of_the_trees(n_c, with_base, rng):
    X, y = problem(n_c=n_c)
    outputs = 1 if n_c == 2 else n_c
    base = rng.normal(size=outputs) if with_base else np.zeros(outputs)
    boosting = boosted(X, y, n_c, BoostingSettings(rounds=30), base=base if with_base else None)
    said = walked(boosting.grown, np.tile(np.arange(outputs), 30), outputs, X)
    np.testing.assert_allclose(boosting.scores, base + said, atol=2e-5)
    assert np.abs(said).max() > 1


def test_scores_to_begin_with_may_differ_by_row(rng):
    X, y = problem(n_c=3)
    base = rng.normal(size=(len(X), 3))
    boosting = Boosting(X, y, 3, ALL, base=base)
    np.testing.assert_array_equal(boosting.scores, base.astype(np.float32))
    boosting.run(1)
    check_round(X, y, 3, ALL, None, base.astype(np.float32), list(trees_of(boosting.grown)))
    # To go on from where another ended is to go on.
    first, both = boosted(X, y, 3, ALL), boosted(X, y, 3, replace(ALL, rounds=10))
    second = boosted(X, y, 3, ALL, base=first.scores)
    assert second.scores.tobytes() == both.scores.tobytes()


@pytest.mark.parametrize("n_c", [2, 3])
def test_rounds_and_calls_in_pieces_give_the_same_bits(n_c, monkeypatch):
    X, y = problem(n_c=n_c)
    how = BoostingSettings(rounds=12)
    at_once = boosted(X, y, n_c, how, seed=3)
    one_by_one = Boosting(X, y, n_c, how, seed=3)
    for rounds in (1, 0, 4, 7, 100):
        one_by_one.run(rounds)
    in_pieces = Boosting(X, y, n_c, how, seed=3)
    in_pieces._work = 1  # a split, and back
    in_pieces.run(12)
    for found in (one_by_one, in_pieces):
        assert found.scores.tobytes() == at_once.scores.tobytes()
        assert bytes_of(found.grown) == bytes_of(at_once.grown)
    assert len(at_once.grown.sizes) == 12 * at_once.outputs  # the plan has no more


def test_boosting_goes_on_after_an_interrupt(rng):
    X, y = problem(n=20_000, d=10, n_c=4)
    how = BoostingSettings(rounds=10_000)
    boosting = Boosting(X, y, 4, how)
    interrupted(lambda: boosting.run(10_000))
    done = boosting._job.trees
    assert 0 < done < 40_000
    trees_then = boosting.grown
    boosting.run(2)
    undisturbed = Boosting(X, y, 4, how)
    undisturbed.run(done // 4 + 2)
    assert boosting.scores.tobytes() == undisturbed.scores.tobytes()
    assert bytes_of(boosting.grown) == bytes_of(undisturbed.grown)
    assert len(trees_then.sizes) == done


def test_nothing_before_the_first_round():
    X, y = problem()
    boosting = Boosting(X, y, 2, replace(ALL, rounds=0))
    boosting.run(3)
    assert not boosting.scores.any()
    assert [len(part) for part in boosting.grown] == [0] * 6


# --- trees at random --------------------------------------------------------------------------------------------------


def distinct(n=500, d=3, n_c=3, seed=0):
    """Rows without order, each with a label of its own choice."""
    rng = np.random.default_rng([seed, n, d, n_c])
    return rng.permutation(n * d).reshape(n, d).astype(np.float32), rng.integers(0, n_c, n)


@pytest.mark.parametrize("n_c", [2, 3, 30])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (3, 2), (100, 1), (500, 3), (500, 30)])
def test_random_trees_tell_all_rows_apart(n, d, n_c):
    X, y = distinct(n, d, n_c)
    grown = fit_extra_trees(X, y, n_c, 5)
    assert len(grown.sizes) == 5
    for tree in trees_of(grown):
        leaf = tree["feature"] == LEAF
        np.testing.assert_array_equal(tree["values"][leaves_of(tree, X)], np.eye(n_c)[y])
        assert {*np.unique(tree["values"][leaf])} <= {0, 1}
        assert not tree["values"][~leaf].any()
        inner = np.flatnonzero(~leaf)
        assert (tree["left"][inner] > inner).all()
        assert (tree["right"][inner] == tree["left"][inner] + 1).all()
        assert sorted([0, *tree["left"][inner], *tree["right"][inner]]) == list(range(len(leaf)))


def test_even_where_no_single_split_helps():
    """Both halves of any split have as many rows of either class."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    for seed in range(20):
        for tree in trees_of(fit_extra_trees(X, np.array([0, 1, 1, 0]), 2, 5, seed=seed)):
            np.testing.assert_array_equal(tree["values"][leaves_of(tree, X)].argmax(axis=1), [0, 1, 1, 0])


def test_rows_that_are_alike_share_their_labels():
    X, y = np.array([[1.0], [1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    for tree in trees_of(fit_extra_trees(X, y, 2, 3)):
        np.testing.assert_allclose(tree["values"][leaves_of(tree, X)][:, 1], [1 / 3, 1 / 3, 1 / 3, 1])
    (constant,) = trees_of(fit_extra_trees(np.ones((4, 3)), y, 2, 1))
    np.testing.assert_array_equal(constant["values"], [[0.5, 0.5]])


@pytest.mark.parametrize("soft", [False, True])
def test_leaves_have_the_shares_of_their_rows_and_splits_are_between_them(soft, rng):
    X, y = problem(n=600, n_c=3)
    y = rng.dirichlet(np.ones(3), 600) if soft else y
    wanted = reference.one_hot(y, 3)
    for tree in trees_of(fit_extra_trees(X, y, 3, 10, leaves=40)):
        at = leaves_of(tree, X)
        assert (tree["feature"] == LEAF).sum() == 40
        for leaf in np.flatnonzero(tree["feature"] == LEAF):
            assert (at == leaf).any()
            np.testing.assert_allclose(tree["values"][leaf], wanted[at == leaf].mean(axis=0), atol=2e-6)
    np.testing.assert_allclose(fit_extra_trees(X, y, 3, 1, leaves=1).values, wanted.mean(axis=0)[None], rtol=1e-6)


def test_targets_of_zero_and_one_make_leaves_as_pure_as_labels_do():
    X, y = distinct()
    for tree in trees_of(fit_extra_trees(X, np.eye(3)[y], 3, 5)):
        found = tree["values"][leaves_of(tree, X)]
        assert (found == np.eye(3)[y]).all(axis=1).mean() > 0.9
    same = fit_extra_trees(X, np.full((500, 3), 1 / 3), 3, 2)
    assert (same.sizes == 1).all()  # nothing to tell apart


def test_the_better_of_few_random_splits_is_chosen(rng):
    """The square root of the inputs is tried at a node; one that decides is then the best, unless cut near its ends."""
    X = rng.normal(size=(300, 16)).astype(np.float32)
    y = (X[:, 3] > 0).astype(int)
    roots = fit_extra_trees(X, y, 2, 4000, depth=1).feature.reshape(4000, 3)[:, 0]
    assert 0.8 * 4 / 16 < (roots == 3).mean() < 1.05 * 4 / 16
    counts = np.bincount(roots, minlength=16)
    assert (counts > 0).all()
    alone = fit_extra_trees(X[:, :2], (X[:, 0] > 0).astype(int), 2, 2000, depth=1).feature.reshape(2000, 3)[:, 0]
    assert (alone == 0).mean() == pytest.approx(0.5, abs=0.04)  # one of two is tried


def test_thresholds_are_anywhere_between_the_least_and_the_greatest():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    found = np.sort(fit_extra_trees(X, y, 2, 4000).threshold.reshape(4000, 3)[:, 0])
    assert found[0] >= 0
    assert found[-1] < 1
    np.testing.assert_allclose(found, (np.arange(4000) + 0.5) / 4000, atol=0.04)


@pytest.mark.parametrize(("leaves", "depth"), [(1, 0), (2, 0), (7, 0), (64, 3), (5, 3), (10**9, 2)])
def test_random_trees_have_no_more_leaves_and_levels_than_they_may(leaves, depth):
    X, y = problem()
    for tree in trees_of(fit_extra_trees(X, y, 2, 5, leaves=leaves, depth=depth)):
        assert (tree["feature"] == LEAF).sum() <= min(leaves, 2**depth if depth else leaves)
        assert (tree["feature"] == LEAF).sum() >= min(leaves, 3)
        assert not depth or depth_of(tree) <= depth


def test_a_limit_of_leaves_keeps_the_widest():
    X, y = distinct(n=1000)
    for tree in trees_of(fit_extra_trees(X, y, 3, 5, leaves=16)):
        assert depth_of(tree) <= 6


@pytest.mark.parametrize("soft", [False, True])
def test_random_trees_keep_directions(soft):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 3)).astype(np.float32)
    p = 1 / (1 + np.exp(-4 * (X[:, 0] + np.sin(4 * X[:, 0]) - X[:, 1] + np.sin(5 * X[:, 1]))))
    y = np.stack([1 - p, p], axis=1) if soft else (rng.random(1000) < p).astype(int)
    ways = np.array([1, -1, 0])
    kept, free = fit_extra_trees(X, y, 2, 5, directions=ways), fit_extra_trees(X, y, 2, 5)
    for j, way in ((0, 1), (1, -1)):
        at = rng.normal(size=(50, 1, 3)).repeat(200, axis=1).astype(np.float32)
        at[:, :, j] = np.linspace(-4, 4, 200)
        for grown, holds in ((kept, True), (free, False)):
            for tree in trees_of(grown):
                found = tree["values"][leaves_of(tree, at.reshape(-1, 3))].reshape(50, 200, 2)
                steps = way * np.diff(found[..., 1].astype(np.float64), axis=1)
                assert (steps >= 0).all() == holds
                assert steps.max() > 0.1
                np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-6)


def test_a_seed_decides_and_every_tree_is_another():
    X, y = distinct()
    first = fit_extra_trees(X, y, 3, 4, seed=2**64 - 1)
    assert bytes_of(first) == bytes_of(fit_extra_trees(X, y, 3, 4, seed=-1))
    assert bytes_of(first) != bytes_of(fit_extra_trees(X, y, 3, 4, seed=1))
    assert len({tree["threshold"].tobytes() for tree in trees_of(first)}) == 4
    more = list(trees_of(fit_extra_trees(X, y, 3, 6, seed=-1)))
    for before, after in zip(trees_of(first), more, strict=False):  # the first of more are the same
        assert before["threshold"].tobytes() == after["threshold"].tobytes()


def test_random_trees_in_pieces_give_the_same_bits(monkeypatch):
    X, y = problem(n_c=3)
    for target in (y, np.eye(3)[y]):
        at_once = fit_extra_trees(X, target, 3, 5)
        monkeypatch.setattr(trees, "EXTRA_TREES", 1)
        assert bytes_of(fit_extra_trees(X, target, 3, 5)) == bytes_of(at_once)
        monkeypatch.undo()


def test_an_interrupt_is_heard_within_a_tree(rng):
    X = rng.normal(size=(400_000, 25)).astype(np.float32)
    y = rng.integers(0, 2, 400_000)  # a tree of this takes seconds
    assert interrupted(lambda: fit_extra_trees(X, y, 2, 1)) < 0.4


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 81, 511, 512, 513, 1500])
def test_sums_are_those_of_a_walk_to_the_bit(n, rng):
    X, y = problem(n=600, n_c=4)
    rows = rng.normal(size=(n, 4)).astype(np.float32)
    few, many = (fit_extra_trees(X, y, 4, 3, leaves=leaves) for leaves in (32, 33))  # all tests are made of few leaves
    for grown, outputs, classes in (
        (fit_extra_trees(X, y, 4, 9), np.zeros(9, int), 4),
        (boosted(X, y, 4, BoostingSettings(rounds=5)).grown, np.tile(np.arange(4), 5), 4),
        (boosted(X, y % 2, 2, BoostingSettings(rounds=5, leaves=2)).grown, np.ones(5, int), 2),
        (TreeArrays(*(np.concatenate(parts) for parts in zip(few, many, few, strict=True))), np.zeros(9, int), 4),
    ):
        start = rng.normal(size=(n, classes))
        sums, scores = sums_of(grown, outputs, classes, 4), start.copy()
        assert sums(rows, scores) is scores
        expected = start.copy()
        for tree, output in zip(trees_of(grown), outputs, strict=True):
            said = tree["values"][leaves_of(tree, rows)].astype(np.float64)
            expected[:, output : output + said.shape[1]] += said
        assert scores.tobytes() == expected.tobytes()
        sums._piece = 5  # in pieces
        assert sums(rows, start.copy()).tobytes() == expected.tobytes()


def test_nodes_that_share_what_is_below_them_are_followed_all_the_same():
    """A chain that halves, each node with the next as both children: as many paths as the last has levels above it."""
    for levels in (4, 5, 6):
        n = levels + 1
        below = np.minimum(np.arange(n) + 1, levels)
        shared = TreeEnsemble(
            np.zeros(n), np.zeros(n), np.repeat(below, 2), np.arange(n)[:, None], np.zeros(1), np.zeros(1), 1, 1
        )
        assert shared(np.array([[-1.0], [1.0]]), np.zeros((2, 1))).tolist() == [[levels], [levels]]


def test_the_walk_of_the_reference_is_one_row_at_a_time():
    X, y = problem(n=100)
    for tree in trees_of(fit_extra_trees(X, y, 2, 3)):
        np.testing.assert_array_equal(leaves_of(tree, X), [leaf_of(tree, row) for row in X])


def test_what_is_not_a_number_goes_left_and_infinities_go_their_way(rng):
    X, y = problem(n=300)
    grown = fit_extra_trees(X, y, 2, 20)
    rows = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.1, -0.1], np.float32), size=(200, 4))
    found = sums_of(grown, np.zeros(20, int), 2, 4)(rows, np.zeros((200, 2)))
    least = np.where(np.isnan(rows), -np.inf, rows)
    assert found.tobytes() == sums_of(grown, np.zeros(20, int), 2, 4)(least, np.zeros((200, 2))).tobytes()
    assert found.tobytes() == walked(grown, np.zeros(20, int), 2, rows).tobytes()


def test_rows_at_a_threshold_go_left():
    stump = TreeArrays(
        *(np.array(part) for part in ([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [[0], [3.0], [4]], [3]))
    )
    grown = TreeArrays(*map(np.array, stump))
    rows = np.array([[0.5], [np.nextafter(np.float32(0.5), 1)], [0.4]], np.float32)
    np.testing.assert_array_equal(sums_of(grown, np.zeros(1, int), 1, 1)(rows, np.zeros((3, 1))), [[3], [4], [3]])


def test_sums_travel():
    X, y = problem()
    sums = sums_of(fit_extra_trees(X, y, 2, 5), np.zeros(5, int), 2, 4)
    expected = sums(X, np.zeros((400, 2))).tobytes()
    for same in (pickle.loads(pickle.dumps(sums)), copy.deepcopy(sums), copy.copy(sums)):
        assert same(X, np.zeros((400, 2))).tobytes() == expected


def test_an_interrupt_is_heard_while_many_rows_walk():
    X, y = distinct(n=5000, d=10)
    sums = sums_of(fit_extra_trees(X, y, 3, 100), np.zeros(100, int), 3, 10)
    rows = np.zeros((500_000, 10), np.float32)  # this takes seconds
    rows[:] = X[0]
    assert interrupted(lambda: sums(rows, np.zeros((500_000, 3)))) < 0.4


# --- what does not fit ------------------------------------------------------------------------------------------------


@pytest.fixture
def no_kernel(monkeypatch):
    """Nothing reaches the kernel."""
    monkeypatch.setattr(trees, "library", lambda: pytest.fail("a pointer would have been passed"))


X10, Y10 = problem(n=10)
ROWS = [
    ("X", {"X": np.zeros((0, 4)), "y": np.zeros(0, int)}),
    ("X", {"X": np.zeros((10, 0))}),
    ("X", {"X": np.zeros(10)}),
    ("X", {"X": np.zeros((10, 2, 2))}),
    *(("X", {"X": np.where(np.eye(10, 4) > 0, wrong, X10.astype(float))}) for wrong in (np.nan, np.inf, -np.inf, 1e39)),
]
WANTED = [
    ("classes", {"n_c": 1}),
    ("classes", {"n_c": -3}),
    ("classes", {"n_c": 2**40}),
    ("y", {"y": np.zeros(9, int)}),
    ("y", {"y": np.full(10, 2)}),
    ("y", {"y": np.full(10, -1)}),
    ("y", {"y": np.full(10, 2**32)}),
    ("y", {"y": np.full(10, np.nan)}),
    ("targets", {"y": np.zeros((10, 3))}),
    ("targets", {"y": np.zeros((9, 2))}),
    ("targets", {"y": np.zeros((10, 2, 1))}),
    ("targets", {"y": np.array(1)}),
    *(("targets", {"y": np.full((10, 2), wrong)}) for wrong in (np.nan, np.inf, -0.1, 2.0)),
    ("directions", {"directions": np.zeros(3, int)}),
    ("directions", {"directions": np.zeros((4, 1), int)}),
    ("directions", {"directions": np.array([0, 0, 0, 2])}),
    ("directions", {"directions": np.array([0, 0, 0, np.nan])}),
]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *ROWS,
        *WANTED,
        *(("weights", {"weights": wrong}) for wrong in (np.ones(9), np.ones((10, 1)), np.ones(()))),
        *(("weights", {"weights": np.full(10, wrong)}) for wrong in (np.nan, np.inf, -1.0, 1e39)),
        *(("base", {"base": np.zeros(shape)}) for shape in ((2,), (10,), (9, 1), (10, 2), (1, 10, 1))),
        *(("base", {"base": np.array([wrong])}) for wrong in (np.nan, np.inf, 1e39)),
        ("base", {"n_c": 3, "base": np.zeros(2)}),
        *(("rounds", {"how": BoostingSettings(rounds=rounds)}) for rounds in (-1, 2**31, 2**62)),
        ("rounds", {"n_c": 2**30, "how": BoostingSettings(rounds=1)}),
        *(("leaves", {"how": BoostingSettings(leaves=leaves)}) for leaves in (-1, 0, 1)),
        *(("depth", {"how": BoostingSettings(depth=depth)}) for depth in (-1, 2**40)),
        *(("bins", {"how": BoostingSettings(bins=bins)}) for bins in (-1, 0, 1)),
        *(("rate", {"how": BoostingSettings(rate=wrong)}) for wrong in (np.nan, np.inf)),
        *(("l2", {"how": BoostingSettings(l2=wrong)}) for wrong in (np.nan, np.inf, -1)),
        *(("least", {"how": BoostingSettings(least=wrong)}) for wrong in (np.nan, np.inf, -1)),
        *(("share", {"how": BoostingSettings(share=wrong)}) for wrong in (np.nan, np.inf, -1, 0, 1.1)),
    ],
    ids=str,
)
def test_boosting_that_does_not_fit_is_refused_before_the_kernel_sees_it(no_kernel, name, wrong):
    with pytest.raises(KernelError, match=f"^{name}: "):
        Boosting(**{"X": X10, "y": Y10, "n_c": 2, "how": BoostingSettings(), **wrong})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *ROWS,
        *WANTED,
        *(("trees", {"trees": wrong}) for wrong in (-1, 0)),
        *(("leaves", {"leaves": wrong}) for wrong in (-1, 0)),
        *(("depth", {"depth": wrong}) for wrong in (-1, 2**31)),
    ],
    ids=str,
)
def test_random_trees_that_do_not_fit_are_refused_before_the_kernel_sees_them(no_kernel, name, wrong):
    with pytest.raises(KernelError, match=f"^{name}: "):
        fit_extra_trees(**{"X": X10, "y": Y10, "n_c": 2, "trees": 3, **wrong})


@pytest.mark.parametrize(("name", "wrong"), [row for row in ROWS if "X" in row[1]], ids=str)
def test_rows_that_cannot_be_binned_are_refused(no_kernel, name, wrong):
    with pytest.raises(KernelError, match=f"^{name}: "):
        bin_columns(wrong["X"], 255)


@pytest.mark.parametrize("most", [-1, 0, 1, MOST_BINS + 1, 2**40])
def test_a_number_of_bins_that_does_not_fit_is_refused(no_kernel, most):
    with pytest.raises(KernelError, match=r"^bins: expected from 2 to 256"):
        bin_columns(X10, most)


def nodes(**wrong):
    """A stump for rows of two inputs, and what is wrong with it."""
    arrays = {
        "feature": [1, -1, -1], "threshold": [0.5, 0, 0], "children": [1, 2, 1, 1, 2, 2],
        "values": [[0.0], [3.0], [4.0]], "roots": [0], "outputs": [1],
    }  # fmt: skip
    return {**{name: np.array(part) for name, part in arrays.items()}, "classes": 2, "inputs": 2, **wrong}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("nodes", {"feature": np.array([2, 0, 0])}),
        ("nodes", {"feature": np.array([-1, 0, 0])}),
        ("nodes", {"feature": np.array([1, 0])}),
        ("nodes", {"feature": np.array([[1, 0, 0]])}),
        ("nodes", {"threshold": np.zeros(2)}),
        ("children", {"children": np.array([1, 2, 1, 1])}),
        ("children", {"children": np.array([[1, 2, 1], [1, 2, 2]])}),
        ("children", {"children": np.array([1, 3, 1, 1, 2, 2])}),
        ("children", {"children": np.array([1, -1, 1, 1, 2, 2])}),
        ("children", {"children": np.array([1, 2, 1, 0, 2, 2]), "feature": np.array([1, 1, 1])}),
        ("children", {"children": np.array([0, 2, 1, 1, 2, 2])}),
        ("children", {"children": np.array([1, 2, 2, 2, 1, 1]), "feature": np.array([1, 1, 1])}),
        ("values", {"values": np.zeros((2, 1))}),
        ("values", {"values": np.zeros(3)}),
        ("roots", {"roots": np.array([3])}),
        ("roots", {"roots": np.array([-1])}),
        ("roots", {"roots": np.array([0, 0])}),
        ("roots", {"roots": np.array([[0]]), "outputs": np.array([[0]])}),
        ("outputs", {"outputs": np.array([2])}),
        ("outputs", {"outputs": np.array([-1])}),
        ("outputs", {"values": np.zeros((3, 2))}),
        ("outputs", {"classes": 0}),
        ("outputs", {"values": np.zeros((3, 3)), "outputs": np.array([0])}),
        ("inputs", {"inputs": 0}),
    ],
    ids=str,
)
def test_nodes_that_lead_nowhere_are_refused(monkeypatch, name, wrong):
    class Looks:
        """The one function that may see children: it follows none before it has looked at it."""

        trees_levels = library().trees_levels

    monkeypatch.setattr(trees, "library", lambda: Looks)
    with pytest.raises(KernelError, match=f"^{name}: "):
        TreeEnsemble(**nodes(**wrong))


@pytest.mark.parametrize(
    ("name", "X", "scores"),
    [
        ("rows", np.zeros((4, 3)), np.zeros((4, 2))),
        ("rows", np.zeros(4), np.zeros((4, 2))),
        ("scores", np.zeros((4, 2)), np.zeros((4, 3))),
        ("scores", np.zeros((4, 2)), np.zeros((3, 2))),
        ("scores", np.zeros((4, 2)), np.zeros(8)),
        ("scores", np.zeros((4, 2)), np.zeros((4, 2), np.float32)),
        ("scores", np.zeros((4, 2)), np.zeros((4, 2), ">f8")),
        ("scores", np.zeros((4, 2)), np.zeros((2, 4)).T),
        ("scores", np.zeros((4, 2)), np.zeros((8, 2))[::2]),
        ("scores", np.zeros((4, 2)), np.broadcast_to(0.0, (4, 2))),
        ("scores", np.zeros((4, 2)), np.frombuffer(bytes(64)).reshape(4, 2)),
        ("scores", np.zeros((4, 2)), np.ndarray((4, 2), np.float64, bytearray(65), 1)),
    ],
    ids=str,
)
def test_rows_and_scores_that_do_not_fit_are_refused(name, X, scores):
    with pytest.raises(KernelError, match=f"^{name}: "):
        TreeEnsemble(**nodes())(X, scores)


def test_no_trees_say_nothing():
    none = {"roots": np.zeros(0, int), "outputs": np.zeros(0, int)}
    assert not TreeEnsemble(**nodes(**none))(np.zeros((3, 2)), np.zeros((3, 2))).any()


def test_memory_that_is_not_there_is_an_error_of_ours(monkeypatch):
    def none(*_):
        raise MemoryError

    monkeypatch.setattr("ectype._kernel._ffi.np.empty", none)
    with pytest.raises(KernelError, match=r"^memory: expected \d+ bytes"):
        trees.block(10)


def test_rows_of_other_types_and_orders_are_read_as_they_are():
    X, y = problem(n=90)
    unaligned = np.ndarray(X.shape, np.float32, bytearray(b"x" + X.tobytes()), 1)
    expected = bytes_of(boosted(X, y, 2).grown), bytes_of(fit_extra_trees(X, y, 2, 3))
    sums = sums_of(fit_extra_trees(X, y, 2, 3), np.zeros(3, int), 2, 4)
    said = sums(X, np.zeros((90, 2))).tobytes()
    for same in (X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], unaligned):
        labels = y.astype(np.int64)[::-1][::-1]
        assert (bytes_of(boosted(same, labels, 2).grown), bytes_of(fit_extra_trees(same, labels, 2, 3))) == expected
        assert sums(same, np.zeros((90, 2))).tobytes() == said
