"""Which of the user's own rows certify a copy: none that taught it, and all of them as they came."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import ectype as ec
from commands import run_command
from ectype.certificate.formatting import about_rows
from ectype.certificate.user_sample import UserSample
from ectype.errors import EctypeWarning, OriginalError, SettingError, SpaceError
from ectype.models.training_rows import TrainingRows, hashed
from ectype.original.in_memory_rows import reads_its_context, remembered
from ectype.runs.previous_run import PreviousRun
from ectype.space import Support

pytestmark = pytest.mark.usefixtures("small_lessons")
EARLIER = Path(__file__).parents[1] / "runs" / "version_0_1" / "run"
QUICK = {"budget": 600, "certificate_n": 300, "repeat": 0, "progress": False}
MINE = """
import numpy as np

def waves(rows):
    return np.sin(4 * rows["a"]) + np.sin(3 * rows["b"]) > 0

def with_tier(rows):
    tier = rows["tier"].fillna("none") if "tier" in rows else "none"
    return waves(rows) ^ (tier == "gold")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, small_lessons):
    """A run that was given 1,200 rows, and the command beside it."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "mine.py").write_text(MINE)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(1200, 2)), columns=["a", "b"])
    frame.to_csv(folder / "rows.csv", index=False)
    space = ec.Space.from_data(frame)
    original = ec.Original(waves, name="mine:waves")
    ec.copy_classifier(original, space, rows=frame, rows_share=0.5, out=folder / "run", **QUICK)
    return folder


def waves(rows):
    return np.sin(4 * rows["a"]) + np.sin(3 * rows["b"]) > 0


def rows_of(folder):
    return pd.read_csv(folder / "rows.csv")


def parts_of(run, frame):
    """Which rows of a frame taught a run, which were held out, by its ledger, and which were neither."""
    found = ec.ledger.read_answers(run / "ledger.sqlite")
    known = {name: {row.tobytes() for row in found[name][0]} for name in ("training", "rows")}
    taught, held = (np.array([row.tobytes() in part for row in frame.to_numpy()]) for part in known.values())
    return taught, held, ~taught & ~held


def test_rows_that_taught_or_were_passed_over_do_not_certify(folder):
    result, frame = ec.load(folder / "run"), rows_of(folder)
    taught, held, neither = parts_of(folder / "run", frame)
    assert taught.sum() == pytest.approx(300, abs=3)
    assert held.sum() == 300
    proof = ec.certify(result.copy, waves, result.space, n=100, data=frame, progress=False).on_data
    assert (proof.n, proof.left_out) == (300, 900)
    assert proof.reasons == {"taught": int(taught.sum()), "candidates": int(neither.sum())}
    agree = result.copy.predict(frame) == waves(frame)
    assert proof.estimate == agree[held].mean() == result.certificate.on_data.estimate
    assert agree[taught].mean() > agree[held].mean()  # what it said before was too high


def test_rows_that_nobody_gave_before_certify_and_rows_equal_to_taught_ones_do_not(folder):
    result, frame = ec.load(folder / "run"), rows_of(folder)
    taught, _, _ = parts_of(folder / "run", frame)
    new = pd.DataFrame(np.random.default_rng(7).normal(size=(200, 2)), columns=["a", "b"])
    data = pd.concat([new, frame[taught][:40], frame[taught][:40]])
    proof = ec.certify(result.copy, waves, result.space, n=100, data=data, progress=False).on_data
    assert (proof.n, proof.distinct, proof.reasons) == (200, 200, {"taught": 80})
    with pytest.warns(EctypeWarning, match=r"data: none of these \d+ rows is left to certify on: .* taught"):
        proof = ec.certify(result.copy, waves, result.space, n=100, data=frame[taught], progress=False)
    assert (proof.n, proof.on_data) == (100, None)


def test_the_command_in_a_process_of_its_own_leaves_them_out_and_says_how_many(folder):
    frame = rows_of(folder)
    taught, held, neither = parts_of(folder / "run", frame)
    done = run_command("certify", "run", "mine:waves", "--data", "rows.csv", "--n", 100, cwd=folder)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "mine:waves will be asked 400 queries" in done.stderr
    assert f"900 more were left out: {neither.sum()} were passed over when its run chose among them" in said
    assert f"{taught.sum()} taught the copy, or equal rows that did" in said
    done = run_command("certify", "run", "mine:waves", "--data", "rows.csv", "--n", 100, "--json", cwd=folder)
    proof = json.loads(done.stdout)["certificate"]["on_data"]
    agree = ec.load(folder / "run").copy.predict(frame) == waves(frame)
    assert (proof["n"], proof["estimate"]) == (300, agree[held].mean())
    page = folder / "page.html"
    done = run_command("certify", "run", "mine:waves", "--data", "rows.csv", "--n", 100, "--report", page, cwd=folder)
    assert f"900 more were left out: {neither.sum()} were passed over" in page.read_text()
    assert re.search(r"On <strong>your own rows</strong>: [\d.]+ % of 300, at least", page.read_text())


def test_answers_that_a_run_was_given_teach_like_those_it_asked_for(folder, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(3).normal(size=(400, 2)), columns=["a", "b"])
    given = frame[:300].assign(label=waves(frame[:300]))
    space = ec.load(folder / "run").space
    result = ec.copy_classifier(ec.Original(waves, name="w"), space, answers=given, out=tmp_path / "run", **QUICK)
    for copy in (result.copy, ec.load(tmp_path / "run").copy, ec.remake(tmp_path / "run", to="tree").copy):
        proof = ec.certify(copy, waves, space, n=50, data=frame, progress=False).on_data
        assert (proof.n, proof.reasons) == (100, {"taught": 300})


def test_a_remake_and_a_refresh_know_what_taught_them(folder, tmp_path):
    frame = rows_of(folder)
    taught, _, neither = parts_of(folder / "run", frame)
    remade = ec.remake(folder / "run", to="tree")
    proof = ec.certify(remade.copy, waves, remade.space, n=50, data=frame, progress=False).on_data
    assert proof.reasons == {"taught": int(taught.sum()), "candidates": int(neither.sum())}
    changed = ec.Original(lambda rows: waves(rows + 0.3), name="mine:waves")
    again = ec.refresh(folder / "run", changed, out=tmp_path / "new", check=60, budget=120, certificate_n=100)
    proof = ec.certify(again.copy, changed, again.space, n=50, data=frame, progress=False).on_data
    assert (
        proof.reasons["taught"] >= taught.sum() - 60
    )  # of the earlier run; some may be held-out rows that were asked again
    assert ec.load(tmp_path / "new").copy.training_rows.taught.tolist() == again.copy.training_rows.taught.tolist()


def test_a_row_is_the_same_to_a_copy_that_does_not_see_where_it_differs():
    known = TrainingRows.of([np.array([[1.0, 2.0]])], np.array([[3.0, 4.0]]), excluded=(1,))
    rows = np.array([[1.0, 9.0], [3.0, 9.0], [3.0, 4.0], [-0.0, 0.0]])
    taught, candidates = known.find(rows)
    assert (taught.tolist(), candidates.tolist()) == ([True, False, False, False], [False, False, True, False])
    assert TrainingRows.from_json(json.loads(json.dumps(known.as_json()))).find(rows)[0].tolist() == taught.tolist()
    gap = TrainingRows.of([np.array([[np.nan, 0.0]])])
    assert gap.find(np.array([[-np.nan, -0.0]]))[0].all()


def test_a_copy_that_was_made_elsewhere_is_certified_on_all_rows(folder):
    frame = rows_of(folder)
    proof = ec.certify(
        LogisticRegression().fit(frame, waves(frame)), waves, ec.Space.from_data(frame), n=50, data=frame
    )
    assert (proof.on_data.n, proof.on_data.left_out) == (1200, 0)


# --- rows as they are ------------------------------------------------------------------------------------------------


def with_tier(rows):
    tier = rows["tier"].fillna("none") if "tier" in rows else "none"
    return waves(rows) ^ (tier == "gold")


def tiered(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame.insert(0, "tier", rng.choice(["gold", "plain"], n, p=[0.2, 0.8]))
    return frame


def test_rows_are_sent_with_columns_that_the_space_lacks_and_these_are_named(folder, tmp_path):
    result, data, seen = ec.load(folder / "run"), tiered(300, 5), []

    def original(rows):
        seen.append(list(rows.columns))
        return with_tier(rows)

    with pytest.warns(EctypeWarning, match="data: the space lacks 'tier'.*describe the space with them and copy again"):
        proof = ec.certify(result.copy, original, result.space, n=100, data=data, progress=False)
    assert proof.on_data.further == ("tier",)
    assert proof.on_data.estimate == (result.copy.predict(data) == with_tier(data)).mean() < 0.9
    assert seen == [["a", "b"], ["tier", "a", "b"]]
    assert "columns that the space lacks" in " ".join(str(proof).split())
    data.to_csv(folder / "tiered.csv", index=False)
    done = run_command("certify", "run", "mine:with_tier", "--data", "tiered.csv", "--n", 100, "--json", cwd=folder)
    assert "warning: data: the space lacks 'tier'" in " ".join(done.stderr.split())
    found = json.loads(done.stdout)["certificate"]["on_data"]
    assert (found["estimate"], found["further"]) == (proof.on_data.estimate, ["tier"])


def test_rows_that_differ_only_in_such_a_column_are_asked_one_by_one(folder):
    result = ec.load(folder / "run")
    data = pd.DataFrame({"a": [0.5] * 3, "b": [0.25] * 3, "tier": ["gold", "plain", "gold"]})
    with pytest.warns(EctypeWarning, match="lacks 'tier'"):
        proof = ec.certify(result.copy, with_tier, result.space, n=50, data=data, progress=False).on_data
    assert (proof.n, proof.distinct, sorted(proof.per_class)) == (3, 2, [False, True])


def test_a_run_sends_its_own_rows_whole_and_resumes(folder, tmp_path):
    space, data, left = ec.load(folder / "run").space, tiered(400, 6), [10**6]

    def original(rows):
        left[0] -= len(rows)
        if left[0] < 0:
            raise RuntimeError("gone")
        return with_tier(rows)

    def copied(out):
        asked = ec.Original(original, [False, True], name="mine")
        with pytest.warns(EctypeWarning, match="rows: the space lacks 'tier'"):
            return ec.copy_classifier(asked, space, rows=data, rows_share=1.0, out=tmp_path / out, **QUICK)

    whole = copied("whole")
    held = whole.certificate.on_data
    assert (held.n, held.further) == (200, ("tier",))
    found = ec.ledger.read_answers(tmp_path / "whole" / "ledger.sqlite")
    told = {row.tobytes(): label for row, label in zip(found["rows"][0], found["rows"][1].labels, strict=True)}
    own = {row.tobytes(): label for row, label in zip(data[["a", "b"]].to_numpy(), with_tier(data), strict=True)}
    assert all(own[row] == label for row, label in told.items())
    taught = zip(found["training"][0], found["training"][1].labels, strict=True)
    assert sum(own.get(row.tobytes()) == label for row, label in taught) == 200  # all that may teach
    left[0] = 700
    with pytest.raises(OriginalError, match="gone"):
        copied("again")
    left[0] = 10**6
    assert copied("again").certificate == whole.certificate
    with pytest.raises(ec.errors.DirectoryError, match="other rows of your own"), pytest.warns(EctypeWarning):
        ec.copy_classifier(
            ec.Original(original, [False, True], name="mine"),
            space,
            rows=data.assign(tier="plain"),
            rows_share=1.0,
            out=tmp_path / "again",
            **QUICK,
        )


def test_rows_whose_answers_could_not_be_told_apart_are_refused_before_anything_is_asked(folder):
    space, data, asked = ec.load(folder / "run").space, tiered(50, 1), []
    data = pd.concat([data, data.assign(tier="other")])
    with (
        pytest.warns(EctypeWarning, match="lacks 'tier'"),
        pytest.raises(SettingError, match="rows: expected rows that differ in the columns of the space, found 50"),
    ):
        ec.copy_classifier(asked.append, space, rows=data, **QUICK)
    assert not asked


def test_an_original_that_refuses_such_columns_is_known_before_more_is_paid(folder):
    space, asked = ec.load(folder / "run").space, []

    def strict(rows):
        asked.append(len(rows))
        if list(rows.columns) != ["a", "b"]:
            raise ValueError("which columns are these?")
        return waves(rows)

    with (
        pytest.warns(EctypeWarning, match="lacks 'tier'"),
        pytest.raises(OriginalError, match=r"columns that the space lacks \('tier'\).*leave them out of the rows"),
    ):
        ec.copy_classifier(strict, space, rows=tiered(100, 2), **QUICK)
    assert max(asked) <= 50


def test_an_original_that_names_its_columns_gets_these(folder):
    frame = rows_of(folder)
    model = LogisticRegression().fit(frame, waves(frame))
    proof = ec.certify(model, model, ec.Space.from_data(frame), n=50, data=tiered(80, 3), progress=False)
    assert (proof.on_data.estimate, proof.on_data.further) == (1.0, ())


# --- originals that remember ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(1),
        make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
        FrozenEstimator(make_pipeline(StandardScaler(), GaussianProcessClassifier(optimizer=None))),
        SVC(C=1e-3),
        GridSearchCV(
            make_pipeline(StandardScaler(), KNeighborsClassifier()), {"kneighborsclassifier__n_neighbors": [1]}
        ),
        BaggingClassifier(KNeighborsClassifier(1), 20),
    ],
    ids=["neighbours", "pipeline", "gaussian process", "support vectors", "search", "bagging"],
)
def test_rows_that_an_original_holds_are_found_and_left_out(model):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(160, 3))
    labels = rng.random(160) < 0.5  # nothing to learn: it can only be remembered
    if isinstance(model, FrozenEstimator):
        model.estimator.fit(rows[:80], labels[:80])
    else:
        model.fit(rows[:80], labels[:80])
    found = remembered(model, rows)
    assert found[:80].mean() > 0.9
    assert not found[80:].any()
    sample = UserSample.of(ec.original.as_original(model), ec.Space.normal(3), rows)
    assert sample.left_out == {"remembered": found.sum()}
    assert len(sample) == 160 - found.sum()


def test_any_object_may_be_searched_for_rows():
    class Odd:
        def __init__(self):
            self.shape, self.module, self.itself, self.refuses = 3, np, self, Refusing()

        def predict(self, rows):
            return rows[:, 0] > 0

    class Refusing:
        shape = (2, 3)

        def __array__(self, *_, **__):
            raise RuntimeError("not on this device")

    rows = np.random.default_rng(0).normal(size=(60, 3))
    boosted = GradientBoostingClassifier(n_estimators=5).fit(rows, rows[:, 0] > 0)  # has its trees in an array
    assert not remembered(boosted, rows).any()
    assert not remembered(Odd(), rows).any()


def test_memorised_answers_neither_teach_nor_certify(tmp_path):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    model = KNeighborsClassifier(1).fit(rows[:300], rng.random(300) < 0.5)
    space = ec.Space.from_data(rows)
    result = ec.copy_classifier(model, space, rows=rows, out=tmp_path / "run", **QUICK)
    proof = result.certificate.on_data
    assert (proof.n, proof.reasons) == (150, {"remembered": 300})
    words = "300 are kept in the original, which was trained on them"
    assert words in " ".join(str(result.certificate).split())
    assert words in " ".join(ec.report._card.card(tmp_path / "run").split())
    assert f"Of rows of your own: 300 more were left out: {words}." in " ".join(str(result).split())
    assert words in result.report(tmp_path / "page.html").read_text()
    asked = ec.ledger.read_answers(tmp_path / "run" / "ledger.sqlite")
    held = {row.tobytes() for row in rows[:300].to_numpy()}
    assert not held & {row.tobytes() for purpose in asked for row in asked[purpose][0]}


def test_what_reads_its_context_is_known_by_its_package(tmp_path, monkeypatch):
    (tmp_path / "tabpfn").mkdir()
    code = "class TabPFNClassifier:\n    def predict(self, rows):\n        return rows[:, 0] > 0\n"
    (tmp_path / "tabpfn" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    import tabpfn

    assert reads_its_context(tabpfn.TabPFNClassifier())
    assert not reads_its_context(SVC())
    with pytest.warns(EctypeWarning, match="reads the table that it was trained on.*was not trained on"):
        ec.certify(tabpfn.TabPFNClassifier(), tabpfn.TabPFNClassifier(), ec.Space.normal(2), n=20, data=np.eye(2))


# --- rows unlike any asked --------------------------------------------------------------------------------------------

SCHEMA = {
    "columns": [
        {"name": "age", "kind": "integer", "low": 18, "high": 89},
        {"name": "plan", "kind": "category", "levels": ["pro", "basic"]},
        {"name": "share", "kind": "float", "values": [0.0, 0.5, 1.0]},
        {"name": "z", "kind": "float", "mean": 0.0, "std": 1.0, "missing": 0.2},
        {"name": "paid", "kind": "boolean"},
    ],
    "rules": ["age >= 21 if plan is pro"],
}


def test_the_support_of_a_space_is_what_it_draws_and_little_more():
    space = ec.Space.from_json(json.dumps({**SCHEMA, "rules": ["z <= 5"]}))
    support = Support.of(space)
    assert not support.outside(space.sample(5000, np.random.default_rng(0))).any()
    inside = {"age": 30.0, "plan": 0.0, "share": 0.5, "z": np.nan, "paid": 1.0}
    odd = [{}, {"age": -5.0}, {"age": 30.5}, {"plan": -1.0}, {"share": 0.4}, {"z": 9.0}, {"z": 5.5}, {"age": np.nan}]
    rows = np.array([list({**inside, **one}.values()) for one in odd])
    assert support.outside(rows).tolist() == [False] + [True] * 7


def test_a_learned_space_reaches_a_little_beyond_the_rows_it_was_learned_from():
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(2, 1000, 20))
    support = Support.of(ec.Space.from_data(rows))
    assert support.outside(others).mean() < 0.02
    assert support.outside(np.where(np.arange(20) == 3, 12.0, others)).all()


def test_a_copy_tells_which_rows_are_unlike_any_that_were_asked(folder):
    result = ec.load(folder / "run")
    rows = pd.DataFrame({"a": [0.0, 40.0, 0.5], "b": [0.0, 0.0, -1e6]})
    assert result.copy.outside(rows).tolist() == [False, True, True]
    proof = ec.certify(result.copy, waves, result.space, n=50, data=rows, progress=False).on_data
    assert proof.outside == 2
    assert "2 of them are outside the space" in [*about_rows(proof)][1]
    both = ec.cascade(result, waves, agree=0.6, progress=False)
    assert both.decide(rows).by.tolist()[1:] == ["original", "original"]


def test_answers_about_rows_that_taught_or_were_passed_over_measure_nothing(folder):
    result, frame = ec.load(folder / "run"), rows_of(folder)
    taught, held, neither = parts_of(folder / "run", frame)
    answers = frame.assign(label=waves(frame))
    proof = ec.certify(result.copy, waves, result.space, n=50, answers=answers, progress=False).on_answers
    assert (proof.n, proof.left_out) == (held.sum(), taught.sum() + neither.sum())
    assert proof.reasons == {"taught": int(taught.sum()), "candidates": int(neither.sum())}
    answers.to_csv(folder / "labelled.csv", index=False)
    done = run_command("certify", "run", "--answers", "labelled.csv", "--json", cwd=folder)
    assert done.returncode == 2  # the held-out rows are the run's own: none is left
    assert "were passed over when its run chose among them" in done.stderr


def test_a_remake_is_certified_on_the_rows_that_its_run_held_out(folder, tmp_path):
    whole = ec.load(folder / "run").certificate.on_data
    same = ec.remake(folder / "run", out=tmp_path / "same").certificate.on_data
    assert (same.n, same.estimate, same.reasons) == (whole.n, whole.estimate, whole.reasons)
    tree = ec.remake(folder / "run", to="tree", max_leaves=2)
    assert tree.certificate.on_data.n == whole.n
    assert tree.certificate.on_data.estimate < whole.estimate
    assert "rows of your own" in str(tree)


def test_rows_that_equal_others_of_a_run_are_found_again_as_often_as_they_came(tmp_path):
    """In a space of few rows, a held-out row may have been asked about before, for another purpose."""
    rows = np.random.default_rng(2).integers(0, 4, (400, 3)).astype(float)
    original = ec.Original(lambda rows: rows[:, 0] + rows[:, 1] > 3 - (rows[:, 2] == 2), name="sums")
    settings = {**QUICK, "budget": 40, "certificate_n": 30}
    ec.copy_classifier(original, ec.Space.from_data(rows), rows=rows, out=tmp_path / "run", **settings)
    past = PreviousRun.of(tmp_path / "run")
    assert len(past.user_rows[0]) < 30  # the others are in the ledger already
    sample = past.user_sample
    assert len(sample) == 30
    assert sorted(hashed(sample.rows).tolist()) == sorted(past.result.copy.training_rows.sample.tolist())
    assert (sample.answers == original.predict(sample.rows)).all()


def test_in_processes_of_their_own_the_commands_say_what_is_so(tmp_path):
    """An original that cannot be learned, with a rare label, and rows of the user's own that have one column more."""
    code = """
import numpy as np

def noise(rows):
    found = np.sin(1e6 * (rows["a"] + 3 * rows["b"]))
    tier = rows["tier"] == "gold" if "tier" in rows else False
    return np.where(found > 0.995, "rare", np.where((found > 0) ^ tier, "up", "down"))
"""
    (tmp_path / "mine.py").write_text(code)
    data = tiered(900, 4)
    data.to_csv(tmp_path / "rows.csv", index=False)

    def called(*arguments):
        command = [sys.executable, "-m", "ectype", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split()), " ".join(done.stderr.split())

    called("space", "rows.csv", "--out", "space.json", "--drop", "tier")
    settings = ("--budget", 400, "--certificate-n", 300, "--repeat", 0, "--preset", "fast")
    out, said = called("copy", "mine:noise", "--space", "space.json", "--rows", "rows.csv", "--out", "run", *settings)
    assert "warning: rows: the space lacks 'tier'" in said
    assert re.search(r"Its worst label is 'rare': it agrees on 0 of the \d+ rows with it", out)
    assert "Always answering the commonest" in out
    _, said = called("certify", "run", "mine:noise", "--data", "rows.csv", "--n", 100)
    assert "mine:noise will be asked 400 queries" in said  # 100, and the 300 of 900 that were held out
    page = (tmp_path / "run" / "report.html").read_text()
    drivers = page[page.index('id="drivers"') : page.index("Partial dependence")]
    assert "held-out rows, none of which taught the copy" in drivers
    shares = re.findall(r'class="n faint">([\d.]+) %</td><td class="n">([\d.]+) %', drivers)
    assert len(shares) == 2
    assert any(one != other for one, other in shares)  # on rows that taught it, they were the same


