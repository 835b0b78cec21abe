"""Answers that were paid for before start a run at no cost, once a few of them were asked again."""

import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.certificate.bounds import lower_bound
from ectype.certificate.certificate import Certificate
from ectype.errors import DirectoryError, EctypeWarning, OriginalError, PriorAnswersError, SettingError
from ectype.ledger import Ledger
from ectype.original import as_original
from ectype.queries import Queries
from ectype.report import model_card
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
QUICK = {"certificate_n": 200, "repeat": 0, "retries": 1.0, "schedule": ec.training.steps(100)}
NAMED = ec.Space.from_json(
    """{"columns": [{"name": "a", "kind": "float", "low": -2, "high": 2}, {"name": "b", "kind": "float", "low": -2,
    "high": 2}, {"name": "c", "kind": "category", "levels": ["x", "y"]}], "rules": ["a + b < 3"]}"""
)


class Watched:
    """An original that keeps what it was asked, and fails after some rows, if told to."""

    def __init__(self, function=disc):
        self.rows, self.most, self.function = [], 10**9, function

    def predict(self, rows):
        if len(self.rows) + len(rows) > self.most:
            raise RuntimeError("gone")
        self.rows += [row.tobytes() for row in np.ascontiguousarray(rows, float)]
        return self.function(rows)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory, small_lessons):
    """A finished run: 200 answers to learn from, 200 for its certificate."""
    path = tmp_path_factory.mktemp("earlier") / "run"
    ec.copy_classifier(Watched(), PLANE, budget=200, out=path, **QUICK)
    return path


@pytest.fixture(scope="module")
def informed(earlier, tmp_path_factory):
    """A run that was given those answers, and what its original was asked."""
    path, original = tmp_path_factory.mktemp("informed") / "run", Watched()
    return path, original, ec.copy_classifier(original, PLANE, budget=150, out=path, answers=earlier, **QUICK)


def test_given_answers_are_points_of_the_first_round_and_only_the_budget_is_asked(informed):
    _, original, result = informed
    assert result.queries == {"training": 150, "certificate": 200, "repeat": 0, "same": 16}
    assert len(original.rows) == 150 + 200 + 16
    assert (result.history[0].queries, result.history[0].kept) == (0, 400)
    assert result.history[-1].kept == 550
    assert result.given["used"] == 400
    assert result.given["left_out"] == {}
    assert result.eff == 0


def test_no_row_is_asked_again_but_those_that_tell_originals_apart_and_none_that_trained_certifies(informed, earlier):
    path, _, _ = informed
    before = ledger.read_answers(earlier / ledger.LEDGER)
    known = {row.tobytes() for told in before.values() for row in told[0]}
    now = ledger.read_answers(path / ledger.LEDGER)
    asked = {purpose: {row.tobytes() for row in told[0]} for purpose, told in now.items()}
    assert asked["given"] == known
    assert asked["same"] <= known
    assert not known & (asked["training"] | asked["certificate"])


def test_the_ledger_has_them_and_counts_them_as_given(informed):
    path, _, _ = informed
    found = ledger.summarise_ledger(path / ledger.LEDGER)
    assert (found.given, found.asked, found.answered, found.maybe_paid) == (400, 366, 366, 0)
    assert sum(found.labels.values()) == 366
    assert "400 answers were given and cost nothing" in model_card(path)


def test_they_make_a_better_copy(informed, earlier):
    rows = PLANE.sample(4000, np.random.default_rng(1))
    alone = ec.copy_classifier(disc, PLANE, budget=60, **QUICK).copy.predict(rows) == disc(rows)
    given = ec.copy_classifier(disc, PLANE, budget=60, answers=[earlier], **QUICK).copy.predict(rows) == disc(rows)
    assert given.mean() > alone.mean()


