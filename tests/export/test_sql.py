"""SQL says the same in every database that can be run here, or refuses; what is silently different elsewhere is not."""

import json
import os
import sqlite3
import sys
import warnings
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from database_servers import started

import ectype as ec
from ectype._kernel import LEAF
from ectype.errors import EctypeWarning, ExportError, SettingError
from ectype.export import DIALECTS as NAMES
from ectype.export import _sql_query as sql_query
from ectype.export import _verification as verification
from ectype.export._sql import is_query, sql_text
from ectype.export._sql_dialects import DIALECTS, GUARD
from ectype.export._sql_trees import _Nodes
from ectype.export._sql_verification import sql_answers
from ectype.export._verification import fresh_rows
from ectype.models.blend import Blend
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import fit
from ectype.models.rbf import RadialModel
from ectype.models.trees import Trees, fixed_point
from ectype.space import Encoding
from make_copies import KINDS, copy_of, fresh, network
from optional_packages import needs

SERVERS = ("postgresql", "mysql")
# Every kind of column, gaps, quotes in names and levels; three classes, and labels that are words.
PROBLEMS = ("loans", "odd")
ROWS = 400


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    with started(request.param) as found:
        yield found


@pytest.fixture(scope="session")
def smaller(copies):
    """Copies of every family, but with a tenth of the trees and centres: databases read what is written here."""
    known = {}

    def copy(family, name):
        if (family, name) not in known:
            known[family, name] = CopyClassifier(
                small(family, name), copies("tree", name).classes, copies("tree", name).space
            )
        return known[family, name]

    def small(family, name):
        if family == "blend":
            members = tuple(copy(member, name).model for member in ("boosting", "mlp", "linear", "radial", "forest"))
            return Blend(members, np.array([0.5, 0.3, 0.2, 0.3, 0.1]))
        model = copies(family, name).model
        if isinstance(model, Trees):
            return pruned(model) if len(model.roots) > 1 else model
        if isinstance(model, RadialModel):
            return replace(model, centres=model.centres[::10], weights=model.weights[::10] * 10)
        if family == "mlp":
            X = copies(family, name).encode(fresh(copies(family, name), 200))
            return replace(network(model.pieces(X), model.n_c), pieces=model.pieces, activation=model.activation)
        return model

    return copy


def pruned(model, trees=12, depth=6):
    """The first trees, cut off at some depth; leaves come from what is below."""
    n = model.roots[trees] if trees < len(model.roots) else len(model.feature)
    nodes = {name: getattr(model, name)[:n] for name in ("feature", "threshold", "left", "right", "values")}
    first = replace(model, **nodes, roots=model.roots[:trees], outputs=model.outputs[:trees])
    below, inner = np.zeros(n, int), np.flatnonzero(first.feature != LEAF)
    values = first.values.copy()
    for node in inner:
        below[first.left[node]] = below[first.right[node]] = below[node] + 1
    for node in inner[::-1]:
        values[node] = (values[first.left[node]] + values[first.right[node]]) / 2
    feature = np.where(below >= depth, LEAF, first.feature)
    return fixed_point(replace(first, feature=feature, values=np.where((feature == LEAF)[:, None], values, 0.0)))


def expected(copy, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EctypeWarning)
        return copy.predict(rows)


def as_words(labels):
    return [None if label is None else str(label) for label in np.asarray(labels).tolist()]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("family", KINDS)
def test_servers_answer_what_the_copy_answers(smaller, server, family, name, tmp_path):
    copy = smaller(family, name)
    rows, text = fresh_rows(copy, ROWS, 3), sql_text(copy, server.dialect, keep=("row_id",))
    assert server.answers(copy, text, rows, tmp_path) == as_words(expected(copy, rows))


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("family", KINDS)
def test_databases_in_this_process_answer_what_the_copy_answers(smaller, family, name, engine):
    if engine == "duckdb":
        needs(engine)
    copy = smaller(family, name)
    rows = fresh_rows(copy, ROWS, 3)
    found = sql_answers(copy, sql_text(copy, DIALECTS[engine]), rows, engine)
    np.testing.assert_array_equal(found, expected(copy, rows))


@pytest.mark.parametrize("family", ["tree", "mlp", "boosting"])
def test_standard_sql_is_read_by_others(smaller, family):
    needs("duckdb")
    copy = smaller(family, "loans")
    rows = fresh_rows(copy, ROWS, 4)
    np.testing.assert_array_equal(sql_answers(copy, sql_text(copy), rows, "duckdb"), expected(copy, rows))


