"""Model files of LightGBM, XGBoost, CatBoost and PMML, saved by their libraries, against the libraries themselves."""

import gc
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype.errors import EctypeError, OriginalError, SettingError
from ectype.original import library_files, open_original
from optional_packages import needs
from processes import child_processes

pytestmark = pytest.mark.usefixtures("small_lessons")

catboost, lightgbm, xgboost = map(needs, ("catboost", "lightgbm", "xgboost"))
QUIETLY = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def matrix(rng):
    X = rng.normal(size=(400, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, rng.normal(size=(100, 3))


@pytest.fixture(scope="module")
def frame(rng):
    """Floats, whole numbers and words; the labels are words."""
    rows = pd.DataFrame(
        {
            "age": rng.normal(size=400),
            "visits": rng.integers(0, 5, 400),
            "city": rng.choice(["Bonn", "Nice", "Oslo"], 400),
        }
    )
    return rows, np.where((rows["city"] == "Nice") ^ (rows["age"] > 0), "yes", "no")


def three(X):
    return np.digitize(np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]), [-0.6, 0.6])


def two(X):
    return (np.nan_to_num(X[:, 0]) > 0).astype(int)


def saved(library, X, y, folder, **settings):
    """A classifier of this library, fitted and saved; its own probabilities, and the file."""
    if library == "lightgbm":
        fitted = lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1, **settings).fit(X, y)
        fitted.booster_.save_model(folder / "model.txt")
        return fitted, folder / "model.txt"
    if library == "xgboost":
        fitted = xgboost.XGBClassifier(n_estimators=8, n_jobs=1, **settings).fit(X, y)
        fitted.save_model(folder / "model.ubj")
        return fitted, folder / "model.ubj"
    fitted = catboost.CatBoostClassifier(iterations=8, **QUIETLY, **settings).fit(X, y)
    fitted.save_model(str(folder / "model.cbm"))
    return fitted, folder / "model.cbm"


LIBRARIES = ("lightgbm", "xgboost", "catboost")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("decide", [two, three])
def test_labels_and_probabilities_are_those_of_the_library(library, decide, matrix, folder):
    X, new = matrix
    fitted, path = saved(library, X, decide(X), folder)
    original = open_original(str(path))
    assert (original.d, original.name) == (3, path.name)
    assert original.declared.classes.tolist() == fitted.classes_.tolist()
    assert original.answer(new).tolist() == np.ravel(fitted.predict(new)).tolist()
    said = original.with_scores().query(np.vstack([new, X]))
    np.testing.assert_allclose(said.scores, fitted.predict_proba(np.vstack([new, X])), atol=1e-6)
    k = len(fitted.classes_)
    names = ["c", "a", "b"][:k]
    named = open_original(str(path), names)
    assert named.answer(new).tolist() == [names[code] for code in np.ravel(fitted.predict(new))]
    order = np.argsort(names)
    np.testing.assert_allclose(named.with_scores().query(new).scores, fitted.predict_proba(new)[:, order], atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES[:1])
