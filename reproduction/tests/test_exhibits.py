"""Figures and tables by name: what is run for them, what is written, and that nothing is run twice."""

import csv
import json
import re
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from ectype_paper.catalogue import NAMES, exhibit
from ectype_paper.cli import command
from ectype_paper.unit_table import read_table
from optional_packages import needs
from page_figures import pictures

QUICK = ["--runs", "2", "--iterations", "3", "--epochs", "5", "--workers", "1"]


def invoke(*arguments):
    return CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_an_exhibit_with_a_title_and_repetitions(name):
    shown = exhibit(name)
    assert re.match(r"(Figure|Table) \d|Theorems|Cost|Statistics|Spaces|Stages|Scale", shown.title)
    assert shown.runs >= 1


def test_a_figure_is_written_in_four_formats_and_its_units_are_kept(tmp_path):
    made = invoke("fig1", "--out", tmp_path, *QUICK, "--json")
    assert made.exit_code == 0
    told = json.loads(made.stdout)
    assert (told["units"], told["before"], told["ran"]) == (12, 0, 12)
    assert ET.parse(tmp_path / "fig1.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "fig1.png").read_bytes().startswith(b"\x89PNG")
    rows = rows_of(tmp_path / "fig1.csv")
    assert {row["method"] for row in rows} == {"pure", "online", "one-shot"}
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)
    before = (tmp_path / "fig1.svg").read_bytes()
    again = json.loads(invoke("fig1", "--out", tmp_path, *QUICK, "--json").stdout)
    assert (again["before"], again["ran"]) == (12, 0)
    assert (tmp_path / "fig1.svg").read_bytes() == before


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    asked = invoke("fig9", "--out", tmp_path)
    assert asked.exit_code == 2
    assert all(name in asked.output for name in ("fig1", "sweep", "export"))
    assert not list(tmp_path.iterdir())


def test_everything_is_made_by_one_command_and_goes_on_from_what_is_there(tmp_path):
    needs("xgboost")  # the family that the paper gives wine
    some = [
        "--problems",
        "wine",
        "--deltas",
        "1e-4,1e-8",
        "--iterations",
        "2",
        "--epochs",
        "1",
        "--workers",
        "1",
        "--json",
    ]
    made = invoke("all", "--out", tmp_path, "--runs", "1", *some)
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert {f"{name}.csv" for name in NAMES} == {path.name for path in tmp_path.glob("*.csv")} - {"units.csv"}
    assert told["ran"] == told["units"] == len(read_table(tmp_path / "units.csv"))
    scale = rows_of(tmp_path / "scale.csv")
    assert {(row["queries"], row["points"]) for row in scale if row["copy"] == "single pass"} == {
        ("200", "200"),
        ("2000", "2000"),
    }
    assert {row["delta"] for row in scale if row["copy"] != "single pass"} <= {"0.0001", "1e-08", ""}
    drawn = (tmp_path / "fig6.svg").read_bytes()
    again = json.loads(invoke("all", "--out", tmp_path, "--runs", "1", *some).stdout)
    assert (again["before"], again["ran"]) == (told["units"], 0)
    assert (tmp_path / "fig6.svg").read_bytes() == drawn
    # From the rows and the table of units alone, figures and claims are made without running anything.
    names = [name for name, _ in pictures(tmp_path, ["fig2", "fig5", "fig6", "theorems"])]
    assert names == ["fig2", "fig5", "theorems", "fig6"]