def test_without_any_nothing_changes(earlier, tmp_path):
    ec.copy_classifier(Watched(), PLANE, budget=200, out=tmp_path / "run", answers=[], **QUICK)
    for name in ("copy.safetensors", "copy.json", "space.json"):
        assert (tmp_path / "run" / name).read_bytes() == (earlier / name).read_bytes()
    runs = [json.loads((path / "run.json").read_text()) for path in (earlier, tmp_path / "run")]
    assert runs[0]["settings"] == runs[1]["settings"]
    assert runs[0].keys() == runs[1].keys()
    assert "given" not in runs[0]


@pytest.mark.parametrize("most", [0, 10, 100, 300])
def test_a_run_that_fails_ends_with_the_same_bytes(informed, earlier, tmp_path, most):
    whole, original = informed[0], Watched()
    original.most = most
    with pytest.raises(OriginalError, match="gone"):
        ec.copy_classifier(original, PLANE, budget=150, out=tmp_path / "run", answers=earlier, **QUICK)
    original.most = 10**9
    ec.copy_classifier(original, PLANE, budget=150, out=tmp_path / "run", answers=earlier, **QUICK)
    assert len(original.rows) == 366
    assert (tmp_path / "run" / "copy.safetensors").read_bytes() == (whole / "copy.safetensors").read_bytes()


