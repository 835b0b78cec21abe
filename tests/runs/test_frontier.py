"""The frontier: copies of every family in several sizes, from what one run has paid for."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import ectype as ec
from ectype.cli import cli
from ectype.errors import DirectoryError, SettingError
from ectype.plan.settings import BLEND, FAMILIES
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
QUICK = {"budget": 300, "schedule": ec.training.steps(100), "repeat": 0, "certificate_n": 400}


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_lessons):
    asked = []

    def original(rows):
        asked.append(len(rows))
        return disc(rows)

    path = tmp_path_factory.mktemp("frontier") / "run"
    ec.copy_classifier(original, PLANE, to="tree", out=path, **QUICK)
    return path, asked


@pytest.fixture(scope="module")
def table(run):
    path, asked = run
    before = len(asked)
    found = ec.frontier(path)
    assert len(asked) == before  # nothing is asked
    return found


def test_every_family_is_there_in_growing_sizes(table):
    assert set(table["family"]) == {BLEND, *FAMILIES}
    (blend,) = table[table["family"] == BLEND].itertuples()
    assert (blend.size, blend.teacher) == ("", "nobody")
    assert blend.fidelity > 0.95
    assert set(table["teacher"]) == {"nobody", BLEND}
    assert table[table["family"] == "mlp"]["size"].tolist() == ["8", "32-16", ""]
    trees = table[table["family"] == "tree"]
    assert trees["bytes"].is_monotonic_increasing
    assert trees["size"].tolist()[:2] == ["4 leaves", "8 leaves"]
    assert trees["fidelity"].iloc[-1] > trees["fidelity"].iloc[0] + 0.02
    for family in ("forest", "boosting"):
        held = table[(table["family"] == family) & table["size"].str.endswith("bytes")]
        assert (held["bytes"] <= held["size"].str.split().str[0].astype(int)).all()
    assert (table["lower"] < table["fidelity"]).all()
    assert (table["ms"] > 0).all()


def test_nothing_smaller_beats_what_is_marked(table):
    for column in ("bytes", "ms"):
        for _, one in table.iterrows():
            smaller = table[(table[column] <= one[column]) & (table["lower"] > one["lower"])]
            assert one[f"best_by_{column}"] == smaller.empty
    assert table["best_by_bytes"].sum() >= 2


def test_the_command_prints_writes_and_draws(run):
    path, _ = run
    shown = CliRunner().invoke(cli, ["frontier", str(path), "--family", "tree", "--family", "linear"])
    assert shown.exit_code == 0, shown.output
    assert "16 leaves" in shown.output
    assert set(pd.read_csv(path / "frontier.csv")["family"]) == {"tree", "linear"}
    assert (path / "frontier.svg").read_text().startswith("<svg")
    document = json.loads(CliRunner().invoke(cli, ["frontier", str(path), "--family", "linear", "--json"]).stdout)
    assert [point["family"] for point in document["points"]] == ["linear"]
    again = ec.load(path)  # the run is as it was
    assert again.copy.predict(np.zeros((1, 2))).tolist() == [True]


def test_what_has_no_frontier(tmp_path, run):
    result = ec.load(run[0])
    result.save(tmp_path / "saved")
    with pytest.raises(DirectoryError, match="expected a ledger, found nothing; name the directory of a run"):
        ec.frontier(tmp_path / "saved")
    with pytest.raises(SettingError, match="families: expected one of"):
        ec.frontier(run[0], ["svm"])
    with pytest.raises(DirectoryError):
        ec.frontier(tmp_path / "nowhere")
