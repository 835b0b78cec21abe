"""Another copy from the answers of a run: no query, and the bytes that a run for that family would have given."""

import json
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.tree import DecisionTreeClassifier

import ectype as ec
from ectype.cli import cli
from ectype.errors import DirectoryError, SettingError
from ectype.models.base import size_of
from ectype.plan.settings import BLEND, FAMILIES
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
QUICK = {"budget": 300, "schedule": ec.training.steps(100), "repeat": 0, "certificate_n": 400}


class Asked:
    """An original that counts its rows."""

    n = 0

    def predict(self, rows):
        Asked.n += len(rows)
        return disc(rows)


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_lessons):
    path = tmp_path_factory.mktemp("remade") / "run"
    ec.copy_classifier(Asked(), PLANE, out=path, **QUICK)
    return path


@pytest.mark.parametrize("to", [*FAMILIES, BLEND])
def test_the_same_bytes_as_a_run_for_that_family_and_no_query(run, tmp_path, to):
    before, files = Asked.n, {path.name: path.read_bytes() for path in run.iterdir()}
    made = ec.remake(run, to=to, out=tmp_path / "remade")
    assert Asked.n == before
    assert {path.name: path.read_bytes() for path in run.iterdir()} == files  # the run is as it was
    asked = ec.copy_classifier(Asked(), PLANE, to=to, out=tmp_path / "asked", **QUICK)
    assert made.certificate == asked.certificate
    copies = [(tmp_path / name / "copy.safetensors").read_bytes() for name in ("remade", "asked")]
    assert copies[0] == copies[1]
    again = ec.load(tmp_path / "remade")
    assert again.remade == made.remade == {"of": str(run), "sha256": again.remade["sha256"]}
    assert again.settings["to"] == to


def test_a_remade_run_is_a_run(run, tmp_path):
    tree = ec.remake(run, to="tree", max_leaves=4, out=tmp_path / "tree")
    assert len(ec.frontier(tmp_path / "tree", ["tree"])) == 1
    before = Asked.n
    ec.copy_classifier(Asked(), PLANE, to="tree", max_leaves=4, out=tmp_path / "tree", **{**QUICK, "budget": 400})
    assert Asked.n == before + 100
    assert ec.load(tmp_path / "tree").settings["stages"] == [300]
    assert size_of(ec.remake(tmp_path / "tree", max_leaves=5).copy.model) > size_of(tree.copy.model)


def test_what_it_prints_is_its_own_and_the_rest_is_said_to_be_the_others(run, tmp_path):
    parent, tree = ec.load(run), ec.remake(run, to="tree", max_leaves=4, out=tmp_path / "tree")
    trend = re.compile(r"^ +queries +fidelity$", re.MULTILINE)
    assert trend.search(str(parent))
    for result in (tree, ec.load(tmp_path / "tree")):
        assert result.trend == []
        assert not trend.search(str(result))
        said = " ".join(str(result).split())
        whose = f"Made in {result.seconds:.1f} s of the answers in {run}, without a query."
        assert f"{whose} Queries of that run: 300 to learn from, 400 for the certificate. It stopped" in said
        assert "polyline" not in result._repr_html_()
        assert result.summary()["remade"]["of"] == str(run)
        with pytest.raises(SettingError, match="rounds of this copy's own, found those of the run in"):
            result.plot("fidelity")
        page = result.report(tmp_path / "page.html").read_text()
        assert "Fidelity by queries" not in page
        assert "Stopped at" not in page
        assert f"the queries are those of the run in {run}" in page
    assert "Fidelity by queries" in parent.report(tmp_path / "page.html").read_text()


def test_constraints_and_what_cannot_be_remade(run, tmp_path):
    blind = ec.remake(run, exclude=["x1"])
    assert (blind.copy.predict([[0.3, 0.0]]) == blind.copy.predict([[0.3, 9.0]])).all()
    own = ec.remake(run, to=DecisionTreeClassifier(max_leaf_nodes=6))
    assert own.family == "DecisionTreeClassifier"
    assert ec.remake(run, max_bytes=4000).certificate.lower < ec.load(run).certificate.lower
    with pytest.raises(SettingError, match=r"budget: expected one of to, layers, .* found a setting that decides what"):
        ec.remake(run, budget=900)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("")
    with pytest.raises(DirectoryError, match="other files"):
        ec.remake(run, to="tree", out=tmp_path / "full")
    moved = ec.refresh(run, lambda rows: disc(np.asarray(rows) - 0.5), out=tmp_path / "refreshed", certificate_n=100)
    assert moved.refreshed["verdict"] == "changed"
    with pytest.raises(DirectoryError, match="expected a run that copied its original from scratch"):
        ec.remake(tmp_path / "refreshed", to="tree")


def test_rows_of_ones_own_count_as_they_did(tmp_path):
    rows = np.random.default_rng(3).normal(size=(300, 2))
    settings = {**QUICK, "certificate_n": 100}
    ec.copy_classifier(Asked(), PLANE, rows=rows, out=tmp_path / "run", **settings)
    tree = ec.copy_classifier(Asked(), PLANE, rows=rows, to="tree", out=tmp_path / "tree", **settings)
    remade = ec.remake(tmp_path / "run", to="tree", out=tmp_path / "remade")  # the run knows which rows were whose
    copies = [(tmp_path / name / "copy.safetensors").read_bytes() for name in ("remade", "tree")]
    assert copies[0] == copies[1]
    assert remade.certificate.n == tree.certificate.n
    found = ec.load(tmp_path / "remade").copy.training_rows
    for name in ("taught", "candidates"):
        np.testing.assert_array_equal(getattr(found, name), getattr(tree.copy.training_rows, name))


def test_the_command_takes_a_row_of_the_frontier(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    path = str(tmp_path / "run")

    def ran(*arguments):
        return CliRunner().invoke(cli, list(arguments))

    early = ran("remake", path, "--out", str(tmp_path / "new"), "--take", "2")
    assert isinstance(early.exception, SettingError)
    assert "ectype frontier" in str(early.exception)
    table = json.loads(ran("frontier", path, "--family", "tree", "--json").stdout)["points"]
    found = ran("remake", path, "--out", str(tmp_path / "new"), "--take", "2", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["family"] == "tree"
    assert document["certificate"]["estimate"] == table[1]["fidelity"]
    assert (tmp_path / "new" / "report.html").is_file()
    shown = ran("remake", path, "--out", str(tmp_path / "linear"), "--to", "linear")
    assert shown.exit_code == 0, shown.output
    assert "Nothing was asked" in shown.output
    beyond = ran("remake", path, "--out", str(tmp_path / "more"), "--take", "99")
    assert "a row from 1 to" in str(beyond.exception)
