"""What a copy may see and be: columns kept from it, columns it must rise with, bytes, milliseconds, a given class."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import ectype as ec
from ectype.cli import cli
from ectype.errors import DirectoryError, SettingError, SpaceError
from ectype.models.base import size_of
from ectype.models.blend_fitting import FAMILIES
from ectype.models.capacity import Capacity
from ectype.models.families import FITTED, FamilyLimits, fit
from ectype.models.sklearn_model import SklearnModel
from ectype.models.trees import Trees
from ectype.plan.validation import MONOTONE
from ectype.space import Encoding

pytestmark = pytest.mark.usefixtures("small_lessons")
QUICK = {"budget": 300, "schedule": ec.training.steps(50), "repeat": 0, "certificate_n": 300}
PLANE = ec.Space.normal(2)
PEOPLE = ec.Space.from_json(
    """{"columns": [
        {"name": "income", "kind": "integer", "low": 0, "high": 5},
        {"name": "sex", "kind": "category", "levels": ["f", "m"]},
        {"name": "age", "kind": "float", "low": 18, "high": 90, "missing": 0.1}],
        "rules": ["if sex == m then age > 20"]}"""
)


def credit(frame):
    """Rises with income, and also depends on what it should not."""
    wobble = np.where(frame["income"] == 3, -2.5, 0)
    age = frame["age"].fillna(50).to_numpy(float)
    return np.where(frame["income"] + wobble + (frame["sex"] == "m") + age / 45 > 3.4, "yes", "no")


# --- columns that are kept from the copy ------------------------------------------------------------------------------


def test_a_space_without_columns():
    learned = ec.Space.from_data(pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=list("abc")))
    part = learned.without(["b"])
    assert part.names == ("a", "c")
    np.testing.assert_allclose(part.correlation, np.array(learned.correlation)[np.ix_([0, 2], [0, 2])])
    assert PEOPLE.without(["age"]).rules == ()
    assert PEOPLE.without(["income"]).rules == PEOPLE.rules
    with pytest.raises(SpaceError, match=r"exclude: expected columns among .*, found \['agee'\]"):
        PEOPLE.without(["agee"])
    with pytest.raises(SpaceError, match="exclude: expected a column that is left"):
        PEOPLE.without(["age", "sex", "income"])


@pytest.mark.parametrize("to", ["mlp", "tree", "boosting", "blend"])
def test_an_excluded_column_changes_no_answer_and_need_not_be_there(tmp_path, to):
    result = ec.copy_classifier(credit, PEOPLE, to=to, exclude=["sex"], out=tmp_path / "run", **QUICK)
    frame = PEOPLE.present(PEOPLE.sample(500, np.random.default_rng(1)))
    answers = result.copy.predict(frame)
    assert set(answers) == {"yes", "no"}
    swapped = frame.assign(sex=np.where(frame["sex"] == "f", "m", "f"))
    np.testing.assert_array_equal(result.copy.predict(swapped), answers)
    np.testing.assert_array_equal(result.copy.predict(frame.drop(columns="sex")), answers)
    np.testing.assert_array_equal(ec.load(tmp_path / "run").copy.predict(frame), answers)
    ec.export(result.copy, tmp_path / "copy.onnx")
    import onnxruntime

    names = [i.name for i in onnxruntime.InferenceSession(tmp_path / "copy.onnx").get_inputs()]
    assert names == ["income", "age"]
    assert ec.certify(result.copy, credit, PEOPLE, n=300).estimate > 0.6


def test_arrays_may_hold_the_excluded_column_or_not():
    first = lambda rows: rows[:, 0] + rows[:, 2] > 0  # noqa: E731
    result = ec.copy_classifier(first, ec.Space.normal(3), exclude=["x1"], test=(np.eye(3), [1, 0, 1]), **QUICK)
    rows = np.random.default_rng(0).normal(size=(200, 3))
    np.testing.assert_array_equal(result.copy.predict(rows), result.copy.predict(rows[:, [0, 2]]))
    assert (result.copy.predict(rows) == first(rows)).mean() > 0.8
    with pytest.raises(SpaceError, match="expected rows of 2 columns, found 4"):
        result.copy.predict(np.zeros((1, 4)))


# --- columns that a copy must rise or fall with -----------------------------------------------------------------------


@pytest.mark.parametrize("family", MONOTONE)
def test_a_copy_rises_with_a_column_where_the_original_does_not(family):
    result = ec.copy_classifier(credit, PEOPLE, to=family, increasing=["income"], decreasing=["age"], **QUICK)
    frame = PEOPLE.present(PEOPLE.sample(300, np.random.default_rng(2)))
    frame = frame[frame["age"].notna()]
    yes = [result.copy.predict_proba(frame.assign(income=income))[:, 1] for income in range(6)]
    assert (np.diff(yes, axis=0) >= -1e-9).all()
    older = [result.copy.predict_proba(frame.assign(age=float(age)))[:, 1] for age in range(18, 90, 4)]
    assert (np.diff(older, axis=0) <= 1e-9).all()
    assert len(set(result.copy.predict(frame))) == 2
    free = ec.copy_classifier(credit, PEOPLE, to=family, **QUICK)
    older = [free.copy.predict_proba(frame.assign(age=float(age)))[:, 1] for age in range(18, 90, 4)]
    assert (np.diff(older, axis=0) > 1e-9).any()  # so that the test could fail


@pytest.mark.parametrize("family", MONOTONE)
def test_inputs_for_single_values_of_a_column_make_no_exception(family):
    rng = np.random.default_rng(0)
    learned = ec.Space.from_data(pd.DataFrame({"rooms": rng.integers(1, 6, 500), "area": rng.normal(size=500)}))
    assert Encoding(learned).width > 2
    dip = lambda frame: (frame["rooms"] != 3) & (frame["rooms"] + frame["area"] > 2)  # noqa: E731
    frame = learned.present(learned.sample(200, rng))
    rising = ec.copy_classifier(dip, learned, to=family, increasing=["rooms"], **QUICK).copy
    steps = [rising.predict_proba(frame.assign(rooms=rooms))[:, 1] for rooms in range(1, 6)]
    assert (np.diff(steps, axis=0) >= -1e-9).all()
    free = ec.copy_classifier(dip, learned, to=family, **QUICK).copy
    steps = [free.predict_proba(frame.assign(rooms=rooms))[:, 1] for rooms in range(1, 6)]
    assert (np.diff(steps, axis=0) < -1e-9).any()


def test_what_cannot_rise_is_refused():
    for settings, message in [
        ({"to": "mlp", "increasing": ["income"]}, "a family that can be held to it: linear, tree"),
        ({"to": GaussianNB(), "increasing": ["income"]}, "a family that can be held to it"),
        ({"to": "tree", "increasing": ["sex"]}, "columns with an order: income, age, found 'sex'"),
        ({"to": "tree", "increasing": ["wage"]}, "columns with an order: income, age, found 'wage'"),
        ({"to": "tree", "increasing": ["age"], "exclude": ["age"]}, "every column named once"),
        ({"to": "tree", "increasing": "age"}, "a list of columns' names"),
        ({"to": "tree", "increasing": [3]}, "a list of columns' names"),
    ]:
        with pytest.raises((SettingError, SpaceError), match=message):
            ec.copy_classifier(credit, PEOPLE, **settings, **QUICK)
    three = ec.Original(lambda rows: np.digitize(rows[:, 0], [-1, 1]), classes=[0, 1, 2])
    with pytest.raises(SettingError, match="an original that tells two classes apart, found 3 classes"):
        ec.copy_classifier(three, PLANE, to="tree", increasing=["x0"], **QUICK)


def test_auto_leaves_out_what_cannot_rise():
    result = ec.copy_classifier(credit, PEOPLE, to="auto", increasing=["income"], **QUICK)
    assert {one["family"] for one in result.tried} == set(MONOTONE)


# --- bytes and milliseconds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_c", [2, 5])
@pytest.mark.parametrize("most", [2500, 10_000, 100_000])
@pytest.mark.parametrize("family", FITTED)
def test_models_are_made_as_small_as_they_must_be(family, most, n_c):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] * X[:, 1], np.quantile(X[:, 0] * X[:, 1], np.linspace(0, 1, n_c + 1)[1:-1]))
    model = fit(family, X, y.astype(np.int32), n_c, FamilyLimits(max_bytes=most, effort=Capacity(share=0.5)))
    assert size_of(model) <= most
    if family != "linear":
        agreed = (model.probabilities(X).argmax(axis=1) == y).mean()
        assert agreed > (0.5 if most > 2500 or n_c == 2 else 1 / n_c)


def test_the_written_copy_keeps_to_its_bytes(tmp_path):
    result = ec.copy_classifier(credit, PEOPLE, to="forest", max_bytes=5000, out=tmp_path / "run", **QUICK)
    assert (tmp_path / "run" / "copy.safetensors").stat().st_size <= 5000
    assert all(one["bytes"] <= 5000 for one in result.tried)
    small = ec.copy_classifier(credit, PEOPLE, to="auto", max_bytes=3000, **QUICK)
    assert small.family not in ("blend", "forest")
    assert small.tried[0]["bytes"] <= 3000
    assert {one["family"] for one in small.tried} == {*FAMILIES}  # what is too large was made, and not chosen
    assert max(one["bytes"] for one in small.tried) > 3000


def test_limits_that_nothing_keeps_are_refused_before_anything_is_asked(tmp_path):
    asked = []

    def original(rows):
        asked.append(len(rows))
        return rows[:, 0] > 0

    # The network of the sequential method has the layers that it has; others are made as small as they must be.
    for most, options in ((3000, {"preset": "fast"}), (3000, {"to": "mlp", "delta": 1e-6}), (1100, {"to": "mlp"})):
        message = rf"max_bytes: expected a copy of at most {most} bytes, found at least \d+ for a network"
        with pytest.raises(SettingError, match=message):
            ec.copy_classifier(original, PLANE, max_bytes=most, out=tmp_path / "run", **QUICK, **options)
    with pytest.raises(SettingError, match=r"max_bytes: expected a number of bytes above 1024, found 1000"):
        ec.copy_classifier(original, PLANE, max_bytes=1000, out=tmp_path / "run", **QUICK)
    with pytest.raises(SettingError, match=r"max_latency: expected a copy that takes 1e-06 ms a row, found .* ms"):
        ec.copy_classifier(original, PLANE, to="auto", max_latency=1e-6, out=tmp_path / "run", **QUICK)
    assert not asked
    assert not (tmp_path / "run").exists()
    with pytest.raises(
        SettingError, match="max_bytes, max_latency: expected a copy that keeps to them, found tree with"
    ):
        ec.copy_classifier(original, PLANE, to="tree", max_bytes=1030, **QUICK)


def test_a_copy_that_takes_too_long_is_not_chosen(monkeypatch):
    from ectype.runs import model_selection as outcome

    monkeypatch.setattr(outcome, "latency", lambda copy: 5.0 if len(getattr(copy.model, "roots", [])) > 1 else 0.1)
    result = ec.copy_classifier(credit, PEOPLE, to="auto", max_latency=1.0, **QUICK)
    assert result.family in ("mlp", "linear", "tree", "blend")
    with pytest.raises(SettingError, match="forest with 5 ms a row"):
        ec.copy_classifier(credit, PEOPLE, to="forest", max_latency=1.0, **QUICK)


# --- a classifier that the user brings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "kind"), [(SVC(C=10), SklearnModel), (GaussianNB(), SklearnModel), (RandomForestClassifier(7), Trees)]
)
def test_any_classifier_of_scikit_learns(tmp_path, to, kind):
    result = ec.copy_classifier(credit, PEOPLE, to=to, out=tmp_path / "run", **QUICK)
    assert isinstance(result.copy.model, kind)
    assert result.family == type(to).__name__
    assert not hasattr(to, "classes_")  # a clone was fitted
    frame = PEOPLE.present(PEOPLE.sample(400, np.random.default_rng(3)))
    again = ec.load(tmp_path / "run")
    np.testing.assert_array_equal(again.copy.predict(frame), result.copy.predict(frame))
    np.testing.assert_allclose(again.copy.predict_proba(frame).sum(axis=1), 1, atol=1e-5)
    assert (again.copy.predict(frame) == credit(frame)).mean() > 0.7
    resumed = ec.copy_classifier(credit, PEOPLE, to=to, out=tmp_path / "run", **QUICK)
    assert resumed.certificate == result.certificate
    with pytest.raises(DirectoryError, match="to"):
        ec.copy_classifier(credit, PEOPLE, to=to.set_params(**_other(to)), out=tmp_path / "run", **QUICK)


def _other(to):
    return (
        {"C": 1.0}
        if isinstance(to, SVC)
        else {"n_estimators": 3}
        if hasattr(to, "n_estimators")
        else {"priors": None, "var_smoothing": 1e-3}
    )


class Stranger(GaussianNB):
    """A class that a file may not bring along unasked."""


def test_types_of_a_strangers_file_must_be_named(tmp_path):
    ec.copy_classifier(credit, PEOPLE, to=Stranger(), out=tmp_path / "run", **QUICK)
    name = f"{Stranger.__module__}.Stranger"
    with pytest.raises((SettingError, DirectoryError), match=name):
        ec.load(tmp_path / "run")
    assert ec.load(tmp_path / "run", types=[name]).family == "Stranger"


def test_a_classifier_that_cannot_be_fitted_or_expressed_is_refused(tmp_path):
    class Broken(GaussianNB):
        def fit(self, X, y):
            raise RuntimeError("no")

    with pytest.raises(
        SettingError,
        match=r"to: expected a classifier that can be fitted .* inputs, found RuntimeError: no",
    ):
        ec.copy_classifier(credit, PEOPLE, to=Broken(), **QUICK)
    with pytest.raises(SettingError, match="to: expected one of"):
        ec.copy_classifier(credit, PEOPLE, to=GaussianNB, **QUICK)
    result = ec.copy_classifier(credit, PEOPLE, to=GaussianNB(), **QUICK)
    ec.export(result.copy, tmp_path / "copy.skops")
    for name in ("copy.onnx", "copy.sql", "copy.rules"):
        with pytest.raises(ec.errors.ExportError, match="GaussianNB"):
            ec.export(result.copy, tmp_path / name)
        assert not (tmp_path / name).exists()


def test_the_estimators_take_families_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    copy = ec.SequentialCopy(SVC(), budget=200, schedule=20, to="tree", random_state=0).fit(X, X[:, 0] > 0)
    assert isinstance(copy.copy_.model, Trees)
    assert Encoding(copy.space_).width == 2


# --- a target, and families that are made a few times only ------------------------------------------------------------


def test_other_families_stop_early_at_a_target_they_reach():
    early = ec.copy_classifier(lambda rows: rows[:, 0] > 0, PLANE, to="tree", target=0.9, budget=800, repeat=0)
    assert early.stopped == "target"
    assert early.queries["training"] < 800
    assert early.certificate.lower >= 0.9


def test_a_copy_that_sees_less_than_the_original_has_no_shadow(tmp_path):
    ec.copy_classifier(lambda rows: rows[:, 0] > 0, PLANE, exclude=["x1"], out=tmp_path / "run", **QUICK)
    command = ["serve", str(tmp_path / "run"), "--shadow", "mine:original", "--port", "0"]
    with pytest.raises(SettingError, match="--shadow: expected a copy that sees every column, found 1 kept from it"):
        CliRunner().invoke(cli, command, catch_exceptions=False)
