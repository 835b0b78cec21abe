"""Files as originals: skops files of known types, and pickles that somebody vouches for."""

import contextlib
import io
import json
import pickle
import sys
import tempfile
import zipfile
from hashlib import sha256
from itertools import count
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ectype.errors import OriginalError, SettingError
from ectype.original import open_original

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
FRAME = pd.DataFrame(
    {"a": np.where(RNG.random(60) < 0.2, np.nan, X[:, 0]), "b": X[:, 1], "c": RNG.choice(["x", "y"], 60)}
)


def save(directory, content, name="model.skops"):
    path = Path(directory) / name
    path.write_bytes(content)
    return str(path)


def fitted(model=None):
    return (DecisionTreeClassifier(max_depth=3, random_state=0) if model is None else model).fit(X, Y)


# --- skops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        RandomForestClassifier(3),
        ExtraTreesClassifier(3),
        GradientBoostingClassifier(n_estimators=3),
        GradientBoostingClassifier(n_estimators=3, loss="exponential"),
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
        AdaBoostClassifier(n_estimators=3),
        SVC(),
        LinearSVC(),
        LogisticRegression(),
        SGDClassifier(loss="modified_huber"),
        MLPClassifier((4,), max_iter=1000, tol=0.1),
        KNeighborsClassifier(algorithm="kd_tree"),
        KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
        GaussianNB(),
        LinearDiscriminantAnalysis(),
        GaussianProcessClassifier(),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2),
        VotingClassifier([("a", GaussianNB()), ("b", SVC())]),
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, scoring="accuracy"),
        make_pipeline(SelectKBest(k=2), StandardScaler(), SVC()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_scikit_learn_need_no_permission(tmp_path, model):
    content = skops.io.dumps(fitted(model))
    box = open_original(save(tmp_path, content))
    assert box.answer(X).tolist() == model.predict(X).tolist()
    assert (box.d, box.name, box.declared.classes.tolist()) == (3, "model.skops", ["no", "yes"])
    assert box.fingerprint == sha256(content).hexdigest()


def selected(encoder):
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include=float)),
            ("words", encoder, ["c"]),
        ]
    )


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(selected(OneHotEncoder(handle_unknown="ignore")), LogisticRegression()),
        make_pipeline(selected(OrdinalEncoder()), RandomForestClassifier(3)),
        make_pipeline(selected(OneHotEncoder(sparse_output=False)), HistGradientBoostingClassifier(max_iter=3)),
    ],
    ids=["one-hot", "ordinal", "boosting"],
)
def test_pipelines_of_mixed_columns(tmp_path, model):
    model.fit(FRAME, Y)
    box = open_original(save(tmp_path, skops.io.dumps(model)))
    assert box.answer(FRAME).tolist() == model.predict(FRAME).tolist()
    assert box.names == ("a", "b", "c")


def test_boosting_that_takes_categories(tmp_path):
    frame = FRAME.astype({"c": "category"})
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype").fit(frame, Y)
    box = open_original(save(tmp_path, skops.io.dumps(model)))
    assert box.answer(frame).tolist() == model.predict(frame).tolist()


def test_options_of_skops_files(tmp_path):
    class_codes = LogisticRegression().fit(X, (Y == "yes").astype(int))
    path = save(tmp_path, skops.io.dumps(class_codes))
    box = open_original(path, ["no", "yes"], decode="threshold", threshold=0.5)
    assert box.answer(X).tolist() == np.where(class_codes.predict(X) == 1, "yes", "no").tolist()
    with pytest.raises(SettingError, match="trust: expected one of types, decode, threshold"):
        open_original(path, trust="0" * 64)


def test_other_types_need_to_be_named(tmp_path):
    model = fitted(make_pipeline(FunctionTransformer(np.flip), FunctionTransformer(np.sort), DecisionTreeClassifier()))
    path = save(tmp_path, skops.io.dumps(model))
    with pytest.raises(SettingError) as caught:
        open_original(path)
    message = "types that are known to be harmless, found numpy.flip, numpy.sort; find out what they do"
    assert message in str(caught.value)
    assert "--types NAME" in str(caught.value)
    with pytest.raises(SettingError, match=r"found numpy\.sort;"):
        open_original(path, types=["numpy.flip"])
    assert open_original(path, types=["numpy.flip", "numpy.sort"]).answer(X).tolist() == model.predict(X).tolist()
    with pytest.raises(SettingError, match="types: expected names of types"):
        open_original(path, types=[5])


def edited(model, edit):
    """The skops file of a model, with its schema edited: a function of the parsed JSON, or new text."""
    before = zipfile.ZipFile(io.BytesIO(skops.io.dumps(model)))
    after = io.BytesIO()
    with before, zipfile.ZipFile(after, "w") as archive:
        for name in before.namelist():
            content = before.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                content = edit(schema) or json.dumps(schema)
            archive.writestr(name, content)
    return after.getvalue()


def every(schema, key):
    """All values of a key, however deep."""
    if isinstance(schema, dict):
        yield from [schema[key]] if key in schema else []
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from every(value, key)


