"""The cascade: what the copy answers alone, what is asked of the original, and what is said about it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

import ectype as ec
from ectype.cascades._calibration_sample import of_run
from ectype.errors import EctypeWarning, OriginalError, OutageError, SettingError, SpaceError

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
QUICK = {"budget": 400, "repeat": 0, "progress": False}


def waves(rows):
    """An original that few queries do not copy everywhere."""
    x, y = np.asarray(rows, float).T
    return np.sin(3 * x) + np.sin(2 * y) > 0


class Asked:
    """The waves, which keeps the rows that it is asked about, and may be out."""

    def __init__(self):
        self.rows, self.out = [], False

    @property
    def n(self):
        return sum(map(len, self.rows))

    def __call__(self, rows):
        if self.out:
            raise OutageError("disc", "an answer", "nothing")
        self.rows.append(np.asarray(rows))
        return waves(rows)


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_lessons):
    return ec.copy_classifier(waves, PLANE, out=tmp_path_factory.mktemp("cascade") / "run", **QUICK)


def fresh(n, seed=5):
    return np.random.default_rng(seed).normal(size=(n, 2))


def test_the_held_out_rows_of_a_run_certify_it_at_no_query(run):
    original, rows = Asked(), fresh(20_000)
    both = ec.cascade(ec.load(run.directory), original, agree=0.99)
    assert (original.n, both.routing.queries, both.routing.overall.n) == (0, 0, 2000)
    found = both.decide(rows)
    alone = found.by == "copy"
    assert original.n == (~alone).sum()
    assert 0.5 < alone.mean() < 1
    assert abs(alone.mean() - both.alone) < 0.01
    np.testing.assert_array_equal(np.concatenate(original.rows), rows[~alone])
    np.testing.assert_array_equal(found.labels, np.where(alone, run.copy.predict(rows), waves(rows)))
    assert (found.labels == waves(rows))[alone].mean() >= 0.99
    assert 1 - both.errors["alone"] == both.agreement.estimate >= both.agreement.lower == both.agree
    assert both.errors["all"] <= both.errors["alone"]
    assert both.overall.estimate > both.overall.lower > both.agree
    assert both.routing.alone_lower < both.alone < both.routing.alone_upper


def test_it_is_a_classifier(run):
    both, rows = ec.cascade(run, waves, agree=0.99), fresh(200)
    chances = both.predict_proba(rows)
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(both.classes_[chances.argmax(axis=1)], both.predict(rows))
    alone = both.decide(rows).by == "copy"
    np.testing.assert_array_equal(chances[alone], run.copy.predict_proba(rows)[alone])
    assert set(chances[~alone].ravel()) == {0.0, 1.0}
    assert is_classifier(both)
    assert clone(both) is both.fit(rows, waves(rows)) is both
    assert both.score(rows, waves(rows)) >= 0.99
    assert both.n_features_in_ == 2
    assert type(both)(**both.get_params()).threshold == both.threshold
    assert both.saved == 1000 * both.alone
    assert ec.cascade(run, waves, agree=0.99, cost=0.5).saved == 500 * both.alone


def test_rows_that_selected_the_copy_have_a_smaller_allowance(run, tmp_path):
    """By the certificate's own Bonferroni correction, for another confidence too."""
    chosen = ec.remake(run.directory, to="tree")
    assert chosen.certificate.level == 0.975
    assert ec.cascade(chosen, waves, agree=0.9).routing.level == pytest.approx(0.975, abs=1e-4)
    assert ec.cascade(chosen, waves, agree=0.9, confidence=0.9).routing.level == pytest.approx(0.95, abs=1e-4)
    assert ec.cascade(chosen, waves, agree=0.9, n=500).routing.level == pytest.approx(0.95, abs=1e-4)


def test_rows_that_a_space_draws_twice_count_twice(tmp_path):
    """A ledger has each row once; the sample is what was drawn."""
    frame = pd.DataFrame({"a": np.arange(400) % 5, "b": np.array(["x", "y", "z"])[np.arange(400) % 3]})
    original = Asked()

    def decide(rows):
        original.rows.append(rows)
        return np.where(rows["a"] > 2, rows["b"], "none")

    result = ec.copy_classifier(decide, ec.Space.from_data(frame), out=tmp_path / "run", certificate_n=900, **QUICK)
    original.rows.clear()
    evidence = of_run(result)
    assert len(evidence.held) == result.certificate.n == 900
    assert evidence.held.alike.mean() == result.certificate.estimate
    assert original.n == 0


