"""Copies that learn from scores."""

import sqlite3

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import ectype as ec
from commands import run_command
from ectype.errors import EctypeWarning, OriginalError, SettingError
from ectype.models.base import size_of

pytestmark = pytest.mark.usefixtures("small_lessons")
X, Y = make_classification(1500, 10, n_informative=6, n_classes=3, random_state=0)
SPACE = ec.Space.from_data(X)
QUICK = {"certificate_n": 200, "repeat": 0}


@pytest.fixture(scope="module")
def boosted():
    return HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X, Y)


def agreement(result, original):
    rows = SPACE.sample(5000, np.random.default_rng(99))
    return (result.copy.predict(rows) == original.predict(rows)).mean()


@pytest.mark.parametrize("settings", [{}, {"to": "boosting"}, {"preset": "fast"}])
def test_scores_teach_more_than_labels(boosted, settings):
    found = {
        scores: agreement(
            ec.copy_classifier(boosted, SPACE, budget=600, scores=scores, certificate_n=0, repeat=0, **settings),
            boosted,
        )
        for scores in (False, True)
    }
    assert found[True] > found[False] + 0.01


def test_the_ledger_keeps_scores_and_a_run_that_is_resumed_has_the_same_copy(boosted, tmp_path):
    left = [500]

    class Failing:
        classes_ = boosted.classes_

        def predict(self, rows):
            left[0] -= len(rows)
            if left[0] < 0:
                raise RuntimeError("gone")
            return boosted.predict(rows)

        def predict_proba(self, rows):
            return boosted.predict_proba(rows)

    def copied(out):
        return ec.copy_classifier(Failing(), SPACE, budget=600, scores=True, out=tmp_path / out, **QUICK)

    with pytest.raises(OriginalError, match="gone"):
        copied("run")
    left[0] = 10**6
    for out in ("run", "whole"):
        copied(out)
    files = [(tmp_path / out / "copy.safetensors").read_bytes() for out in ("run", "whole")]
    assert files[0] == files[1]
    with sqlite3.connect(tmp_path / "run" / "ledger.sqlite") as connection:
        sql = "SELECT n, rows, p FROM requests JOIN scores ON request = id"
        for n, rows, p in connection.execute(sql):
            asked = np.frombuffer(rows, np.float64).reshape(n, -1)
            np.testing.assert_allclose(
                np.frombuffer(p, np.float32).reshape(n, 3), boosted.predict_proba(asked), atol=1e-6
            )
        assert connection.execute("SELECT count(*) FROM scores").fetchone()[0] > 1


@pytest.fixture(scope="module")
def scored(boosted, tmp_path_factory):
    path = tmp_path_factory.mktemp("scored") / "run"
    return path, ec.copy_classifier(boosted, SPACE, budget=600, scores=True, out=path, **QUICK)


def test_the_frontier_learns_from_scores_too(scored):
    path, result = scored
    (blend,) = ec.frontier(path, ["blend"]).itertuples()
    assert blend.fidelity == result.certificate.estimate
    assert blend.bytes == size_of(result.copy.model)


def test_an_original_that_lost_a_class_since(scored, tmp_path):
    path, _ = scored
    fewer = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X[Y != 2], Y[Y != 2])
    result = ec.refresh(path, fewer, out=tmp_path / "refreshed")
    assert result.copy.classes.tolist() == [0, 1, 2]
    assert set(result.copy.predict(SPACE.sample(1000, np.random.default_rng(0))).tolist()) == {0, 1}
    (blend,) = ec.frontier(tmp_path / "refreshed", ["blend"]).itertuples()
    assert blend.fidelity > 0.85


