"""Counts, tests and averages: against cases worked out by hand, scipy, and the paper's own numbers."""

import numpy as np
import pytest
from scipy import stats

from ectype_paper.operating_points import Point, Points, Spread
from ectype_paper.published import AVERAGES, QUOTED, table3, table4
from ectype_paper.statistics import averages, compare, counts, figures, held_out, holm, over_problems, paired_t


def points(problem, single, best, **others):
    """A problem whose operational points are all the same but for those named."""

    def point(accuracy):
        spread = Spread(tuple(accuracy))
        return Point(1e-6, spread, Spread(tuple(value - 0.5 for value in accuracy)), spread, spread)

    places = ("best_accuracy", "best_efficiency", "best_convergence")
    chosen = {place: point(others.get(place, best)) for place in places}
    fidelity = Spread(tuple(value - 0.5 for value in single))
    return Points(problem, Spread(tuple(single)), fidelity, **chosen, deltas=(point(best),), eligible=True)


def row(dataset="a", original=0.9, single=0.8, **more):
    found = {"dataset": dataset, "accuracy_original": original, "accuracy_single": single, "accuracy_single_std": 0.5}
    for place in ("best_accuracy", "best_efficiency", "best_convergence"):
        found |= {f"{place}_eff": 0.7, f"{place}_conv": 0.9, f"{place}_accuracy": 0.8}
    return {**found, **more}


