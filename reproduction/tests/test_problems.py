"""The paper's problems and originals: read from a folder, split, standardised, fitted; and the benchmark over them."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from ectype.errors import SettingError, SpaceError
from ectype_paper import FAMILIES, FAMILY_OF, load, names, original
from ectype_paper.problems import split
from optional_packages import needs

ROOT = Path(__file__).parents[2]
UCI = ROOT.parent / "shared" / "uci"
needs_uci = pytest.mark.skipif(not UCI.is_dir(), reason="the folder of the paper's problems is not beside the project")


def write(folder, name, X, y):
    header = ",".join([*(f"f{j}" for j in range(X.shape[1])), "label"])
    lines = [",".join([*map(str, row), str(label)]) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    write_text(folder, name, "\n".join([header, *lines]) + "\n")


def write_text(folder, name, text):
    (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))


def index(folder, *listed):
    (folder / "index.csv").write_text("\n".join(["name,classes", *(f"{name},2" for name in listed)]) + "\n")


@pytest.fixture
def folder(tmp_path):
    """Two small problems: iris with a constant column, and one called by no name of the paper's, with a rare class."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = np.column_stack([5 + 10 * y + rng.normal(size=90), rng.normal(size=90), np.full(90, 7.0)])
    index(tmp_path, "odd", "iris")
    write(tmp_path, "iris", X, y)
    write(tmp_path, "odd", X, np.where(np.arange(90) == 89, 8, y))
    return tmp_path


def test_names_are_sorted(folder):
    assert names(folder) == ("iris", "odd")