def test_a_database_that_is_slow_is_asked_about_fewer_rows(smaller, tmp_path, monkeypatch):
    copy, told = smaller("linear", "loans"), []
    monkeypatch.setattr("ectype.progress.report_answered", lambda *far: told.append(far))
    with monkeypatch.context() as little:
        little.setattr(verification, "SECONDS", 0.0)
        found = ec.export(copy, tmp_path / "copy.sql", dialect="sqlite")
    assert (found.rows, found.tolerance, told) == (100, 0, [(100, 10_000)])
    assert ec.export(copy, tmp_path / "copy.sql", dialect="sqlite").rows == 10_000
    assert told[-1] == (10_000, 10_000)


def split(name="x0", levels=None, kind="category"):
    """A copy that tells a number's sign, or a column's first level from others."""
    column = {"name": name, "kind": "float", "mean": 0, "std": 1, "missing": 0.2}
    if levels:
        column = {"name": name, "kind": kind, "levels": levels, "missing": 0.2}
    space = ec.Space.from_json(json.dumps({"columns": [column]}))
    rows = space.sample(500, np.random.default_rng(0))
    y = np.where(np.isnan(rows[:, 0]), 2, rows[:, 0] > 0).astype(int)
    return CopyClassifier(fit("tree", Encoding(space)(rows), y, 3), np.array(["low", "high", "none"]), space)


@pytest.mark.parametrize("family", ["tree", "plain"])
def test_a_file_of_another_dialect_is_an_error_in_mariadb(copies, family, server, tmp_path):
    """In MariaDB "x0" is a string: every row would get one label."""
    if server.dialect.name != "mysql":
        return
    copy = copies(family, "spirals")
    server.fill(copy, fresh(copy, 5), tmp_path)
    for dialect in ("ansi", "postgresql", "duckdb"):
        text = sql_text(copy, DIALECTS[dialect])
        with pytest.raises(AssertionError, match="error in your SQL syntax"):
            server.labels(asked(text))


def test_a_column_that_is_not_there_is_an_error_in_sqlite():
    text = sql_text(split(), DIALECTS["sqlite"])
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (y REAL)")
        with pytest.raises(sqlite3.OperationalError, match="no such column: x0"):
            database.execute(f"SELECT ({text}) FROM t")
    database.close()


WORDS = ["north", "North", "north ", "nörth", "north\\", "", "it's", "NULL?", 'a"b', "x`y", "1"]


@pytest.mark.parametrize("first", [0, 2, 3, 4])
def test_words_are_compared_by_every_character(server, first, tmp_path):
    """Databases that ignore case, accents or trailing spaces would take one level for another."""
    levels = [WORDS[first], "other"]
    copy = split('wo`r"d', levels)
    rows = pd.DataFrame({'wo`r"d': [*WORDS, None]})
    labels = expected(copy, rows)
    assert list(labels).count("low") == 1
    assert server.answers(copy, sql_text(copy, server.dialect), rows, tmp_path) == labels.tolist()


def test_labels_of_any_characters(server, tmp_path):
    copy = split()
    labels = np.array(["caf\u00e9", "back\\slash", "it's"])
    rows = pd.DataFrame({"x0": [-1.0, 1.0, None]})
    found = CopyClassifier(copy.model, labels, copy.space)
    answers = server.answers(found, sql_text(found, server.dialect), rows, tmp_path)
    if server.dialect.name == "mysql":  # whose client escapes what it prints
        answers = [answer.replace("\\\\", "\\") for answer in answers]
    assert answers == labels.tolist()


@pytest.mark.parametrize("family", ["tree", "linear", "boosting"])
def test_nan_is_a_gap(family, server):
    """PostgreSQL and DuckDB have NaN, above all numbers."""
    copy = split()
    if family != "tree":
        X = Encoding(copy.space)(copy.space.sample(200, np.random.default_rng(0)))
        model = fit(family, X, (X[:, 0] > 0) + 0, 2)
        model = pruned(model) if family == "boosting" else model
        copy = CopyClassifier(model, np.array(["low", "high"]), copy.space)
    gap = expected(copy, pd.DataFrame({"x0": [np.nan]})).tolist()
    filled = "DROP TABLE IF EXISTS copy_input; CREATE TABLE copy_input (x0 {}); "
    filled += "INSERT INTO copy_input VALUES ({}), (NULL);"
    if server.dialect.name == "postgresql":
        server.run(filled.format("FLOAT8", "'NaN'"))
        assert server.labels(asked(sql_text(copy, server.dialect))) == gap * 2
    with needs("duckdb").connect() as database:
        database.execute(filled.format("DOUBLE", "'NaN'"))
        found = database.execute(asked(sql_text(copy, DIALECTS["duckdb"]))).fetchall()
    assert [row[-1] for row in found] == gap * 2


