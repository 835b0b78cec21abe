"""Stratified certificates: the design, rows by rank, and the exact bound of two counts."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import ectype as ec
from ectype.certificate.bounds import lower_bound
from ectype.certificate.buehler import CLOSE, BuehlerBound, upper_limit
from ectype.certificate.certificate import Bound, Certificate, Stratum
from ectype.certificate.sample_size import sample_size_for
from ectype.certificate.stratified import SET, Design, choose_design, ranked_sets, strata_of, stratified_bound
from ectype.errors import SettingError
from ectype.report import model_card
from ectype.space import Space
from problems import disc

ALPHA = 0.05
SHARES = [(0.0, 0.02), (0.05, 0.05), (0.3, 0.01), (0.4, 0.0), (0.5, 0.5), (0.95, 0.9), (0.02, 0.2)]


def missed(pair, shares, upper):
    """The exact chance that a bound is below the truth: over all outcomes, not a simulation of some."""
    truth, counts = float(np.dot(pair.weights, shares)), [np.arange(n + 1) for n in pair.n]
    chances = np.multiply.outer(*(binom.pmf(x, n, q) for x, n, q in zip(counts, pair.n, shares, strict=True)))
    return sum(chances[i, j] for i in counts[0] for j in counts[1] if upper((i, j)) < truth - 1e-12)


def test_the_bound_holds_for_every_pair_of_shares(rng):
    pair = BuehlerBound((0.2, 0.8), (7, 13))
    upper = cache(lambda x: pair.upper(x, ALPHA))
    found = [missed(pair, shares, upper) for shares in [*SHARES, *rng.random((20, 2)), *0.2 * rng.random((20, 2))]]
    assert ALPHA / 2 < max(found) <= ALPHA


def test_a_bound_that_takes_the_limit_of_many_rows_would_not_pass():
    def normal(pair):
        def upper(x):
            q = [a / n for a, n in zip(x, pair.n, strict=True)]
            parts = zip(pair.weights, q, pair.n, strict=True)
            return pair.share(x) + 1.645 * np.sqrt(sum(w * w * s * (1 - s) / n for w, s, n in parts))

        return upper

    pair = BuehlerBound((0.2, 0.8), (7, 13))
    assert max(missed(pair, shares, normal(pair)) for shares in SHARES) > 2 * ALPHA


def test_it_is_as_tight_as_its_order_allows():
    """At the worst shares of the total that it gives, the outcomes up to the one seen have just the chance allowed."""
    pair, seen = BuehlerBound((0.2, 0.8), (140, 260)), (17, 3)
    top, limit = pair.upper(seen, ALPHA), pair.approximate(*seen, ALPHA) * (1 + 1e-9)
    x, y = (np.arange(n + 1) for n in pair.n)
    lower = pair.approximate(x[:, None], y[None], ALPHA) <= limit

    def most(total):
        first = np.linspace(0, min(1, total / 0.2), 400)
        second = (total - 0.2 * first) / 0.8
        chances = zip(first, second, strict=True)
        return max(binom.pmf(x, pair.n[0], a) @ lower @ binom.pmf(y, pair.n[1], b) for a, b in chances)

    slack = CLOSE * (top - pair.share(seen))
    assert most(top) <= ALPHA * (1 + 1e-6)
    assert most(top - 2 * slack) >= ALPHA * (1 - 0.01)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 40), st.sampled_from([0.05, 0.2, 0.4]), st.sampled_from([0.8, 0.95]), st.data()
)
def test_properties(first, second, weight, confidence, data):
    seen = data.draw(st.integers(0, first)), data.draw(st.integers(0, second))
    pair = BuehlerBound((weight, 1 - weight), (first, second))
    top, estimate = pair.upper(seen, 1 - confidence), pair.share(seen)
    slack = 2 * CLOSE * (top - estimate) + 1e-9
    assert estimate - 1e-9 <= top <= 1
    if seen[0]:
        assert pair.upper((seen[0] - 1, seen[1]), 1 - confidence) <= top + slack
    if seen[1]:
        assert pair.upper((seen[0], seen[1] - 1), 1 - confidence) <= top + slack
    strata = (
        Stratum("near", weight, first, first - seen[0]),
        Stratum("away", 1 - weight, second, second - seen[1]),
    )
    assert stratified_bound(strata, confidence) == (pytest.approx(1 - estimate), pytest.approx(1 - top))


@pytest.mark.parametrize(("differed", "n"), [(0, 30), (7, 30), (30, 30)])
def test_one_part_is_clopper_pearson(differed, n):
    assert float(upper_limit(differed, n, ALPHA)) == pytest.approx(1 - lower_bound(n - differed, n))
    assert stratified_bound((Stratum("away", 1.0, n, n - differed),), 0.95)[1] == lower_bound(n - differed, n)
    almost = BuehlerBound((0.0001, 0.9999), (5, n)).upper((0, differed), ALPHA)
    assert almost == pytest.approx(1 - lower_bound(n - differed, n), abs=0.005)


def test_a_part_without_rows_may_differ_everywhere():
    strata = Stratum("near", 0.05, 0, 0), Stratum("away", 0.95, 50, 50)
    assert stratified_bound(strata, 0.95) == (1.0, 0.95 * lower_bound(50, 50))


@pytest.mark.parametrize("differ", [lambda x: x < 0.06, lambda x: np.modf(1000 * x)[0] < 0.06, lambda x: x > 0.94])
@pytest.mark.parametrize("tied", [False, True])
def test_whole_certificates_hold_whatever_the_margin_is_worth(differ, tied, rng):
    """Unbiased, and below the truth as often as said: also where margins are equal, and ranks mean nothing."""
    design, truth, runs, bound = Design(8, 0.2), 0.94, 400, cache(lambda strata: stratified_bound(strata, 0.95)[1])
    chances = lambda x: np.column_stack([(1 + x) / 2, (1 - x) / 2]).round(0 if tied else 9)  # noqa: E731
    estimates, held = [], 0
    for _ in range(runs):
        ranks = design.ranks(30, rng)
        rows = np.concatenate([*ranked_sets(ranks, rng.random, chances)])
        strata = strata_of(design, ranks, ~differ(rows))
        estimates.append(sum(part.weight * part.agreed / part.n for part in strata))
        held += bound(strata) <= truth
    assert np.mean(estimates) == pytest.approx(truth, abs=4 * np.std(estimates) / runs**0.5)
    assert held / runs >= 0.95 - 3 * (0.05 * 0.95 / runs) ** 0.5


def test_the_first_rows_are_a_plain_sample(rng):
    design = Design(8, 0.2)
    ranks = design.ranks(20_000, rng)
    rows = np.concatenate([*ranked_sets(ranks, rng.random, lambda x: np.column_stack([(1 + x) / 2, (1 - x) / 2]))])
    plain = design.sample(20_000)
    assert plain == 16_000
    assert np.histogram(rows[:plain], 10, (0, 1))[0] == pytest.approx(1600, abs=5 * 1600**0.5)
    assert rows[plain:].max() < 0.6  # of the least sure fifth of a set
    assert (ranks[plain:] < design.cut).all()


def test_the_design_follows_the_copys_own_probabilities(rng):
    sure = np.concatenate([rng.uniform(0.5, 0.9, 1000), np.full(4000, 0.999)])
    chosen = choose_design(np.column_stack([sure, 1 - sure])[rng.permutation(5000)], 2000, 0.95)
    assert 0.1 <= chosen.weights[0] <= 0.3
    assert chosen.added > 0.1
    assert not choose_design(np.tile([0.9, 0.1], (40 * SET, 1)), 2000, 0.95).cut


@pytest.fixture(scope="module")
def result():
    return ec.copy_classifier(disc, Space.normal(2), budget=200, certificate_n=0, repeat=0, schedule=20)


@pytest.fixture
def copied(result):
    return result.copy


def test_a_stratified_certificate_is_tighter_and_says_what_it_is(copied):
    plane = Space.normal(2)
    plain = [ec.certify(copied, disc, plane, n=1000, seed=seed, design="plain", explain=False) for seed in range(5)]
    proofs = [ec.certify(copied, disc, plane, n=1000, seed=seed, explain=False) for seed in range(5)]
    assert np.mean([proof.width for proof in proofs]) < 0.9 * np.mean([proof.width for proof in plain])
    proof = ec.certify(copied, disc, plane, n=1000)
    assert (proof.design, proof.n, sum(part.n for part in proof.strata)) == ("stratified", 1000, 1000)
    assert sum(bound.n for bound in proof.per_class.values()) == proof.sampled < 1000
    assert proof.near.n + proof.away.n == proof.sampled
    assert Certificate.from_json(proof.as_json()) == proof
    assert "stratified by the copy's margin" in str(proof)
    assert proof == ec.certify(copied, disc, plane, n=1000, design="stratified")


def test_pages_and_cards_say_how_the_rows_were_drawn(result, tmp_path):
    proof = ec.certify(result.copy, disc, Space.normal(2), n=1000)
    shown = replace(result, certificate=proof)
    page = shown.report(tmp_path / "report.html").read_text()
    assert "more of them where the copy is unsure" in page
    assert f"{proof.strata[0].n} from the {100 * proof.strata[0].weight:.0f}" in page
    shown.save(tmp_path / "run")
    assert ec.load(tmp_path / "run").certificate == proof
    assert "It is stratified by the copy's margin" in model_card(tmp_path / "run")
    plain = replace(result, certificate=ec.certify(result.copy, disc, Space.normal(2), n=1000, design="plain"))
    assert "unsure:" not in plain.report(tmp_path / "plain.html").read_text()


def test_a_plain_certificate_is_what_it_was(copied):
    proof = ec.certify(copied, disc, Space.normal(2), n=500, design="plain")
    assert proof.design == "plain"
    assert proof.lower == lower_bound(round(500 * proof.estimate), 500)
    assert not {"strata", "sample", "design"} & set(proof.as_json())


@pytest.mark.parametrize(
    ("options", "words"),
    [({"design": "stratified"}, "a copy with probabilities"), ({"design": "best"}, "'stratified', 'plain'")],
)
def test_designs_that_cannot_be(options, words):
    with pytest.raises(SettingError, match=words):
        ec.certify(lambda rows: disc(rows), disc, Space.normal(2), n=10, **options)
    assert ec.certify(lambda rows: disc(rows), disc, Space.normal(2), n=10).design == "plain"


def test_rows_for_a_width():
    plain = Certificate(0.98, lower_bound(1960, 2000), 0.95, 2000)
    assert sample_size_for(plain, plain.width).rows["plain"] == pytest.approx(2000, abs=1)
    n = sample_size_for(plain, 0.003).rows["plain"]
    assert 0.98 - lower_bound(round(0.98 * n), n) == pytest.approx(0.003, abs=1e-5)
    strata = Stratum("near", 0.2, 700, 616), Stratum("away", 0.8, 1300, 1296)
    estimate, lower = stratified_bound(strata, 0.95)
    proof = Certificate(estimate, lower, 0.95, 2000, strata=strata, sample=1600)
    plan = sample_size_for(proof)
    assert sample_size_for(proof, proof.width).rows["stratified"] == pytest.approx(2000, abs=1)
    assert 6000 < plan.rows["stratified"] < 0.8 * plan.rows["plain"]
    assert plan.further["stratified"] == plan.rows["stratified"] - 2000
    times = plan.rows["stratified"] / 2000
    larger = tuple(Stratum(p.where, p.weight, round(p.n * times), round(p.agreed * times)) for p in strata)
    assert sample_size_for(proof, 1e-9).rows == {}
    estimate, lower = stratified_bound(larger, 0.95)
    assert estimate - lower == pytest.approx(plan.width, rel=0.05)  # by the bound itself
    parts = Certificate(0.98, 0.974, 0.95, 2000, near=Bound(0.9, 0.88, 400), away=Bound(1.0, 0.99, 1600))
    assert sample_size_for(parts, 0.003).rows.keys() == {"stratified", "plain"}