def test_nothing_of_an_unknown_type_is_imported(tmp_path, monkeypatch):
    (tmp_path / "unheard_of_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    content = edited(fitted(), lambda schema: schema.update(__module__="unheard_of_module"))
    with pytest.raises(SettingError, match=r"found unheard_of_module\.DecisionTreeClassifier"):
        open_original(save(tmp_path, content))
    assert "unheard_of_module" not in sys.modules


def off_the_tree(field, to):
    model = fitted()
    state = model.tree_.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][0] = to
    model.tree_.__setstate__(state)
    return skops.io.dumps(model)


def without_nodes():
    def edit(schema):
        for node_count in every(schema, "node_count"):
            node_count.update(content="0", __id__=1)  # equal parts of a file are known by their id

    return edited(fitted(), edit)


def narrower_than_its_tree(model):
    fitted(model).n_features_in_ = 0
    return skops.io.dumps(model)


def off_the_boosted_tree(field, to):
    model = fitted(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5))
    model._predictors[0][0].nodes[field][0] = to
    return skops.io.dumps(model)


def off_the_search_tree(part, field, to):
    model = fitted(KNeighborsClassifier(algorithm="kd_tree", leaf_size=5))
    state = list(model._tree.__getstate__())
    state[part] = state[part].copy()
    state[part][field][..., -1] = to
    model._tree.__setstate__(tuple(state))
    return skops.io.dumps(model)


@pytest.mark.parametrize(
    ("make", "how"),
    [
        (off_the_tree, ("left_child", 10**6)),
        (off_the_tree, ("right_child", 10**6)),
        (off_the_tree, ("right_child", -5)),
        (off_the_tree, ("left_child", 0)),  # round and round
        (off_the_tree, ("feature", 3)),
        (off_the_tree, ("feature", -1)),
        (without_nodes, ()),
        (narrower_than_its_tree, (DecisionTreeClassifier(),)),
        (narrower_than_its_tree, (RandomForestClassifier(2),)),
        (narrower_than_its_tree, (GradientBoostingClassifier(n_estimators=2),)),
        (off_the_boosted_tree, ("left", 10**6)),
        (off_the_boosted_tree, ("right", 0)),
        (off_the_boosted_tree, ("feature_idx", 3)),
        (off_the_boosted_tree, ("is_categorical", 1)),
        (off_the_search_tree, (1, (), 10**6)),
        (off_the_search_tree, (2, "idx_end", 10**6)),
        (off_the_search_tree, (2, "idx_start", -1)),
        (off_the_search_tree, (2, "is_leaf", 0)),
    ],
)
def test_trees_that_would_lead_out_of_bounds(tmp_path, make, how):
    content = make(*how)
    with pytest.raises(SettingError, match="tree whose nodes lead nowhere"):
        open_original(save(tmp_path, content))


def archive(**parts):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        for name, part in parts.items():
            made.writestr(name.replace("_", "."), part)
    return content.getvalue()


WHOLE = skops.io.dumps(fitted())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an archive",
        pickle.dumps([1]),
        archive(readme_txt="hello"),
        archive(schema_json="not JSON"),
        archive(schema_json="[]"),
        archive(schema_json="{}"),
        archive(schema_json='{"protocol": 99}'),
        archive(schema_json='{"protocol": 2, "__loader__": "NoNode", "__module__": "a", "__class__": "b"}'),
        archive(schema_json=100_000 * "[" + 100_000 * "]"),
        WHOLE[:-100],
        WHOLE[: len(WHOLE) // 2],
        WHOLE[:-3000] + b"damaged!" + WHOLE[-2992:],
    ],
    ids=count(),
)
def test_other_files_under_the_name_of_skops(tmp_path, content):
    with pytest.raises(SettingError, match=r"model\.skops: expected a (skops file|classifier, with a method predict)"):
        open_original(save(tmp_path, content))


def most(content):
    """The bytes that an archive may unpack to."""
    return 2**26 + 100 * len(content)


def test_files_that_would_fill_the_memory(tmp_path):
    schema = json.dumps({"protocol": 2, "content": 70 * [{"__loader__": "NdArrayNode", "file": "a.npy"}]})
    bomb = archive(schema_json=schema, a_npy=bytes(2**25))
    with pytest.raises(SettingError, match=f"at most {most(bomb)} bytes once unpacked, found 2348810240"):
        open_original(save(tmp_path, bomb))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        made.writestr("schema.json", "{}")
        made.getinfo("schema.json").file_size = 2**40
    with pytest.raises(
        SettingError, match=f"at most {most(content.getvalue())} bytes once unpacked, found 1099511627776"
    ):
        open_original(save(tmp_path, content.getvalue()))


def test_a_part_of_zeros_is_not_unpacked(tmp_path):
    """256 MB of zeros take 256 kB."""
    schema = {"protocol": 2, "content": [{"__loader__": "NdArrayNode", "file": "a.npy"}]}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("schema.json", json.dumps(schema))
        made.writestr("a.npy", bytes(2**28))
    with pytest.raises(SettingError, match=r"bytes once unpacked, found 268435456; it may be made to do harm"):
        open_original(save(tmp_path, content.getvalue()))