def test_rows_are_asked_where_the_run_kept_none(run, tmp_path):
    original = Asked()
    both = ec.cascade(ec.load(run.save(tmp_path / "saved")), original, agree=0.99, n=700, progress=False)
    assert (original.n, both.routing.queries, both.routing.overall.n) == (700, 700, 700)
    again, saved = Asked(), replace(ec.load(tmp_path / "saved"), directory=None)
    with pytest.raises(SettingError, match=r"n: expected held-out rows of the run.*such as n=5000"):
        ec.cascade(saved, again, agree=0.99, progress=False)
    assert again.n == 0


def test_a_result_in_memory_is_certified_by_its_own_held_out_rows_and_nothing_is_asked():
    original = Asked()
    result = ec.copy_classifier(original, PLANE, **QUICK)
    asked = original.n
    both = ec.cascade(result, original, agree=0.9)
    assert (original.n, both.routing.queries, both.routing.source) == (asked, 0, "held-out rows of the run")
    assert both.routing.overall.n == result.certificate.n


def test_rows_of_your_own(run):
    original, rows = Asked(), 0.5 * fresh(1500, seed=9)
    both = ec.cascade(run, original, agree=0.99, rows=np.concatenate([rows, rows[:10]]), progress=False)
    assert (original.n, both.routing.overall.n) == (1500, 1510)
    sure = ec.cascades._calibration_sample.judged(run.copy, np.concatenate([rows, rows[:10]]))[1]
    assert both.alone == (sure >= both.threshold).mean()
    learned = ec.ledger.read_answers(run.directory / "ledger.sqlite")["training"][0]
    again = ec.cascade(run, waves, agree=0.99, rows=np.concatenate([rows, learned[:5]]), progress=False)
    assert (again.routing.overall.n, again.routing.left_out) == (1500, {"taught": 5})
    assert "5 more were left out: 5 taught the copy" in " ".join(str(again).split())
    with pytest.raises(SpaceError, match=r"none of 20: 20 taught the copy.*rows that it was not asked about"):
        ec.cascade(run, waves, rows=learned[:20], progress=False)
    with pytest.raises(SettingError, match="one of them"):
        ec.cascade(run, waves, rows=rows, n=10)


def test_nothing_is_answered_alone_that_cannot_be_certified(run):
    both = ec.cascade(run, waves, agree=0.999)  # 2000 rows are too few, whatever they say
    assert (both.alone, both.agreement, both.overall.estimate, both.errors) == (0, None, 1, {"alone": 0, "all": 0})
    assert set(both.decide(fresh(50)).by) == {"original"}
    assert both.routing.enough >= both.routing.fewest >= 2995
    assert f"n={both.routing.enough}" in str(both)
    enough = ec.cascade(run, waves, agree=0.999, n=2 * both.routing.enough, progress=False)
    assert enough.alone > 0.5
    poor = ec.cascade(ec.remake(run.directory, to="linear"), waves, agree=0.999)
    assert poor.alone == 0
    assert poor.routing.enough is None
    assert "a more faithful copy" in " ".join(str(poor).split())


def test_an_outage_is_an_error_or_the_copys_own_answer_marked(run):
    original, rows = Asked(), fresh(300)
    strict = ec.cascade(run, original, agree=0.99)
    lenient = ec.cascade(run, original, agree=0.99, on_outage="copy")
    original.out = True
    with pytest.raises(OutageError):
        strict.predict(rows)
    sure = rows[lenient.decide(rows).by == "copy"]
    np.testing.assert_array_equal(strict.predict(sure), run.copy.predict(sure))  # nobody is asked
    found = lenient.decide(rows)
    assert set(found.by) == {"copy", "outage"}
    np.testing.assert_array_equal(found.labels, run.copy.predict(rows))
    original.out = False
    assert set(lenient.decide(rows).by) == {"copy", "original"}
    with pytest.raises(SettingError, match="on_outage"):
        ec.cascade(run, original, on_outage="retry")


def test_what_was_answered_before_an_outage_is_used(run):
    parts = []

    def answer(rows):
        parts.append(rows)
        if len(parts) == 2:
            raise OriginalError("disc", "an answer", "a row that it refuses")
        if len(parts) == 4:
            raise OutageError("disc", "an answer", "nothing")
        return waves(rows)

    both = ec.cascade(run, ec.Original(answer, request_rows=4), agree=0.99, on_outage="copy")
    rows = fresh(20_000)
    unsure = rows[~both.routing.answers(ec.cascades._calibration_sample.judged(run.copy, rows)[1])][:20]
    by = both.decide(unsure).by
    assert by.tolist() == ["original"] * 4 + ["outage"] * 4 + ["original"] * 4 + ["outage"] * 8
    assert len(parts) == 4  # nothing is sent after an outage