def test_classes_that_are_not_as_many(library, matrix, folder):
    X, _ = matrix
    _, path = saved(library, X, two(X), folder)
    with pytest.raises(SettingError, match=r"classes: expected a label for each class of the model, .* found 3, where"):
        open_original(str(path), ["a", "b", "c"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_threshold_is_about_the_second_class(library, matrix, folder):
    X, new = matrix
    fitted, path = saved(library, X, two(X), folder)
    found = open_original(str(path), ["no", "yes"], decode="threshold", threshold=0.3).answer(new)
    assert found.tolist() == np.where(fitted.predict_proba(new)[:, 1] >= 0.3, "yes", "no").tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_by_name_and_words(library, frame, folder):
    rows, labels = frame
    if library == "catboost":
        fitted, path = saved(library, rows, labels, folder, cat_features=["city", "visits"])
        classes = None
    else:
        typed = rows.astype({"city": "category"})
        codes = labels if library == "lightgbm" else (labels == "yes").astype(int)
        more = {"enable_categorical": True} if library == "xgboost" else {}
        fitted, path = saved(library, typed, codes, folder, **more)
        classes = ["no", "yes"]
    original = open_original(str(path), classes)
    assert original.names == ("age", "visits", "city")
    assert original.answer(rows[::-1]).tolist() == labels_of(fitted, rows[::-1], library)
    few = rows[rows["city"] != "Bonn"][:5]  # the numbers of words are the file's, not those of the request
    assert original.answer(few).tolist() == labels_of(fitted, few, library)
    assert original.answer(rows[["city", "age", "visits"]][:5]).tolist() == labels_of(fitted, rows[:5], library)
    with pytest.raises(OriginalError, match="a data frame with the columns"):
        original.answer(rows.rename(columns={"age": "years"}))


def labels_of(fitted, rows, library):
    if library == "catboost":
        return np.ravel(fitted.predict(rows)).tolist()
    kind = pd.CategoricalDtype(["Bonn", "Nice", "Oslo"])
    found = fitted.predict(rows.astype({"city": kind}))
    return found.tolist() if library == "lightgbm" else np.where(found == 1, "yes", "no").tolist()


def test_xgboost_stops_where_its_training_did(matrix, tmp_path):
    X, new = matrix
    fitted = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=2, n_jobs=1, max_depth=6)
    rng = np.random.default_rng(1)
    fitted.fit(X, rng.integers(0, 2, len(X)), eval_set=[(new, rng.integers(0, 2, len(new)))], verbose=False)
    assert fitted.best_iteration < 50
    fitted.save_model(tmp_path / "model.json")
    said = open_original(str(tmp_path / "model.json")).with_scores().query(new)
    np.testing.assert_allclose(said.scores, fitted.predict_proba(new), atol=1e-6)


@pytest.mark.parametrize("objective", ["multi:softmax", "binary:hinge"])
def test_xgboost_that_gives_labels_alone(objective, matrix, tmp_path):
    X, new = matrix
    y = three(X) if objective.startswith("multi") else two(X)
    number = {"num_class": 3} if objective.startswith("multi") else {}
    booster = xgboost.train({"objective": objective, "nthread": 1, **number}, xgboost.DMatrix(X, y), 5)
    booster.save_model(tmp_path / "model.json")
    original = open_original(str(tmp_path / "model.json"))
    assert original.answer(new).tolist() == booster.predict(xgboost.DMatrix(new)).astype(int).tolist()
    with pytest.raises(OriginalError, match="a probability for each class, found labels alone"):
        original.with_scores().query(new)


def test_words_without_their_numbers_are_not_guessed(frame, tmp_path):
    rows, labels = frame
    coded = rows.assign(city=rows["city"].astype("category").cat.codes)
    booster = xgboost.train({"nthread": 1, "objective": "binary:logistic"}, xgboost.DMatrix(coded, labels == "yes"), 5)
    booster.save_model(tmp_path / "model.json")
    with pytest.raises(OriginalError, match="words in 'city', and a file that does not say which numbers stand for th"):
        open_original(str(tmp_path / "model.json")).answer(rows)


def test_catboost_keeps_its_own_threshold_and_booleans(matrix, tmp_path):
    X, new = matrix
    fitted = catboost.CatBoostClassifier(iterations=8, **QUIETLY).fit(X, two(X) > 0)
    fitted.set_probability_threshold(0.2)
    fitted.save_model(str(tmp_path / "model.cbm"))
    said = open_original(str(tmp_path / "model.cbm")).with_scores().query(new)
    assert said.labels.dtype.kind == "b"
    assert said.labels.tolist() == (fitted.predict_proba(new)[:, 1] > 0.2).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_that_are_no_classes_need_a_threshold(library, matrix, tmp_path):
    X, new = matrix
    X, y = np.nan_to_num(X), np.nan_to_num(X[:, 0])
    if library == "lightgbm":
        path = tmp_path / "model.txt"
        lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(X, y), 5).save_model(path)
    elif library == "xgboost":
        path = tmp_path / "model.json"
        xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), 5).save_model(path)
    else:
        path = tmp_path / "model.cbm"
        catboost.CatBoostRegressor(iterations=5, **QUIETLY).fit(X, y).save_model(str(path))
    with pytest.raises(OriginalError, match="fractions such as"):
        open_original(str(path)).answer(new)
    labels = open_original(str(path), ["low", "high"], decode="threshold", threshold=0.0).answer(new)
    assert np.mean((labels == "high") == (new[:, 0] > 0)) > 0.8