def test_a_run_is_recognised_by_its_answers_and_goes_on(informed, earlier, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(informed[0], run)
    for other in (None, pd.DataFrame({"x0": [0.0], "x1": [0.1], "label": [True]})):
        with pytest.raises(DirectoryError, match="a run with other given answers, or none;"):
            ec.copy_classifier(Watched(), PLANE, budget=150, out=run, answers=other, **QUICK)
    original = Watched()
    result = ec.copy_classifier(original, PLANE, budget=250, out=run, answers=earlier, **QUICK)
    assert len(original.rows) == 100
    assert (result.settings["stages"], result.history[-1].kept) == ([150], 650)


def test_answers_of_another_original_are_refused_with_the_rows_before_more_is_asked(earlier, tmp_path):
    original = Watched(lambda rows: rows[:, 0] > 0)
    with pytest.raises(PriorAnswersError, match=r"otherwise to \d+ of \d+ rows: x0=.*, x1=.* was (True|False) and is "):
        ec.copy_classifier(original, PLANE, budget=150, out=tmp_path / "run", answers=earlier, **QUICK)
    assert 16 <= len(original.rows) <= 128
    assert not (tmp_path / "run").exists()


def test_answers_of_a_noisy_original_are_taken(tmp_path):
    """A tenth of its answers are wrong, as often the second time as the first."""
    refused = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        noisy = as_original(lambda rows, rng=rng: disc(rows) ^ (rng.random(len(rows)) < 0.1), [False, True])
        rows = PLANE.sample(300, rng)
        table = pd.DataFrame(rows, columns=["x0", "x1"]).assign(label=noisy.answer(rows))
        settings = {**QUICK, "certificate_n": 0, "preset": "fast", "budget": 30}
        try:
            with warnings.catch_warnings(action="ignore"):  # of answers that changed, in most runs
                ec.copy_classifier(noisy, PLANE, answers=table, seed=seed, **settings)
        except PriorAnswersError:
            refused += 1
    assert refused <= 3  # one in twenty, in the mean


# --- other spaces -----------------------------------------------------------------------------------------------------


def by_name(frame):
    return (frame["a"] ** 2 + frame["b"] ** 2 < 1).to_numpy()


def table(**changes):
    """Answers as a table, of which some rows are outside of the space."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-1.4, 1.4, 120), "b": rng.uniform(-1.4, 1.4, 120), "c": ["x", "y"] * 60})
    for (row, column), value in changes.get("cells", {}).items():
        frame.loc[row, column] = value
    return frame.assign(label=by_name(frame))


def test_rows_outside_of_the_space_are_left_out_and_counted(tmp_path):
    cells = {(0, "c"): "z", (1, "a"): 2.5, (2, "b"): np.nan, (3, "a"): 1.6, (3, "b"): 1.6, (4, "a"): 0.0, (4, "b"): 0.0}
    given = table(cells=cells)
    given = pd.concat([given, given.iloc[[5, 6, 6]], given.iloc[[4]].assign(label=False)])
    given.to_csv(tmp_path / "answers.csv", index=False)
    result = ec.copy_classifier(by_name, NAMED, budget=100, answers=tmp_path / "answers.csv", **QUICK)
    assert result.given["left_out"] == {"levels": 1, "values": 2, "rules": 1, "conflicts": 2}
    assert (result.given["used"], result.given["repeated"]) == (115, 3)
    assert result.history[0].queries > 0  # nobody drew these rows, so random ones are asked as well


def test_most_answers_to_the_same_row_decide():
    given = pd.concat([table(), table().iloc[[0, 0]].assign(label="maybe")]).astype({"label": str})
    asked = ec.Original(lambda frame: by_name(frame).astype(str), ["False", "True", "maybe"])
    result = ec.copy_classifier(asked, NAMED, budget=100, answers=given, certificate_n=0, repeat=0)
    assert result.given["left_out"] == {"conflicts": 1}
    assert result.given["repeated"] == 1


def test_rows_of_a_run_in_another_space_are_carried_over(tmp_path):
    ec.copy_classifier(by_name, NAMED, budget=100, out=tmp_path / "run", **QUICK)
    other = ec.Space.from_json(NAMED.to_json().replace('["x", "y"]', '["y", "w"]').replace('"a + b < 3"', '"a < 1"'))
    result = ec.copy_classifier(by_name, other, budget=100, answers=tmp_path / "run", **QUICK)
    rows = np.concatenate([told[0] for told in ledger.read_answers(tmp_path / "run" / ledger.LEDGER).values()])
    levels, rules = rows[:, 2] == 0, rows[:, 0] >= 1
    assert result.given["left_out"] == {"levels": levels.sum(), "rules": (rules & ~levels).sum()}
    assert result.given["used"] == (~levels & ~rules).sum()


@pytest.mark.parametrize("dropped", [["c"], []])
def test_kept_traffic_without_a_column_serves_runs_that_do_not_see_it(tmp_path, dropped):
    rows = NAMED.sample(80, np.random.default_rng(0))
    if dropped:
        rows[:, 2] = np.nan
    said = ec.Original(lambda frame: by_name(NAMED.present(np.nan_to_num(frame))), [False, True])
    plain = ec.Space.from_json(NAMED.to_json())
    (tmp_path / "kept").mkdir()
    with Ledger(tmp_path / "kept" / ledger.LEDGER, {"original": "mine", "dropped": dropped}, plain) as book:
        Queries(said, plain, {"traffic": len(rows)}, book).query_labels("traffic", rows, lambda places: rows[places])
    asked = ec.Original(by_name, [False, True])
    settings = {**QUICK, "budget": 100, "answers": tmp_path / "kept"}
    if dropped:
        with pytest.raises(SettingError, match="none of 80: 80 lack a column that is needed"):
            ec.copy_classifier(asked, NAMED, **settings)
        with pytest.warns(EctypeWarning, match="whether they are its own is not known"):
            result = ec.copy_classifier(asked, NAMED, exclude=["c"], **settings, out=tmp_path / "run")
        assert ec.remake(tmp_path / "run", to="tree").certificate.n == 200
        with pytest.raises(SettingError, match="none of 80"):
            ec.copy_classifier(asked, ec.Space.from_json(NAMED.to_json().replace('"a + b', '"2 * a + b')), **settings)
        without = ec.copy_classifier(lambda frame: by_name(frame), NAMED.without(["c"]), **settings)
        assert without.given["used"] == 80
    else:
        result = ec.copy_classifier(asked, NAMED, **settings)
    assert result.given["used"] == 80


# --- scores, remakes, errors ------------------------------------------------------------------------------------------


class Scored:
    """A fitted classifier with probabilities."""

    classes_ = np.array(["in", "out"])

    def fit(self, X, y):
        return self

    def predict_proba(self, rows):
        inside = 1 / (1 + np.exp(4 * ((np.asarray(rows) ** 2).sum(axis=1) - 1)))
        return np.stack([inside, 1 - inside], axis=1)

    def predict(self, rows):
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


@pytest.mark.parametrize("before", [True, False])
def test_scores_are_used_where_both_runs_ask_for_them(tmp_path, before):
    settings = {**QUICK, "budget": 100, "certificate_n": 100}
    ec.copy_classifier(Scored(), PLANE, scores=before, out=tmp_path / "run", **settings)
    ec.copy_classifier(Scored(), PLANE, scores=True, out=tmp_path / "new", answers=tmp_path / "run", **settings)
    rows, said = ledger.read_answers(tmp_path / "new" / ledger.LEDGER)["given"]
    wanted = Scored().predict_proba(rows)
    assert np.allclose(said.scores, wanted if before else wanted.round(), atol=1e-6)
    hard = ec.copy_classifier(Scored(), PLANE, answers=tmp_path / "run", **settings)
    assert hard.given["used"] == 200


def test_a_remake_of_it_has_the_bytes_of_a_run_for_that_family(informed, earlier, tmp_path):
    made = ec.remake(informed[0], out=tmp_path / "made", to="tree", max_leaves=8)
    ec.copy_classifier(
        Watched(), PLANE, budget=150, out=tmp_path / "run", answers=earlier, to="tree", max_leaves=8, **QUICK
    )
    files = [(tmp_path / name / "copy.safetensors").read_bytes() for name in ("made", "run")]
    assert files[0] == files[1]
    assert made.given["used"] == 400


def test_a_remake_learns_from_further_answers_but_none_about_rows_of_the_certificate(earlier, tmp_path):
    rows, said = ledger.read_answers(earlier / ledger.LEDGER)["certificate"]
    fresh = PLANE.sample(300, np.random.default_rng(5))
    given = pd.DataFrame(np.concatenate([rows, fresh]), columns=["x0", "x1"])
    given = given.assign(label=np.concatenate([~said.labels, disc(fresh)]))  # what would be found, if it were used
    made = ec.remake(earlier, out=tmp_path / "made", answers=given)
    found = made.remade["answers"]
    assert (found["used"], found["left_out"]) == (300, {"held_out": 200})
    assert ledger.summarise_ledger(tmp_path / "made" / ledger.LEDGER).given == 300
    rows = PLANE.sample(4000, np.random.default_rng(1))
    better = [(one.copy.predict(rows) == disc(rows)).mean() for one in (ec.load(earlier), made)]
    assert better[0] < better[1]
    assert ec.load(tmp_path / "made").supplied == [found]
    assert "300 answers were given" in model_card(tmp_path / "made")
    again = ec.remake(tmp_path / "made", to="tree")  # all that was known there is known here
    assert again.copy.predict(rows).mean() == ec.remake(earlier, answers=given, to="tree").copy.predict(rows).mean()
    with pytest.raises(DirectoryError, match="other given answers, or none"):
        ec.remake(earlier, out=tmp_path / "made")
    with pytest.raises(SettingError, match="none of 200: 200 are about rows of the certificate"):
        ec.remake(earlier, answers=given[:200])


def test_real_traffic_certifies_apart_without_a_query_and_without_rows_that_trained(earlier):
    result, original = ec.load(earlier), Watched()
    fresh = np.repeat(PLANE.sample(300, np.random.default_rng(5)), 2, axis=0)
    traffic = pd.DataFrame(fresh, columns=["x0", "x1"]).assign(label=disc(fresh))
    proof = ec.certify(result.copy, original, PLANE, n=50, answers=[traffic, earlier], run=earlier)
    assert len(original.rows) == 50
    agreed = int((result.copy.predict(fresh) == disc(fresh)).sum())
    found = proof.on_answers
    assert (found.n, found.distinct, found.left_out) == (600, 300, 400)  # as often as they came
    assert found.estimate == agreed / 600
    assert found.lower == lower_bound(agreed, 600, 0.95)
    assert proof == Certificate.from_json(proof.as_json())
    assert "answers that were given" in str(proof)
    with pytest.raises(SettingError, match="none of 400: 400 are about rows that the copy's run knows"):
        ec.certify(result.copy, original, PLANE, n=50, answers=earlier, run=earlier)
    assert "on_answers" not in ec.certify(result.copy, disc, PLANE, n=50).as_json()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "expected answers, found nothing"),
        ("a,b\n1,2\n", "a column 'label' with the answers"),
        ("x0,x1,label\n1,2,maybe\n", r"labels among \[False, True\], found 'maybe', which the original cannot give"),
        ("x0,label\n1,True\n", "none of 1: 1 lack a column that is needed"),
    ],
)
def test_what_cannot_be_used_is_an_error_and_nothing_is_asked(tmp_path, content, said):
    original, path = Watched(), tmp_path / "answers.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ec.errors.EctypeError, match=said):
        ec.copy_classifier(original, PLANE, classes=[False, True], answers=path, out=tmp_path / "run", **QUICK)
    assert not original.rows
    assert not (tmp_path / "run").exists()


def test_labels_of_another_type_are_refused():
    given = table().astype({"label": int})
    with pytest.raises(
        PriorAnswersError, match=r"labels such as (True|False), of the type that the original gives, found"
    ):
        ec.copy_classifier(by_name, NAMED, answers=given, **QUICK)


def test_what_is_no_source_is_an_error(tmp_path):
    with pytest.raises(DirectoryError, match="a directory with a ledger of answers, found none"):
        ec.copy_classifier(disc, PLANE, answers=tmp_path, **QUICK)
    with pytest.raises(SettingError, match="answers: expected a run's directory, a data frame"):
        ec.copy_classifier(disc, PLANE, answers=[3], **QUICK)
    with pytest.raises(SettingError, match="a run that keeps all points"):
        ec.copy_classifier(disc, PLANE, answers=table(), max_kept=3000, budget=4000)


def test_the_command_takes_several_and_says_what_it_made_of_them(tmp_path):
    (tmp_path / "mine.py").write_text("def disc(rows):\n    return (rows**2).sum(axis=1) < 1\n")
    copy = ("copy", "mine:disc", "--space", "normal:2", "--certificate-n", "100", "--repeat", "0", "--preset", "fast")
    assert run_command(*copy, "--budget", "60", "--out", "first", cwd=tmp_path).returncode == 0
    (tmp_path / "more.csv").write_text("x0,x1,label\n0,0,True\n3,3,False\n")
    given = ("--answers", "first", "--answers", "more.csv", "--budget", "60")
    done = run_command(*copy, *given, "--out", "second", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "162 answers were given and cost nothing." in done.stderr
    found = json.loads(done.stdout)
    assert found["answers"]["used"] == 162
    assert found["queries"]["same"] == 16
    assert found["rows"]["asked"] == 176
    made = run_command(
        "remake", "first", "--out", "made", "--answers", "second", "--to", "tree", "--json", cwd=tmp_path
    )
    assert json.loads(made.stdout)["answers"]["left_out"] == {"held_out": 100, "own": 60}
    proof = run_command("certify", "first", "--answers", "more.csv", "--json", cwd=tmp_path)
    assert json.loads(proof.stdout)["on_answers"]["n"] == 2
    shown = run_command("certify", "first", "mine:disc", "--n", "20", "--answers", "second", cwd=tmp_path)
    assert "rows with given answers" in shown.stdout
    assert run_command("certify", "first", cwd=tmp_path).returncode == 2
    assert run_command(*copy, "--answers", "nowhere", "--out", "third", cwd=tmp_path).returncode == 2
    assert not (tmp_path / "third").exists()