@pytest.mark.parametrize("n", [2, 3, 30])
def test_the_paired_t_test_is_scipys(n, rng):
    first, second = rng.normal(0.8, 0.02, n), rng.normal(0.81, 0.02, n)
    assert paired_t(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_the_paired_t_test_by_hand():
    # Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), t = 3.4641 with two degrees of freedom.
    assert paired_t([2, 3, 4], [1, 1, 1]) == pytest.approx(0.0741799, abs=1e-7)


def test_without_deviation_there_is_all_or_nothing():
    assert paired_t([0.8, 0.7, 0.9], [0.8, 0.7, 0.9]) == 1.0
    assert paired_t([0.8, 0.7, 0.9], [0.75, 0.65, 0.85]) == 0.0  # the same 0.05, though floating point differs
    assert paired_t([0.3, 0.1 + 0.2, 0.3], [0.1 + 0.2, 0.3, 0.3]) == 1.0
    assert paired_t([0.8], [0.2]) is None


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04, which may not fall.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_is_never_below_the_p_values_nor_above_bonferroni(rng):
    p = rng.uniform(0, 0.1, 20)
    corrected = np.array(holm(p))
    assert (corrected >= p).all()
    assert (corrected <= np.minimum(1, 20 * p) + 1e-12).all()
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()


def test_verdicts_by_test_and_by_margin():
    problems = [
        points("same", [0.8, 0.7, 0.9], [0.8, 0.7, 0.9]),
        points("little worse", [0.80, 0.70, 0.90], [0.79, 0.69, 0.89]),
        points("noisy", [0.5, 0.6, 0.9], [0.9, 0.7, 0.75]),
        points("better", [0.5, 0.6, 0.7], [0.7, 0.8, 0.9]),
        points("at the margin", [0.80, 0.79, 0.81], [0.85, 0.82, 0.88]),
    ]
    found = {one.problem: one for one in compare(problems, "best_accuracy")}
    assert [one.by_test for one in found.values()] == ["matches", "worse", "matches", "better", "matches"]
    assert [one.by_margin for one in found.values()] == ["matches", "matches", "better", "better", "matches"]
    assert found["at the margin"].p < 0.05 < found["at the margin"].corrected
    assert counts([one.by_test for one in found.values()]) == {"matches": 3, "better": 1, "worse": 1}
    assert found["noisy"].difference == pytest.approx(0.35 / 3)


def test_a_difference_is_found_from_the_least_one_on(rng):
    single = rng.uniform(0.5, 0.6, 10)
    noise = rng.normal(0, 0.02, 10)
    others = [points(f"{i}", [0.8] * 10, [0.8] * 10) for i in range(4)]
    least = compare([points("a", single, single + noise), *others], "best_accuracy")[0].least
    for share, verdict in ((0.999, "matches"), (1.001, "better")):
        moved = single + noise - noise.mean() + share * least
        assert compare([points("a", single, moved), *others], "best_accuracy")[0].by_test == verdict


def test_other_points_and_measures_are_compared_too():
    problems = [points("a", [0.8, 0.9], [0.8, 0.9], best_efficiency=[0.6, 0.7])]
    assert compare(problems, "best_accuracy")[0].difference == 0
    assert compare(problems, "best_efficiency")[0].difference == pytest.approx(-0.2)
    assert compare(problems, "best_efficiency", "fidelity")[0].difference == pytest.approx(-0.2)
    assert compare(problems, "best_accuracy", against="best_efficiency")[0].difference == pytest.approx(0.2)


def test_one_repetition_leaves_nothing_to_test():
    (one,) = compare([points("a", [0.8], [0.2])], "best_accuracy")
    assert (one.p, one.corrected, one.least, one.by_test, one.by_margin) == (None, None, None, "matches", "worse")


def test_luck_is_not_held_out():
    def point(delta, accuracy, eff):
        return Point(delta, Spread(accuracy), Spread((0.5, 0.5)), Spread((eff, eff)), Spread((0.9, 0.9)))

    lucky, steady = point(1e-4, (0.7, 1.0), 0.9), point(1e-6, (0.84, 0.84), 0.5)
    single = Spread((0.8, 0.8))
    problem = Points("a", single, Spread((0.4, 0.4)), lucky, lucky, lucky, (lucky, steady), True)
    # Run 0 is judged by what run 1 chose, the lucky one, and has 0.7; run 1 by what run 0 chose, and has 0.84.
    assert held_out(problem, "best_accuracy") == pytest.approx((0.7 + 0.84) / 2 - 0.8)
    assert held_out(problem, "best_accuracy", "fidelity") == pytest.approx(0.1)
    # Only in run 1 is the lucky one eligible, and it has the higher eff: the same choice.
    assert held_out(problem, "best_efficiency") == pytest.approx((0.7 + 0.84) / 2 - 0.8)
    assert held_out(points("a", [0.8], [0.9]), "best_accuracy") is None
    # Where nothing is eligible, the most accurate stands in, whatever the goal.
    bad = Points("b", Spread((1.0, 1.0)), single, lucky, lucky, lucky, (point(1e-4, (0.5, 0.5), 0.9), steady), False)
    assert held_out(bad, "best_efficiency") == pytest.approx(-0.16)


def test_wilcoxon_over_problems(rng):
    differences = rng.normal(0.01, 0.02, 40)
    found = over_problems([*differences, 0.0, 1e-17])
    assert found.n == 40
    assert found.p == pytest.approx(stats.wilcoxon(differences).pvalue, rel=1e-6)
    assert found.mean == pytest.approx(differences.sum() / 42)


def test_wilcoxon_by_hand():
    # All five of one sign: the most extreme of 32 assignments, on either side.
    assert over_problems([0.01, 0.02, 0.03, 0.04, 0.05]).p == pytest.approx(2 / 32)
    assert over_problems([0.0, 0.0]) == over_problems([0.0, 0.0])
    assert over_problems([0.0, 0.0]).p == 1.0
    assert over_problems([0.01, 0.03]).error == pytest.approx(0.01)
    assert over_problems([0.01]).error is None


def test_averages_leave_out_names_and_deviations():
    found = averages([row(single=0.6), row("b", single=0.8)])
    assert found["accuracy_single"] == pytest.approx(0.7)
    assert not [name for name in found if name == "dataset" or name.endswith("_std")]


def test_figures_by_hand():
    rows = [
        row(best_accuracy_accuracy=0.7, best_efficiency_eff=0.9),
        row("b", best_accuracy_accuracy=0.75, best_convergence_conv=0.95),
        row("c", original=0.7, best_accuracy_accuracy=0.9, best_convergence_eff=0.5, best_efficiency_accuracy=0.79),
        row("d", original=0.8),
    ]
    found = figures(rows)
    assert (found["matches"], found["worse"], found["better"]) == (2, 1, 1)  # 0.05 itself still matches
    assert found["best_accuracy_points"] == pytest.approx(0.15)
    assert found["best_accuracy_time"] == pytest.approx(0.2)
    assert found["best_efficiency_eff"] == pytest.approx(0.75)
    assert found["best_efficiency_loss"] == pytest.approx(0.01 / 4 / 0.8)
    assert found["best_efficiency_lower"] == 1
    assert (found["best_efficiency_saves"], found["best_convergence_costs"]) == (1, 1)
    assert found["best_convergence_differs"] == 1
    assert (found["below_original"], found["above_original"]) == (2, 1)
    assert found["least_saved"] == pytest.approx(1 - 0.35 / 2)  # at Best convergence, whose mean eff is 0.65
    assert found["most_saved"] == pytest.approx(1 - 0.25 / 2)
    assert found["least_time_saved"] == pytest.approx(0.8)
    assert (found["lowest_conv"], found["highest_conv"]) == (0.9, 0.95)


def test_the_margin_gives_the_papers_counts_from_the_papers_table():
    found = figures(list(table4().values()))
    assert {name: found[name] for name in ("matches", "worse", "better")} == {"matches": 53, "worse": 4, "better": 1}
    assert found["best_accuracy_points"] == pytest.approx(QUOTED["best_accuracy_points"], abs=0.005)
    assert found["best_efficiency_points"] == pytest.approx(QUOTED["best_efficiency_points"], abs=0.005)
    assert {*QUOTED} <= {*found}


def test_the_counts_that_no_margin_gives():
    rows = list(table4().values())
    copies = ("accuracy_single", "best_accuracy_accuracy")
    for margin in np.arange(0, 0.0605, 0.001) + 1e-9:
        below = sum(all(one[name] < one["accuracy_original"] - margin for name in copies) for one in rows)
        above = sum(all(one[name] > one["accuracy_original"] + margin for name in copies) for one in rows)
        lower = [
            sum(one[f"{place}_accuracy"] < one["accuracy_single"] - margin for one in rows)
            for place in ("best_efficiency", "best_convergence")
        ]
        assert below != QUOTED["below_original"]
        assert above != QUOTED["above_original"]
        assert lower[0] != QUOTED["best_efficiency_lower"]
        assert lower[1] != QUOTED["best_convergence_lower"]


def test_what_the_documents_say_of_the_papers_averages():
    found = averages(list(table4().values()))
    assert {name: round(found[name], 3) for name in ("accuracy_original", "accuracy_single", "best_accuracy_eff")} == {
        "accuracy_original": 0.831,
        "accuracy_single": 0.790,
        "best_accuracy_eff": 0.720,
    }
    assert {*AVERAGES} == {*found}
    welch = [
        stats.ttest_ind_from_stats(
            one["best_accuracy_accuracy"], one["best_accuracy_accuracy_std"], 30,
            one["accuracy_single"], one["accuracy_single_std"], 30, equal_var=False,
        ).pvalue
        if one["best_accuracy_accuracy_std"] + one["accuracy_single_std"] > 0 else 1.0
        for one in table4().values()
    ]  # fmt: skip
    sides = [one["best_accuracy_accuracy"] - one["accuracy_single"] for one in table4().values()]
    found = [side for side, p in zip(sides, holm(welch), strict=True) if p < 0.05]
    assert (sum(side < 0 for side in found), sum(side > 0 for side in found)) == (2, 1)


def test_the_papers_tables_are_whole():
    from ectype_paper.originals import FAMILIES

    assert {one["original"] for one in table3().values()} == {*FAMILIES} - {"toy_rbf_svm"}
    assert {*table3()} - {*table4()} == {"congressional-voting"}
    assert table3()["wine"]["samples"] == 178
    for one in table4().values():
        assert all(0 <= value <= 1 for name, value in one.items() if name != "dataset")
        assert one["accuracy_original"] == table3()[one["dataset"]]["accuracy_original"]