def test_an_endpoint_that_was_out_is_opened_anew(run):
    """One that was out is not asked again: its circuit breaker stays open."""
    original, opened = ec.Original(Asked()), []
    original.predict.out = True
    original.anew = lambda: opened.append(1) or ec.Original(waves)
    both = ec.cascade(run, original, agree=0.99)
    with pytest.raises(OutageError):
        both.predict(fresh(300))
    assert set(both.decide(fresh(300)).by) == {"copy", "original"}
    assert len(opened) == 1
    assert ec.open_original("ectype.toy_problems:spirals").anew().name == "ectype.toy_problems:spirals"


def test_data_frames_reach_the_original_as_they_came(tmp_path):
    """A level that the space does not know is no row of it, so that nothing is certified there."""
    rng, seen = np.random.default_rng(0), []
    frame = pd.DataFrame({"a": rng.normal(size=500), "b": rng.choice(["x", "y"], 500)})

    def original(rows):
        seen.append(rows)
        return np.where(rows["b"] == "new", "other", np.where(rows["a"] > 0, "up", "down"))

    result = ec.copy_classifier(original, ec.Space.from_data(frame), preset="fast", **QUICK)
    both = ec.cascade(result, original, agree=0.97, n=1000, progress=False)
    asked = pd.DataFrame({"extra": [1, 2, 3], "a": [3.0, -3.0, 3.0], "b": ["x", "y", "new"]}, index=[7, 8, 9])
    with pytest.warns(EctypeWarning, match="new"):
        found = both.decide(asked)
    assert found.by.tolist() == ["copy", "copy", "original"]
    assert found.labels.tolist() == ["up", "down", "other"]  # a label that the copy does not have
    assert seen[-1].to_dict("list") == {"extra": [3], "a": [3.0], "b": ["new"]}
    with pytest.warns(EctypeWarning, match="new"), pytest.raises(OriginalError, match="other"):
        both.predict_proba(asked)


def test_columns_that_the_copy_does_not_see_are_for_the_original(tmp_path):
    rows = fresh(500)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    decide = lambda frame: frame["a"] + 0.1 * frame["b"] > 0  # noqa: E731
    result = ec.copy_classifier(decide, ec.Space.from_data(frame), exclude=["b"], out=tmp_path / "run", **QUICK)
    both = ec.cascade(result, decide, agree=0.97)
    assert 0 < both.alone < 1
    found = both.decide(frame)
    asked = found.by == "original"
    np.testing.assert_array_equal(found.labels[asked], decide(frame)[asked])
    np.testing.assert_array_equal(found.labels[~asked], result.copy.predict(frame)[~asked])


def test_what_is_refused(run, tmp_path):
    pd.DataFrame({"x0": [0.0, 1.0], "x1": [0.0, 1.0], "label": ["a", "b"]}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(SettingError, match="new rows"):
        ec.cascade(run, ec.open_original(str(tmp_path / "a.csv")))
    with pytest.raises(SettingError, match="agree"):
        ec.cascade(run, waves, agree=1.0)
    with pytest.raises(SettingError, match="cost"):
        ec.cascade(run, waves, cost=-1.0)
    both = ec.cascade(run, lambda rows: ["in"] * len(rows), agree=0.99)
    with pytest.raises(OriginalError, match="False, True"):
        both.predict(fresh(300))  # words, where the copy's labels are booleans


@pytest.mark.parametrize("agree", [0.99, 0.999])
def test_what_is_printed_fits_on_a_screen(run, agree):
    both = ec.cascade(run, waves, agree=agree, cost=0.02)
    for thing in (both, both.routing):
        lines = str(thing).splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 100
        assert len(repr(thing)) <= 200
        assert thing._repr_html_().count("<table>") == 1
    assert f"{both.alone:.4f}" in str(both)
    assert (f"alone={both.alone:.4f}" in repr(both)) == (agree == 0.99)
    assert both.routing.as_json()["threshold"] == (both.threshold if agree == 0.99 else None)


def test_the_worst_label_stands_beside_what_is_certified(tmp_path):
    """A rare label may be lost behind an agreement on nearly all rows."""

    def rare(rows):
        return np.where(rows[:, 0] * rows[:, 1] > 2.2, "fraud", np.where(rows[:, 0] > 0, "good", "fair"))

    result = ec.copy_classifier(rare, PLANE, to="tree", max_leaves=2, **QUICK)
    both = ec.cascade(result, rare, agree=0.9)
    rows, said = result.asked["certificate"]
    labels = said.labels
    given = both.decide(rows)
    agreed = {label: int((given.labels == labels)[labels == label].sum()) for label in set(labels.tolist())}
    worst = both.routing.worst
    assert (worst.label, worst.agreed, worst.n) == ("fraud", agreed["fraud"], int((labels == "fraud").sum()))
    assert worst.estimate < 0.5
    assert f"Its worst label, on all of these rows: 'fraud', {worst.agreed} of {worst.n}." in " ".join(
        str(both).split()
    )
    assert both.routing.as_json()["worst"]["label"] == "fraud"