def test_the_training_part_has_mean_0_and_deviation_1(folder):
    problem = load(folder, "iris")
    assert (problem.d, problem.n_classes) == (3, 3)
    np.testing.assert_allclose(problem.X_train.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(problem.X_train.std(axis=0), [1, 1, 0], atol=1e-9)
    assert (problem.X_test[:, 2] == 0).all()
    assert abs(problem.X_test[:, 1].mean()) > 1e-6  # its own mean was not used


def test_the_split_is_stratified_and_whole(folder):
    problem = load(folder, "iris")
    np.testing.assert_array_equal(np.bincount(problem.y_train), [24, 24, 24])
    np.testing.assert_array_equal(np.bincount(problem.y_test), [6, 6, 6])
    first, again, other = (load(folder, "iris", seed).X_test for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_class_of_one_row_is_trained_on_and_has_a_code(folder):
    problem = load(folder, "odd")
    np.testing.assert_array_equal(np.bincount(problem.y_train), [24, 24, 23, 1])
    assert problem.y_test.max() == 2


def test_every_class_has_its_share_of_test_rows():
    y = np.repeat([0, 1, 2], [100, 10, 2])
    np.testing.assert_array_equal(np.bincount(y[split(y, 3)], minlength=3), [20, 2, 0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("f0,label\n1,0\nx,1\n", "iris.csv.gz, line 3: expected a finite number, found 'x'"),
        ("f0,label\n1,0\n\n1,2,3\n", "iris.csv.gz, line 4: expected 2 cells, found 3"),
        ("f0,f1\n1,0\n2,1\n", "line 1: .* then one called label"),
        ("f0,f1,label\n1,0\n2,1\n", "line 2: expected 3 cells, found 2"),
        ("f0,label\nnan,0\n2,1\n", "line 2: expected a finite number, found 'nan'"),
        ("f0,label\nnan,0\ninf,1\n", "line 2: expected a finite number, found 'nan'"),
        ("f0,label\n1,0\n,1\n", "line 3: expected a finite number, found ''"),
        ('f0,label\n1,0\n"2,1\n', "line 3: expected 2 cells"),
        ("f0,label\n", "0 rows of 0 classes"),
        ("", "line 1: "),
        ("f0,label\n1,0\n2,0\n", "at least two classes"),
        ("f0,label\n1,0\n2,1\n", "rows enough to test on"),
    ],
)
def test_bad_files(folder, text, says):
    write_text(folder, "iris", text)
    with pytest.raises(SpaceError, match=says):
        load(folder, "iris")


def test_files_that_are_missing_or_cut_short(folder, tmp_path):
    path = folder / "iris.csv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SpaceError, match="iris"):
        load(folder, "iris")
    path.unlink()
    with pytest.raises(SpaceError, match="No such file"):
        load(folder, "iris")
    with pytest.raises(SettingError, match=r"listed in .*index.csv, found 'magic'; without a folder there are breast-"):
        load(folder, "magic")
    with pytest.raises(SettingError, match=r"nowhere/index.csv: .*list of problems.*without a folder there are .*wine"):
        names(tmp_path / "nowhere")
    (folder / "index.csv").write_text("title\niris\n")
    with pytest.raises(SettingError, match="a column called name"):
        names(folder)


def test_words_become_numbers_in_the_order_of_their_levels(folder):
    lines = [f"{word},{number},{label}" for word, number, label in zip("cab" * 10, range(30), "ynn" * 10, strict=True)]
    write_text(folder, "iris", "\n".join(["f0,f1,label", *lines]) + "\n")
    problem = load(folder, "iris")
    assert problem.n_classes == 2
    rows, labels = np.vstack([problem.X_train, problem.X_test]), np.concatenate([problem.y_train, problem.y_test])
    levels = np.unique(rows[:, 0])
    np.testing.assert_allclose(np.diff(levels), (levels[2] - levels[0]) / 2)  # 0, 1, 2 before scaling
    np.testing.assert_array_equal(rows[labels == 1, 0], levels[2])  # c, which is labelled y


def test_a_file_that_unpacks_to_too_much_is_refused(folder, monkeypatch):
    monkeypatch.setattr("ectype_paper.problems.LARGEST", 100)
    with pytest.raises(SpaceError, match="at most 100 characters, unpacked"):
        load(folder, "iris")


def test_what_the_folder_does_not_list_is_built_in(folder):
    assert load(folder, "iris").source == "folder"
    assert load(folder, "wine").source == load(None, "wine").source == "built-in"
    with pytest.raises(SettingError, match="a problem that is built in, found 'magic'; without a folder"):
        load(None, "magic")


def test_the_digest_is_of_the_content(folder):
    one, same, other = load(folder, "iris"), load(folder, "iris"), load(folder, "iris", seed=1)
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_learns_an_easy_problem(folder, family):
    if family == "xgboost":
        needs("xgboost")
    problem = load(folder, "iris")
    assert (original(problem, family).predict(problem.X_test) == problem.y_test).mean() > 0.9


@pytest.mark.parametrize("family", ["ann", "random_forest"])
def test_originals_are_the_same_every_time(folder, family):
    problem = load(folder, "iris")
    rows = np.random.default_rng(1).normal(size=(300, 3))
    one, two = (original(problem, family).predict(rows) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_a_rare_class_does_not_stop_the_search(folder):
    assert set(original(load(folder, "odd"), "linear_svm").classes_) == {0, 1, 2, 3}


def test_the_family_is_the_papers_unless_named(folder):
    assert type(original(load(folder, "iris"))).__name__ == "RandomForestClassifier"
    with pytest.raises(SettingError, match=r"Table 3, found 'odd'; name a family"):
        original(load(folder, "odd"))
    with pytest.raises(SettingError, match="'adaboost', 'ann'"):
        original(load(folder, "odd"), "knn")


def test_xgboost_may_be_absent(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(SettingError, match="pip install xgboost-cpu"):
        original(load(folder, "iris"), "xgboost")


@needs_uci
def test_the_papers_problems_are_all_there():
    assert set(names(UCI)) == set(FAMILY_OF)


@needs_uci
def test_a_problem_of_the_paper():
    problem = load(UCI, "iris")
    assert (problem.X_train.shape, problem.X_test.shape) == ((120, 4), (30, 4))
    assert (original(problem).predict(problem.X_test) == problem.y_test).mean() > 0.85