def asked(text):
    return text if is_query(text) else f"SELECT ({text}) FROM copy_input"


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("family", ["linear", "mlp", "boosting", "blend"])
def test_the_label_is_null_where_the_copy_would_refuse(smaller, family, engine):
    if engine == "duckdb":
        needs(engine)
    copy = smaller(family, "loans")
    rows = fresh(copy, 40).astype(object)
    rows.loc[::2, "age"] = None
    found = sql_answers(copy, sql_text(copy, DIALECTS[engine]), rows, engine)
    assert [label is None for label in found] == [True, False] * 20


@pytest.mark.parametrize("family", ["linear", "mlp", "blend"])
def test_numbers_that_are_far_out(copies, server, family, tmp_path):
    """Some databases refuse what overflows or underflows."""
    copy = copies(family, "loans")
    rows = fresh(copy, 60)
    rows["income"] = np.where(np.arange(60) % 2, 1e300, -1e300)
    rows["debt"] = np.where(np.arange(60) % 3, rows["debt"], -1e12)
    text = sql_text(copy, server.dialect, keep=("row_id",))
    assert server.answers(copy, text, rows, tmp_path) == as_words(copy.predict(rows))


def test_a_query_hands_on_columns_to_keep(copies, tmp_path):
    copy = copies("plain", "spirals")
    written = ec.export(copy, tmp_path / "copy.sql", dialect="sqlite", table="my rows", keep=["id", "label"])
    assert (written.dialect, written.disagreements) == ("sqlite", 0)
    assert written.seconds > 0
    rows = fresh(copy, 5)
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE `my rows` (id, label, x0, x1)")
        filled = [(f"row {i}", "mine", *row) for i, row in enumerate(rows.tolist())]
        database.executemany("INSERT INTO `my rows` VALUES (?, ?, ?, ?)", filled)
        found = database.execute((tmp_path / "copy.sql").read_text())
        assert [column[0] for column in found.description] == ["id", "label", "label_"]
        assert found.fetchall() == [(f"row {i}", "mine", label) for i, label in enumerate(copy.predict(rows).tolist())]
    database.close()


@pytest.mark.usefixtures("unmeasured")  # two megabytes are written, and refused
def test_what_a_dialect_cannot_take_is_refused(copies, tmp_path):
    forest = copies("forest", "odd")
    message = r"sql, duckdb: expected at most 2097152 bytes, .*; make a smaller copy of the same answers \(ectype"
    with pytest.raises(ExportError, match=message):
        ec.export(forest, tmp_path / "copy.sql", dialect="duckdb")
    wide = CopyClassifier(network(np.zeros((1, 1100), np.float32), 2), np.arange(2), ec.Space.normal(1100))
    with pytest.raises(ExportError, match=r"sql, mysql: expected at most 1000 columns in a stage, found 2\d\d\d; make"):
        ec.export(wide, tmp_path / "copy.sql", dialect="mysql")
    with pytest.raises(ExportError, match="words without the character NUL"):
        sql_text(split(levels=["a\0b", "c"]))
    with pytest.raises(SettingError, match="column x0: expected levels that differ as words"):
        sql_text(split(levels=["1", 1, "b"]))
    assert os.listdir(tmp_path) == []


def test_only_files_of_mysql_are_read_by_mysql():
    texts = {name: sql_text(split(), DIALECTS[name]) for name in NAMES}
    assert all((GUARD in text) == (name != "mysql") for name, text in texts.items())


# --- large copies -----------------------------------------------------------------------------------------------------


def grown(leaves, trees=3):
    """A forest with so many leaves in each tree, every one at a threshold of its own."""
    from sklearn.ensemble import ExtraTreesClassifier

    from ectype.models.trees import of_forest

    rng = np.random.default_rng(0)
    space, y = ec.Space.normal(2), np.arange(leaves) % 2
    X = Encoding(space)(space.sample(leaves, rng))
    found = ExtraTreesClassifier(trees, random_state=0, max_features=1).fit(X, y)
    return CopyClassifier(of_forest(found, 2), np.array([0, 1]), space)


