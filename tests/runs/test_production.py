"""From an original to a file that somebody else runs: every family, on toys, bundled problems and a mixed table."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

import ectype as ec
from ectype import toy_problems
from ectype.plan.settings import BLEND, FAMILIES
from problems import loans

pytestmark = pytest.mark.usefixtures("small_lessons")
BUNDLED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
PROBLEMS = ("spirals", "moons", "yin_yang", *BUNDLED, "loans")
# What a network, and what a linear copy, should at least reach here with so few queries and steps.
LEAST = {"spirals": (0.6, 0.45), "moons": (0.8, 0.7), "yin_yang": (0.8, 0.6), "loans": (0.8, 0.7)}


@pytest.fixture(scope="module")
def originals():
    known = {}

    def original(name):
        if name not in known:
            if name in BUNDLED:
                data = BUNDLED[name]()
                words = data.target_names[data.target].astype(str) if name == "iris" else data.target
                known[name] = (
                    SVC(gamma="scale").fit(data.data / data.data.std(axis=0), words),
                    data.data / data.data.std(axis=0),
                )
            elif name == "loans":
                frame, labels = loans(600, 0)
                numbers = frame.select_dtypes("number").columns
                inner = RandomForestClassifier(20, max_depth=5, random_state=0).fit(frame[numbers].fillna(-1), labels)
                known[name] = (lambda rows: inner.predict(rows[numbers].fillna(-1))), frame
            else:
                problem = getattr(toy_problems, name)(1000, 0)
                known[name] = SVC(C=100, gamma=5).fit(*problem), problem[0]
        return known[name]

    return original


@pytest.mark.parametrize("family", [*FAMILIES, BLEND])
@pytest.mark.parametrize("name", PROBLEMS)
def test_copied_certified_saved_loaded_exported_and_opened_again(name, family, originals, tmp_path):
    original, rows = originals(name)
    space = ec.Space.from_data(rows)
    schedule = ec.training.steps(200)
    run = tmp_path / "run"
    result = ec.copy_classifier(original, space, to=family, budget=400, schedule=schedule, certificate_n=500, out=run)
    assert result.family == family
    proof = ec.certify(result.copy, original, space, n=500, seed=1)
    assert proof.estimate > LEAST.get(name, (0.8, 0.8))[family == "linear"]
    assert abs(proof.estimate - result.certificate.estimate) < 0.1
    again = ec.load(run)
    fresh = space.present(space.sample(1000, np.random.default_rng(7)))
    answers = result.copy.predict(fresh)
    np.testing.assert_array_equal(again.copy.predict(fresh), answers)
    written = ec.export(again.copy, tmp_path / "copy.onnx")
    assert written.disagreements <= written.tolerance
    reopened = ec.open_original(str(tmp_path / "copy.onnx"), classes=result.copy.classes.tolist())
    agreed = (reopened.answer(fresh) == answers).mean()
    assert agreed == 1 if family in ("tree", "forest") else agreed >= 0.998