def test_labels_that_are_not_the_argmax_are_refused_and_what_was_answered_is_kept(boosted, tmp_path):
    class Threshold:
        """Says 2 whenever it is possible, as one whose mistakes cost most."""

        classes_ = boosted.classes_

        def predict(self, rows):
            p = boosted.predict_proba(rows)
            return np.where(p[:, 2] > 0.2, 2, p.argmax(axis=1))

        predict_proba = staticmethod(boosted.predict_proba)

    with pytest.raises(SettingError, match="scores: expected the label to have the highest score, found the label 2"):
        ec.copy_classifier(Threshold(), SPACE, budget=300, scores=True, out=tmp_path / "run", **QUICK)
    with sqlite3.connect(tmp_path / "run" / "ledger.sqlite") as connection:
        assert connection.execute("SELECT sum(n) FROM requests JOIN answers ON request = id").fetchone()[0] == 200


def test_platt_scaling_may_contradict_the_label():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    svm = SVC(C=100, gamma=5).fit(rows, (rows[:, 0] * rows[:, 1] > 0) ^ (rng.random(60) < 0.2))
    platt = LogisticRegression().fit(svm.decision_function(rows)[:, None], rng.random(60) < 0.8)

    class Platt:
        classes_ = svm.classes_
        predict = staticmethod(svm.predict)

        def predict_proba(self, rows):
            return platt.predict_proba(svm.decision_function(rows)[:, None])

    with pytest.raises(SettingError, match="leave out scores: its labels follow another rule"):
        ec.copy_classifier(Platt(), ec.Space.normal(2), budget=200, scores=True, **QUICK)


def test_the_papers_loss_is_about_labels():
    with pytest.raises(SettingError, match="scores: expected a preset that learns from probabilities, found 'paper'"):
        ec.copy_classifier(lambda rows: rows[:, 0] > 0, ec.Space.normal(1), scores=True, preset="paper")


def test_the_command_learns_from_scores(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "class Model:\n"
        "    classes_ = np.array(['in', 'out'])\n"
        "    def predict_proba(self, rows):\n"
        "        p = 1 / (1 + np.exp(1 - (np.asarray(rows)**2).sum(axis=1)))\n"
        "        return np.stack([1 - p, p], axis=1)\n"
        "    def predict(self, rows):\n"
        "        return self.classes_[self.predict_proba(rows).argmax(axis=1)]\n"
        "model = Model()\n"
        "outputs = lambda rows: model.predict_proba(rows)[:, ::-1]\n"
    )
    usual = ["--space", "normal:2", "--budget", "300", "--certificate-n", "200", "--json"]
    for number, original in enumerate(
        (["mine:model", "--scores"], ["mine:outputs", "--decode", "scores", "--classes", "out,in"])
    ):
        done = run_command("copy", *original, *usual, "--out", f"run{number}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ec.load(tmp_path / f"run{number}").settings["scores"] is True
    plain = run_command("copy", "mine:outputs", "--decode", "argmax", "--scores", *usual, "--out", "run2", cwd=tmp_path)
    assert plain.returncode == 2
    assert "--decode scores" in plain.stderr
    assert not (tmp_path / "run2").exists()


def test_a_refresh_of_a_scored_copy_asks_for_scores_again(boosted, tmp_path):
    other = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X[:700], Y[:700])
    ec.copy_classifier(boosted, SPACE, budget=600, scores=True, out=tmp_path / "run", **QUICK)
    again = ec.refresh(tmp_path / "run", other, check=100, out=tmp_path / "again")
    assert again.settings["scores"] is True
    with sqlite3.connect(tmp_path / "again" / "ledger.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM scores").fetchone()[0] > 1


def test_an_original_of_one_answer_is_copied_from_scores_too():
    class Always:
        classes_ = np.array([0, 1])

        def predict(self, rows):
            return np.zeros(len(rows), int)

        def predict_proba(self, rows):
            return np.tile([0.9, 0.1], (len(rows), 1))

    with pytest.warns(EctypeWarning, match="to every one of the first"):
        result = ec.copy_classifier(Always(), ec.Space.normal(2), budget=100, scores=True, **QUICK)
    assert result.certificate.estimate == 1.0