def calls(work):
    """How many functions are called, Python's own ones too."""
    found = 0

    def count(frame, event, argument):
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_what_is_written_takes_work_in_proportion_to_the_nodes():
    small, large = grown(200), grown(1600)
    ratio = len(large.model.feature) / len(small.model.feature)
    sql_text(small)  # what is imported once
    assert calls(lambda: sql_text(large)) < 1.5 * ratio * calls(lambda: sql_text(small))


@pytest.mark.parametrize("kind", ["trees", "network"])
def test_sqlite_looks_up_few_of_the_constants_of_a_copy(kind):
    """It compares each that it looks up with all others: a forest of 300 answers took seconds, one of 3,000 minutes."""
    space = ec.Space.normal(2)
    X = Encoding(space)(space.sample(100, np.random.default_rng(0)))
    if kind == "trees":
        copy = grown(400)
        constants = len(copy.model.feature) / 2
    else:
        copy = CopyClassifier(network(X, 2, (40, 40)), np.array([0, 1]), space)
        constants = len(copy.model.theta)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE copy_input (x0 REAL, x1 REAL)")
        steps = [step for _, step, *_ in database.execute("EXPLAIN " + sql_text(copy, DIALECTS["sqlite"]))]
    assert 0 < len(steps) - steps.index("Transaction") < constants / 8  # they are kept for all rows, at the end


@pytest.mark.parametrize("dialect", ["ansi", "sqlite"])  # nested deeply, and listed below a few levels
def test_a_forest_that_is_too_large_is_refused_before_it_is_written(dialect, monkeypatch):
    copy = grown(400)
    size = len(sql_text(copy, DIALECTS[dialect]))
    written = []
    monkeypatch.setattr(_Nodes, "text", lambda *about: written.append(about))
    smaller = replace(DIALECTS[dialect], bytes=size // 2)
    message = (
        f"expected at most {size // 2} bytes, .* more than that: its trees have {len(copy.model.feature)} nodes; make"
    )
    with pytest.raises(ExportError, match=message):
        sql_text(copy, smaller)
    assert not written
    monkeypatch.setattr(sql_query, "cells_of", lambda space, encoding, compared: compared and written.append(compared))
    with pytest.raises(ExportError, match="nodes; make"):  # and if it is far too large, before anything is computed
        sql_text(copy, replace(smaller, bytes=size // 20))
    assert not written
    monkeypatch.undo()
    assert len(sql_text(copy, replace(smaller, bytes=size))) == size  # what is not too large is never refused


def test_a_chain_of_nodes_is_refused_though_each_of_its_conditions_is_short():
    """Listed one by one, the paths to its leaves would take a gigabyte."""
    n = 20_000
    feature = np.tile([0, LEAF], n)
    feature[-1] = LEAF
    inner = np.arange(0, 2 * n, 2)
    left, right = (np.zeros(2 * n, np.int32) for _ in range(2))
    left[inner], right[inner] = np.minimum(inner + 2, 2 * n - 1), inner + 1
    feature[2 * n - 2] = 0
    values = np.where((feature == LEAF)[:, None], np.arange(2 * n)[:, None] % 2 == [0, 1], 0.0).astype(float)
    values[1::4] = values[1::4, ::-1]
    threshold = np.where(feature == LEAF, 0, np.linspace(2, -2, 2 * n)).astype(np.float32)
    trees = Trees(feature, threshold, left, right, values, np.array([0, 0]), np.array([0, 0]), np.zeros(2), "shares")
    copy = CopyClassifier(trees, np.array([0, 1]), ec.Space.normal(1))
    with pytest.raises(ExportError, match=f"its trees have {2 * n} nodes"):
        sql_text(copy, DIALECTS["sqlite"])


def test_a_weight_that_no_database_can_read_is_refused():
    copy = copy_of("boosting", "moons")
    values = copy.model.values.copy()
    values[tuple(np.argwhere(values)[0])] = 1e-320
    tiny = CopyClassifier(replace(copy.model, values=values), copy.classes, copy.space)
    with pytest.raises(ExportError, match=r"far from it, found one of 1e-320"):
        sql_text(tiny, DIALECTS["sqlite"])
