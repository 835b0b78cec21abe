"""Random rows of the kernel: their distributions, against SciPy and NumPy."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from interrupts import interrupted
from scipy.special import ndtr
from scipy.stats import kstest

from ectype._kernel import DISCRETE_MARGINAL, NORMAL_MARGINAL, QUANTILE_MARGINAL, Marginal, RowSampler, hash_rows
from ectype._kernel._sampler import copula_loadings
from ectype.errors import KernelError

STANDARD = Marginal(NORMAL_MARGINAL, np.array([0.0, 1.0]))
EVEN = Marginal(QUANTILE_MARGINAL, np.array([0.0, 1.0]))


def correlation(d, seed=0):
    """Of numbers that depend on each other."""
    rng = np.random.default_rng([seed, d])
    return np.atleast_2d(np.corrcoef(rng.normal(size=(3 * d + 2, d)) @ rng.normal(size=(d, d)), rowvar=False))


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_scores_are_normal_and_independent(seed):
    n = 200_000
    rows = RowSampler([STANDARD] * 5)(n, seed)
    assert min(kstest(column, "norm").pvalue for column in rows.T) > 1e-4
    for power, (mean, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}.items():
        assert np.abs((rows**power).mean(axis=0) - mean).max() < 4.5 * (variance / n) ** 0.5
    for beyond in (3, 4):
        expected = 2 * n * rows.shape[1] * ndtr(-beyond)
        assert abs((np.abs(rows) > beyond).sum() - expected) < 4.5 * expected**0.5
    beside = np.column_stack([rows[1:], rows[:-1], rows[1:] ** 2, rows[:-1] ** 2])  # of neighbours too
    assert np.abs(np.corrcoef(beside, rowvar=False) - np.eye(20)).max() < 5 / n**0.5


@pytest.mark.usefixtures("instructions")
def test_probabilities_are_those_of_the_scores():
    z, u = RowSampler([STANDARD] * 3)(50_000, 5), RowSampler([EVEN] * 3)(50_000, 5)
    np.testing.assert_allclose(u, ndtr(z), atol=4e-16, rtol=1e-13)


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("n", [2, 3, 257, 1000])
def test_a_curve_is_interpolated(n):
    values = np.sort(np.random.default_rng(n).normal(size=n))
    values[n // 3 : n // 2] = values[n // 3]  # a point mass
    u = RowSampler([EVEN])(5000, 1)[:, 0]
    found = RowSampler([Marginal(QUANTILE_MARGINAL, values)])(5000, 1)[:, 0]
    np.testing.assert_allclose(found, np.interp(u, np.linspace(0, 1, n), values), atol=1e-12)
    assert values[0] <= found.min()
    assert found.max() <= values[-1]


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 31, 32, 33, 1000])
def test_a_step_is_found(n):
    rng = np.random.default_rng(n)
    values, ends = rng.normal(size=n), np.cumsum(rng.dirichlet(np.ones(n)))[:-1]
    u = RowSampler([EVEN])(5000, 1)[:, 0]
    found = RowSampler([Marginal(DISCRETE_MARGINAL, values, ends)])(5000, 1)[:, 0]
    np.testing.assert_array_equal(found, values[np.searchsorted(ends, u, side="right")])


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("scale", [1.0, 1e3, 2.0**51, 2.0**52, 2.0**53, 1e300])
def test_whole_numbers_are_rounded_half_to_even(scale):
    curve = np.array([-3.0, 3.0]) * scale
    smooth, whole = (RowSampler([Marginal(QUANTILE_MARGINAL, curve, whole=which)])(5000, 2) for which in (False, True))
    np.testing.assert_array_equal(whole, np.rint(smooth))
    halves = RowSampler([Marginal(DISCRETE_MARGINAL, np.arange(-8, 9) / 2, np.arange(1, 17) / 17, whole=True)])(500, 2)
    plain = RowSampler([Marginal(DISCRETE_MARGINAL, np.arange(-8, 9) / 2, np.arange(1, 17) / 17)])(500, 2)
    np.testing.assert_array_equal(halves, np.rint(plain))


def test_values_stay_within_bounds():
    free, bound = RowSampler([STANDARD])(1000, 3), RowSampler([STANDARD._replace(low=-0.5, high=1.0)])(1000, 3)
    np.testing.assert_array_equal(bound, np.clip(free, -0.5, 1.0))


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 17, 64])
def test_scores_have_their_correlation(d):
    wanted, n = correlation(d), 100_000
    rows = RowSampler([STANDARD] * d, wanted)(n, 4)
    assert np.abs(rows.T @ rows / n - wanted).max() < 5.5 * (2 / n) ** 0.5
    assert min(kstest(column, "norm").pvalue for column in rows.T) > 1e-5


def test_loads_make_the_correlation():
    found, order = copula_loadings(correlation(50), 50)
    np.testing.assert_allclose(found.T @ found, correlation(50), atol=1e-12)
    np.testing.assert_array_equal(found[:, order], np.triu(found[:, order]))


def test_scores_that_are_sums_of_others():
    base = np.random.default_rng(0).normal(size=(500, 3))
    table = np.column_stack([base, base @ np.ones(3), -base[:, 0]])
    wanted = np.corrcoef(table, rowvar=False).round(6)
    assert len(copula_loadings(wanted, 5)[0]) == 3
    rows = RowSampler([STANDARD] * 5, wanted)(50_000, 1)
    np.testing.assert_allclose(np.corrcoef(rows, rowvar=False), wanted, atol=0.02)
    np.testing.assert_allclose(rows.std(axis=0), 1, atol=0.02)
    assert np.abs(rows[:, 4] + rows[:, 0]).max() < 0.01


def test_a_correlation_that_is_none_gives_scores_all_the_same():
    wrong = np.full((40, 40), -0.9)
    np.fill_diagonal(wrong, 1)
    wrong[::3, 1::3] = 0.99
    assert np.isfinite(RowSampler([EVEN] * 40, wrong)(100, 0)).all()


def test_values_are_missing_where_their_own_score_is_high():
    wanted = np.array([[1, 0.8], [0.8, 1]])
    n, gap = 50_000, Marginal(NORMAL_MARGINAL, np.array([10.0, 2.0]), missing=1.0)
    rows = RowSampler([gap], wanted)(n, 0)[:, 0]
    assert np.isnan(rows).mean() == pytest.approx(ndtr(-1), abs=0.01)
    assert np.nanmean(rows) < 9.7  # high values are missing more often
    alone = RowSampler([gap, STANDARD])(n, 0)
    assert np.nanmean(alone[:, 0]) == pytest.approx(10, abs=0.05)
    assert not np.isnan(alone[:, 1]).any()


@pytest.mark.parametrize("dependent", [False, True])
def test_a_row_does_not_depend_on_the_rows_drawn_with_it(dependent):
    d = 9
    rows = RowSampler(
        [STANDARD, EVEN, Marginal(DISCRETE_MARGINAL, np.arange(3), np.array([0.2, 0.7]))] * 3,
        correlation(d) if dependent else None,
    )
    all_of_them = rows(700, 11)
    for n in (0, 1, 31, 32, 33, 100):
        np.testing.assert_array_equal(rows(n, 11), all_of_them[:n])
    for rows._piece in (1, 7, 64):
        np.testing.assert_array_equal(rows(700, 11), all_of_them)
    assert not np.isin(rows(700, 12)[:, 0], all_of_them[:, 0]).any()


def test_rows_travel_and_several_threads_draw_at_once():
    rows = RowSampler([EVEN] * 6, correlation(6))
    expected = rows(3000, 1).tobytes()
    for same in (pickle.loads(pickle.dumps(rows)), copy.deepcopy(rows)):
        assert same(3000, 1).tobytes() == expected
    with ThreadPoolExecutor(8) as pool:
        assert {part.tobytes() for part in pool.map(lambda _: rows(3000, 1), range(20))} == {expected}


def test_an_interrupt_is_heard_in_between():
    rows = RowSampler([EVEN] * 20, correlation(20))
    assert interrupted(lambda: [rows(100_000, seed) for seed in range(1000)]) < 0.4


@pytest.mark.parametrize(
    ("name", "columns", "dependence"),
    [
        ("columns", [], None),
        ("column", [Marginal(NORMAL_MARGINAL, np.zeros(3))], None),
        ("column", [Marginal(QUANTILE_MARGINAL, np.zeros(1))], None),
        ("column", [Marginal(QUANTILE_MARGINAL, np.zeros((2, 2)))], None),
        ("column", [Marginal(DISCRETE_MARGINAL, np.zeros(0))], None),
        ("column", [Marginal(DISCRETE_MARGINAL, np.zeros(3), np.zeros(3))], None),
        ("column", [Marginal(3, np.zeros(2))], None),
        ("correlation", [STANDARD], np.eye(2)),
        ("correlation", [STANDARD, STANDARD._replace(missing=0.0)], np.eye(2)),
        ("correlation", [STANDARD, STANDARD], np.array([[1, np.nan], [np.nan, 1]])),
    ],
)
def test_distributions_that_do_not_fit_are_refused(name, columns, dependence):
    with pytest.raises(KernelError, match=f"^{name}: "):
        RowSampler(columns, dependence)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 3), (500, 21)])
def test_keys_are_sums_of_halves_times_constants(shape, both, rng):
    rows, odd = rng.normal(size=shape), rng.integers(2**63, size=2 * shape[1], dtype=np.uint64)
    bits = rows.view(np.uint64)
    expected = (bits >> np.uint64(32)) @ odd[: shape[1]]
    if both:
        expected += (bits & np.uint64(2**32 - 1)) @ odd[shape[1] :]
    np.testing.assert_array_equal(hash_rows(rows, odd, both), expected)
    np.testing.assert_array_equal(hash_rows(np.asfortranarray(rows), odd, both), expected)
    with pytest.raises(KernelError, match="odd: expected"):
        hash_rows(rows, odd[1:], both)