def test_columns_that_the_space_lacks_keep_their_types_and_have_names_of_their_own(folder):
    result, data, seen = ec.load(folder / "run"), tiered(60, 8), []
    data = data.assign(tier=data["tier"].astype("category"), n=pd.array([1, None] * 30, dtype="Int64"))
    data["a"] = np.where(data["a"] > 1, -0.0, data["a"])  # which is 0.0

    def original(rows):
        seen.append(rows.dtypes.astype(str).to_dict())
        return waves(rows)

    with pytest.warns(EctypeWarning, match="lacks 'tier', 'n'") as caught:
        ec.certify(result.copy, original, result.space, n=30, data=data, progress=False)
    assert len(caught) == 1
    assert seen[1] == {"tier": "category", "a": "float64", "b": "float64", "n": "Int64"}
    twice = pd.concat([data, data[["tier"]]], axis=1)
    with pytest.raises(SpaceError, match=r"data: .*\['tier'\] more than once"):
        ec.certify(result.copy, with_tier, result.space, n=30, data=twice)


def test_a_run_of_an_earlier_version_knows_by_its_ledger_what_taught_it(folder, tmp_path):
    shutil.copytree(EARLIER, tmp_path / "run")
    with pytest.warns(EctypeWarning, match=r"version 0\.1"):
        result = ec.load(tmp_path / "run")
    rows = ec.ledger.read_answers(tmp_path / "run" / "ledger.sqlite")["training"][0]
    others = result.space.sample(40, np.random.default_rng(5))
    data = result.space.present(np.concatenate([rows, others]))
    proof = ec.certify(result.copy, result.copy, result.space, n=20, data=data, progress=False).on_data
    assert (proof.n, proof.reasons) == (40, {"taught": len(rows)})


def test_a_table_of_few_rows_all_of_which_taught_is_said_to_measure_nothing():
    rows = pd.DataFrame({"a": [0, 1] * 30, "b": [0, 0, 1, 1] * 15})
    original = ec.Original(lambda rows: rows["a"] == rows["b"], name="same")
    settings = {**QUICK, "budget": 60, "certificate_n": 20}
    with pytest.warns(EctypeWarning, match="rows: none of these 20 rows is left to certify on: 20 taught the copy"):
        result = ec.copy_classifier(original, ec.Space.from_data(rows), rows=rows, **settings)
    assert result.certificate.on_data is None


def test_single_precision_is_no_reason_to_be_outside():
    values = np.array([0.1, 0.2, 0.3], np.float32)
    space = ec.Space.from_data(pd.DataFrame({"a": np.tile(values, 40), "b": np.arange(120.0)}))
    rows = np.array([[0.1, 5.0], [np.float32(0.2), 5.0], [0.15, 5.0]])
    assert Support.of(space).outside(rows).tolist() == [False, False, True]