# --- what is no model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.txt", b"tree\nversion=v4\n"),
        ("model.txt", b"\xff" * 99),
        ("model.json", b'{"learner": {}}'),
        ("model.ubj", b""),
        ("model.cbm", b"CBM1\x00\x00\x00"),
    ],
)
def test_other_files_under_the_name_of_a_model(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingError, match=f"{name}: expected a model that .* can load"):
        open_original(str(tmp_path / name))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_file_that_is_cut_short_is_an_error(library, matrix, folder, tmp_path):
    X, new = matrix
    _, path = saved(library, X, two(X), folder)
    whole = path.read_bytes()
    (tmp_path / path.name).write_bytes(whole[: len(whole) // 2])
    with suppress(EctypeError):  # a text that ends early may be a smaller model
        assert len(open_original(str(tmp_path / path.name), timeout=20).answer(new)) == len(new)


def test_a_library_that_is_not_installed(tmp_path, monkeypatch):
    (tmp_path / "model.cbm").write_bytes(b"")
    monkeypatch.setattr(library_files, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"found no such package; pip install 'ectype\[catboost\]'"):
        open_original(str(tmp_path / "model.cbm"))


def test_a_copy_of_a_file(matrix, tmp_path):
    X, _ = matrix
    saved("lightgbm", np.nan_to_num(X), two(X), tmp_path)
    sizes = ["--space", "normal:3", "--budget", "200", "--certificate-n", "200", "--preset", "fast", "--json"]
    out = run_command("copy", "model.txt", *sizes, "--scores", "--classes", "no,yes", "--out", "run", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert ec.load(tmp_path / "run").certificate.estimate > 0.8
    (tmp_path / "model.txt").write_text("no model")
    out = run_command("copy", "model.txt", *sizes, "--out", "another", cwd=tmp_path)
    assert (out.returncode, (tmp_path / "another").exists()) == (2, False)


# --- PMML -------------------------------------------------------------------------------------------------------------

LOGISTIC = """<?xml version="1.0" encoding="UTF-8"?>
<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">
  <Header/>
  <DataDictionary>
    <DataField name="age" optype="continuous" dataType="double"/>
    <DataField name="city" optype="categorical" dataType="string"><Value value="Bonn"/><Value value="Nice"/></DataField>
    <DataField name="decision" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/>
    </DataField>
  </DataDictionary>
  <RegressionModel functionName="classification" normalizationMethod="logit">
    <MiningSchema>
      <MiningField name="age"/><MiningField name="city"/><MiningField name="decision" usageType="target"/>
    </MiningSchema>
    OUTPUT
    <RegressionTable targetCategory="yes" intercept="-1">
      <NumericPredictor name="age" coefficient="2"/>
      <CategoricalPredictor name="city" value="Nice" coefficient="0.5"/>
    </RegressionTable>
    <RegressionTable targetCategory="no" intercept="0"/>
  </RegressionModel>
</PMML>"""
OUTPUT = '<Output><OutputField name="p" feature="probability" value="yes" dataType="double"/></Output>'


def jvms():
    """The processes of ours that have a JVM in them."""
    return [pid for pid in child_processes() if b"libjvm" in Path(f"/proc/{pid}/maps").read_bytes()]


@pytest.fixture(scope="module", params=["", OUTPUT], ids=["plain", "outputs"])
def pmml(request, tmp_path_factory):
    needs("pypmml")
    if shutil.which("java") is None:
        pytest.skip("no java is installed here")
    path = tmp_path_factory.mktemp("pmml") / "model.pmml"
    path.write_text(LOGISTIC.replace("OUTPUT", request.param))
    return open_original(str(path))


def test_pmml(pmml):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(size=300), "city": rng.choice(["Bonn", "Nice"], 300)})
    probability = 1 / (1 + np.exp(1 - 2 * rows["age"] - 0.5 * (rows["city"] == "Nice")))
    assert pmml.names == ("age", "city")
    assert pmml.declared.classes.tolist() == ["no", "yes"]
    assert pmml.answer(rows).tolist() == np.where(probability > 0.5, "yes", "no").tolist()
    said = pmml.with_scores().query(rows)
    np.testing.assert_allclose(said.scores[:, 1], probability, atol=1e-6)
    before = jvms()
    assert len(before) == 1
    pmml.answer(rows[:1])
    assert jvms() == before  # one JVM for all of it


def test_rows_that_a_pmml_model_does_not_know(pmml):
    with pytest.raises(OriginalError, match="no answer to row 1: it has a gap, or a value the model does not know"):
        pmml.answer(pd.DataFrame({"age": [1.0, 2.0], "city": ["Nice", "Rome"]}))
    assert pmml.answer(pd.DataFrame({"age": [1.0], "city": ["Nice"]})).tolist() == ["yes"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<PMML", "a model that PyPMML can load"),
        ('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><PMML>&e;</PMML>', "PMML, which has no DOCTYPE"),
    ],
)
def test_what_is_no_pmml(content, message, tmp_path):
    (tmp_path / "model.pmml").write_text(content)
    with pytest.raises(SettingError, match=message):
        open_original(str(tmp_path / "model.pmml"))


def test_the_jvm_ends_with_its_original(tmp_path):
    before = set(jvms())
    (tmp_path / "model.pmml").write_text(LOGISTIC.replace("OUTPUT", ""))
    original = open_original(str(tmp_path / "model.pmml"))
    assert len(set(jvms()) - before) == 1
    del original
    gc.collect()
    assert set(jvms()) == before


def test_without_a_jvm(tmp_path, monkeypatch):
    (tmp_path / "model.pmml").write_text(LOGISTIC)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SettingError, match=r"a JVM, to run it, found no java; install one"):
        open_original(str(tmp_path / "model.pmml"))