@pytest.mark.parametrize("model", [StandardScaler().fit(X), [1, 2], {"predict": 1}])
def test_what_is_no_classifier(tmp_path, model):
    with pytest.raises(SettingError, match=r"model\.skops: expected a classifier, with a method predict, found"):
        open_original(save(tmp_path, skops.io.dumps(model)))


def test_a_model_that_was_never_fitted(tmp_path):
    box = open_original(save(tmp_path, skops.io.dumps(LogisticRegression())))
    with pytest.raises(OriginalError, match="check that it is fitted"):
        box.answer(X)


# --- pickles ----------------------------------------------------------------------------------------------------------


class Marks:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def joblib_bytes(model, compress=0):
    content = io.BytesIO()
    joblib.dump(model, content, compress=compress)
    return content.getvalue()


@pytest.mark.parametrize("name", ["model.pkl", "model.pickle", "model.joblib"])
@pytest.mark.parametrize("dump", [pickle.dumps, joblib_bytes, lambda model: joblib_bytes(model, 3)])
def test_a_pickle_of_the_right_hash(tmp_path, name, dump):
    model = fitted()
    content = dump(model)
    hashed = sha256(content).hexdigest()
    box = open_original(save(tmp_path, content, name), trust=hashed.upper())
    assert box.answer(X).tolist() == model.predict(X).tolist()
    assert (box.fingerprint, box.name, box.d) == (hashed, name, 3)


@pytest.mark.parametrize(
    ("trust", "message"),
    [
        (
            None,
            r"trust: expected the SHA-256 of a pickle that you trust, found model\.pkl without it: loading a pickle ",
        ),
        ("0" * 64, r"model\.pkl: expected a file of SHA-256 0{64}, found [0-9a-f]{64}; .* do not load it"),
        ("abc", "trust: expected a SHA-256, 64 hexadecimal digits, found 'abc'"),
        ("ß" * 64, "trust: expected a SHA-256"),
        (True, "trust: expected a SHA-256"),
    ],
)
def test_any_other_pickle_is_not_loaded(tmp_path, trust, message):
    mark = tmp_path / "was-loaded"
    content = pickle.dumps(Marks(mark))
    with pytest.raises(SettingError, match=message) as caught:
        open_original(save(tmp_path, content, "model.pkl"), trust=trust)
    assert not mark.exists()
    if trust is None:  # the hash has to come from somebody who knows the file
        assert sha256(content).hexdigest() not in str(caught.value)
        assert "sha256sum" in str(caught.value)
    with pytest.raises(SettingError, match="a classifier"):
        open_original(save(tmp_path, content, "model.pkl"), trust=sha256(content).hexdigest())
    assert mark.exists()  # it would have been seen


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a pickle that can be loaded, found EOFError"),
        (b"not a pickle", "a pickle that can be loaded"),
        (pickle.dumps(fitted())[:-50], "a pickle that can be loaded"),
        (WHOLE, "a pickle that can be loaded"),
        (
            b"cno_such_module\nname\n.",
            "found ModuleNotFoundError: No module named 'no_such_module'; the modules it was",
        ),
        (pickle.dumps([1, 2]), "a classifier, with a method predict, found list"),
        (pickle.dumps(DecisionTreeClassifier), "a classifier, with a method predict, found ABCMeta"),
        (pickle.dumps(len), "a classifier, with a method predict, found builtin_function_or_method"),
    ],
    ids=count(),
)
def test_trusted_pickles_that_are_no_classifier(tmp_path, content, message):
    with pytest.raises(SettingError) as caught:
        open_original(save(tmp_path, content, "model.pkl"), trust=sha256(content).hexdigest())
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["nothing.skops", "nothing.pkl", "folder.skops", "folder.joblib"])
def test_files_that_are_not_there(tmp_path, name):
    if name.startswith("folder"):
        (tmp_path / name).mkdir()
    with pytest.raises(SettingError, match="original: expected a file, found no file"):
        open_original(str(tmp_path / name))


# --- anything at all --------------------------------------------------------------------------------------------------


def attempt(content, name, **options):
    with tempfile.TemporaryDirectory() as directory, contextlib.suppress(SettingError):
        open_original(save(directory, content, name), **options)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["model.skops", "model.pkl", "model.joblib"]))
def test_any_bytes_are_an_error(content, name):
    attempt(content, name)
    if not name.endswith("skops"):
        attempt(content, name, trust="0" * 64)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 4), st.binary(max_size=4))
def test_a_damaged_file_is_a_model_or_an_error(at, cut, put):
    attempt(WHOLE[:at] + put + WHOLE[at + cut :], "model.skops")


JSON = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers()))
MODEL = fitted(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.one_of(JSON, st.just({})))
def test_an_edited_file_is_a_model_or_an_error(data, value):
    def edit(schema):
        part = schema
        while True:
            keys = list(part) if isinstance(part, dict) else range(len(part))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(part[key], (dict, list)) or not part[key] or data.draw(st.integers(0, 9)) == 0:
                part[key] = value
                return
            part = part[key]

    attempt(edited(MODEL, edit), "model.skops")
