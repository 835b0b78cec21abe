"""A refresh that is given answers of today: they are evidence, they teach, and some of them measure both copies."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from test_refresh import SMALL, counting, files, moved

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.algorithm.training import steps
from ectype.certificate.certify import certify_answers, unseen_answers
from ectype.errors import DirectoryError, OriginalError, PriorAnswersError, SettingError
from ectype.ledger import Purpose
from ectype.queries import LabelClaims, Queries, read_sources, run_drift_test
from ectype.refresh import Refresh
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
OPTIONS = {"budget": 400, "schedule": steps(60)}


def traffic(function, n=700, seed=5):
    """Rows as they come in production, some of them twice, with an original's answers."""
    rows = PLANE.sample(n, np.random.default_rng(seed))
    rows = np.concatenate([rows, rows[: n // 10]])
    return pd.DataFrame(rows, columns=["x0", "x1"]).assign(label=function(rows))


def keys(rows):
    return {row.tobytes() for row in np.ascontiguousarray(rows, float)}


def asked_of(run):
    """By purpose, the rows in a run's ledger."""
    return {purpose: keys(told[0]) for purpose, told in ledger.read_answers(run / ledger.LEDGER).items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_lessons):
    path = tmp_path_factory.mktemp("first") / "run"
    ec.copy_classifier(disc, PLANE, out=path, **SMALL)
    return path


@pytest.fixture(scope="module")
def taught(finished, tmp_path_factory):
    """A refresh with traffic of after the change: its directory, its result, and how often each row was asked."""
    out, asked = tmp_path_factory.mktemp("taught") / "new", Counter()
    result = ec.refresh(finished, counting(moved, asked), out=out, answers=traffic(moved), **OPTIONS)
    return out, result, asked


def test_they_cost_nothing_but_the_rows_that_see_whose_they_are(taught):
    out, result, asked = taught
    assert result.queries["same"] == 60
    assert result.queries["training"] <= 400
    assert sum(result.queries.values()) == asked.total()
    apart = result.refreshed["on_answers"]["distinct"]
    assert (result.given["used"], result.given["left_out"]) == (700 - apart, {"apart": apart})
    assert result.history[0].kept == result.given["used"] + result.refreshed["check"]["asked"]
    given = keys(traffic(moved)[["x0", "x1"]])
    found = asked_of(out)
    assert len(found["given"]) == result.given["used"]
    assert found["given"] < given
    assert not given & (found["training"] | found["check"] | found["certificate"])


def test_both_copies_are_measured_on_rows_that_taught_neither(taught, finished):
    out, result, _ = taught
    found, table = result.refreshed["on_answers"], traffic(moved)
    rows = table[["x0", "x1"]].to_numpy()
    learned = asked_of(out)["given"]
    apart = np.array([row.tobytes() not in learned for row in rows])
    assert found["rows"] == apart.sum() > 250
    assert found["distinct"] == len(keys(rows[apart]))
    for name, copy in (("before", ec.load(finished).copy), ("after", ec.load(out).copy)):
        assert found[name]["estimate"] == (copy.predict(rows[apart]) == moved(rows[apart])).mean()
        assert found[name]["lower"] < found[name]["estimate"]
    assert found["before"]["estimate"] < 0.9 < found["after"]["lower"]
    assert ec.load(out).refreshed == json.loads((out / "run.json").read_text())["refreshed"] == result.refreshed
    proof = ec.load(out).certificate.on_answers
    assert (proof.n, proof.estimate) == (found["rows"], found["after"]["estimate"])
    assert proof.differences.examples == ()  # they are somebody's rows
    assert "rows with given answers" in str(result)


def test_they_make_a_better_copy(taught, finished, tmp_path):
    rows = PLANE.sample(4000, np.random.default_rng(1))
    options = {**OPTIONS, "budget": 100, "check": 50}
    results = [
        ec.refresh(finished, moved, out=tmp_path / f"{n}", answers=given, **options)
        for n, given in enumerate((None, traffic(moved)))
    ]
    alone, given = ((result.copy.predict(rows) == moved(rows)).mean() for result in results)
    assert 1 - given < 0.6 * (1 - alone)


def test_answers_of_another_day_are_refused_with_the_rows_that_differ(finished, tmp_path):
    before, asked = files(finished), Counter()
    with pytest.raises(
        PriorAnswersError, match=r"otherwise to \d+ of \d+ rows: x0=.* was (True|False) and is .*as it is now"
    ):
        ec.refresh(finished, counting(moved, asked), out=tmp_path / "new", answers=traffic(disc), **OPTIONS)
    assert asked.total() < 300
    assert not (tmp_path / "new").exists()
    assert files(finished) == before


def test_a_single_answer_of_another_day_is_enough_where_the_original_always_answers_alike(finished, tmp_path):
    table = traffic(moved)
    table.loc[::25, "label"] = ~table.loc[::25, "label"]  # 4 %
    with pytest.raises(PriorAnswersError):
        ec.refresh(finished, moved, out=tmp_path / "new", answers=table, deterministic=True, **OPTIONS)


def test_without_a_change_the_copy_is_measured_as_certify_does_and_nothing_is_written(finished, tmp_path):
    asked, table = Counter(), traffic(disc)
    result = ec.refresh(finished, counting(disc, asked), out=tmp_path / "new", check=100, answers=table)
    assert result.refreshed["verdict"] == "unchanged"
    assert asked.total() == 100
    assert not (tmp_path / "new").exists()
    copy = ec.load(finished).copy
    proof = certify_answers(
        copy, PLANE, unseen_answers(read_sources(table), copy, PLANE, finished).require_some(), 0.95
    )
    found = result.refreshed["on_answers"]
    assert (found["rows"], found["distinct"]) == (770, 700)
    assert found["before"] == {"estimate": proof.estimate, "lower": proof.lower}
    assert "after" not in found


def test_rows_of_the_ledger_are_evidence_and_those_of_its_certificate_do_not_teach(finished, tmp_path):
    """A change that random rows seldom meet: but all of the rows that it is about were in production."""

    def slightly(rows):
        return disc(rows) ^ ((rows**2).sum(axis=1) > 6)

    before = ledger.read_answers(finished / ledger.LEDGER)
    rows = np.concatenate([before[purpose][0] for purpose in ("training", "certificate")])
    changed = rows[disc(rows) != slightly(rows)]
    assert 10 < len(changed) < len(rows) / 10
    table = pd.concat([pd.DataFrame(changed, columns=["x0", "x1"]).assign(label=True), traffic(slightly)])
    result = ec.refresh(finished, slightly, out=tmp_path / "new", check=50, answers=table, **OPTIONS)
    found = result.refreshed["check"]
    assert found["asked"] == 50  # a single look
    assert found["contested"]["asked"] == found["contested"]["stayed"] >= 5
    assert result.refreshed["verdict"] == "changed"
    held = keys(changed) & keys(before["certificate"][0])
    assert result.given["left_out"]["held_out"] == len(held) > 0
    asked = asked_of(tmp_path / "new")
    assert keys(changed) - held <= asked["given"]
    assert held <= asked["certificate"] | asked["check"]


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_claims_of_a_noisy_original_are_no_change(noise):
    """Second answers as noisy as the first: where they differ, the third is as likely to equal either."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng([seed, 3])
        space = ec.Space.uniform([0.0], [1.0])
        noisy = ec.Original(lambda rows, rng=rng: (rows[:, 0] > 0.5) ^ (rng.random(len(rows)) < noise))
        rows = space.sample(1000, rng)
        first, second = noisy.answer(rows), noisy.answer(rows)
        queries = Queries(noisy, space, {Purpose.CHECK: 200, Purpose.REPEAT: 400})
        found.append(run_drift_test(queries, rows, first, 50, 200, rng, claims=LabelClaims(np.arange(1000), second)))
    assert all(0 < one.contested.asked <= 50 for one in found)
    assert sum(one.changed for one in found) <= 14  # 200 * 5 %, and a little luck


def test_an_unchanged_original_is_not_given_away_by_claims_of_another(finished, tmp_path):
    """Answers that nobody gave: one more of the original's own speaks against them."""
    rows = ledger.read_answers(finished / ledger.LEDGER)["training"][0]
    wrong = pd.DataFrame(rows, columns=["x0", "x1"]).assign(label=~disc(rows))
    result = ec.refresh(finished, disc, out=tmp_path / "new", check=60, answers=wrong)
    assert result.refreshed["verdict"] == "unchanged"
    contested = result.refreshed["check"]["contested"]
    assert (contested["stayed"], contested["returned"]) == (0, contested["asked"])
    assert result.refreshed["on_answers"] == {"rows": 0, "left_out": {"own": 600}, "before": None}


@pytest.mark.parametrize("after", [30, 100, 250, 560])
def test_an_interrupted_refresh_goes_on_to_the_same_bytes(taught, finished, tmp_path, after):
    out, result, expected = taught
    asked = Counter()
    options = {"out": tmp_path / "new", "answers": traffic(moved), **OPTIONS}
    with pytest.raises(OriginalError):
        ec.refresh(finished, counting(moved, asked, most=after), **options)
    with pytest.raises(DirectoryError, match="other given answers, or none"):
        ec.refresh(finished, counting(moved, asked), **{**options, "answers": traffic(moved, 300)})
    resumed = ec.refresh(finished, counting(moved, asked), **options)
    assert asked == expected
    assert resumed.refreshed == result.refreshed
    for name in ("copy.safetensors", "copy.json"):
        assert files(out)[name] == files(tmp_path / "new")[name]


def test_the_next_refresh_knows_them(taught, tmp_path):
    """What taught the last copy does not measure it, whoever gives it again."""
    out, result, _ = taught
    again = ec.refresh(out, moved, out=tmp_path / "next", check=80, answers=traffic(moved))
    assert again.refreshed["verdict"] == "unchanged"
    found = again.refreshed["on_answers"]
    assert found["rows"] == result.refreshed["on_answers"]["rows"]
    assert found["before"] == result.refreshed["on_answers"]["after"]


def test_kept_traffic_counts_as_often_as_it_came(finished, tmp_path):
    """As `serve --keep` writes it: the same rows, of the same labels, as in the table."""
    table = traffic(disc)
    (tmp_path / "kept").mkdir()
    with ledger.Ledger(tmp_path / "kept" / ledger.LEDGER, {"original": "mine", "dropped": []}, PLANE) as book:
        book.record(table[["x0", "x1"]].to_numpy(), table["label"].to_numpy(), ledger.Purpose.TRAFFIC)
    found = [
        ec.refresh(finished, disc, out=tmp_path / "new", check=50, answers=answers).refreshed["on_answers"]
        for answers in (tmp_path / "kept", table)
    ]
    assert found[0] == found[1]
    assert (found[0]["rows"], found[0]["distinct"]) == (770, 700)


@pytest.mark.parametrize("missing", [True, False])
def test_a_column_that_the_copy_does_not_see_may_be_missing(tmp_path, missing):
    space = ec.Space.from_json(PLANE.to_json())
    path, seen = tmp_path / "run", {"exclude": ["x1"], "certificate_n": 100}
    ec.copy_classifier(lambda rows: rows[:, 0] > 0, space, out=path, budget=150, preset="fast", **seen)
    table = traffic(lambda rows: rows[:, 0] > 0.5, 300)
    options = {"out": tmp_path / "new", "budget": 100, "check": 50}
    original = ec.Original(lambda rows: rows[:, 0] > 0.5, name="later")
    if missing:
        with pytest.warns(ec.errors.EctypeWarning, match="whether they are its own is not known"):
            result = ec.refresh(path, original, answers=table.drop(columns="x1"), **options)
    else:
        result = ec.refresh(path, original, answers=table, **options)
    found = result.refreshed["on_answers"]
    assert found["rows"] > 80
    assert found["before"]["estimate"] < 0.9 < found["after"]["estimate"]
    assert result.given["used"] + found["distinct"] == 300


def test_a_plan_has_room_for_what_is_asked_again(finished):
    plain, given = (Refresh.of(finished, ec.Original(disc), {}, answers=answers) for answers in (None, traffic(disc)))
    assert (plain.again, given.again) == (0, 2 * 240)
    assert given.allowance.planned == plain.allowance.planned + 2 * 240
    assert "answers" not in plain.about
    rows = ledger.read_answers(finished / ledger.LEDGER)["certificate"][0]
    table = pd.DataFrame(rows, columns=["x0", "x1"]).assign(label=True)
    with pytest.raises(SettingError, match="none of 300: 300 are about rows of the certificate"):
        Refresh.of(finished, ec.Original(disc), {}, answers=table)


def test_the_command_says_what_it_made_of_them(finished, tmp_path):
    (tmp_path / "models.py").write_text("def other(rows):\n    return ((rows - [0.4, 0.0]) ** 2).sum(axis=1) < 1\n")
    traffic(moved).to_csv(tmp_path / "today.csv", index=False)
    words = ("refresh", finished, "models:other", "--check", "100", "--budget", "150", "--answers", "today.csv")
    said = run_command(*words, "--out", "new", "--json", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "answers were given and cost nothing" in said.stderr
    assert "held apart, to measure with" in said.stderr
    document = json.loads(said.stdout)
    assert document["on_answers"]["after"]["estimate"] > document["on_answers"]["before"]["estimate"]
    assert document["certificate"]["on_answers"]["n"] == document["on_answers"]["rows"]
    assert "such as kept traffic, the earlier copy" in (tmp_path / "new" / "report.html").read_text()
    shown = run_command(*words, "--out", "other", cwd=tmp_path)
    assert "rows with given answers that taught nothing, the copy agrees on" in shown.stdout
    traffic(disc).to_csv(tmp_path / "stale.csv", index=False)
    stale = run_command(*words[:-1], "stale.csv", "--out", "third", cwd=tmp_path)
    assert stale.returncode == 2
    assert "says otherwise to" in stale.stderr
    assert not (tmp_path / "third").exists()
