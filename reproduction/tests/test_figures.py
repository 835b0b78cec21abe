"""Figures 1 to 6, the theorems and the cost: files of the right kinds, with the numbers of the store in them."""

import csv
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from ectype.errors import SettingError
from ectype_paper.catalogue import ExhibitOptions, exhibit
from ectype_paper.cli import command
from ectype_paper.figures.operational import PANELS, diagonal, fit, panels, table
from ectype_paper.figures.style import new_figure, spaced
from ectype_paper.figures.theorems import fitted_power
from ectype_paper.operating_points import operational_points
from ectype_paper.store import open_store, read_store
from ectype_paper.sweep import plan
from ectype_paper.units import paper_settings, run
from test_operating_points import at, one_shot

RUNS, ROUNDS = 2, 3
QUICK = ["--runs", RUNS, "--iterations", ROUNDS, "--epochs", 5]
# With so few epochs, points are dropped at large thresholds only.
DELTAS = {
    "fig3": (0.2, 0.4),
    "fig4": (0.2,),
    "fig5": (0.2, 0.4),
    "fig6": (0.2, 0.4),
    "theorems": (0.2,),
    "cost": (0.2,),
}
NAMES = ("fig1", "fig2", *DELTAS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with all of them in it; their units were run here, which saves a process for each."""
    out = tmp_path_factory.mktemp("figures")
    settings = paper_settings(ROUNDS, 5)
    options = {name: ExhibitOptions(runs=RUNS, iterations=ROUNDS, deltas=DELTAS.get(name)) for name in NAMES}
    units = [unit for name in NAMES for unit in exhibit(name).units(options[name])]
    with open_store(out, settings) as store:
        for planned in plan(list(dict.fromkeys(units)), store, settings, None):
            store.add(run(planned.task))
    for name in NAMES:
        deltas = ["--deltas", ",".join(map(str, DELTAS[name]))] if name in DELTAS else []
        made = CliRunner().invoke(command, list(map(str, [name, "--out", out, *QUICK, *deltas, "--json"])))
        assert made.exit_code == 0, made.output
        assert json.loads(made.stdout)["ran"] == 0
    return out


@pytest.fixture(scope="module")
def records(folder):
    return read_store(folder)[1]


def rows_of(folder, name):
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_written_in_all_formats(folder, name):
    assert ET.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
    page = (folder / f"{name}.md").read_text()
    assert page.startswith(f"# {exhibit(name).title}\n")
    assert f"({name}.svg)" in page
    assert all("fidelity" in row for row in rows_of(folder, name))


def test_figures_share_what_they_have_in_common():
    def units(name):
        return {*exhibit(name).units(ExhibitOptions(runs=2))}

    assert units("fig1") == units("fig2")
    assert {unit.method for unit in units("fig3") & units("fig1")} == {"pure", "online"}
    assert units("theorems") <= units("fig1") | units("fig5")
    assert {unit.delta for unit in units("fig5") & units("fig6")} == {1e-6, 1e-8, 1e-10}
    assert not units("cost") & units("theorems")


@pytest.mark.parametrize(("name", "memory"), [("fig3", "none"), ("fig5", "automatic")])
def test_curves_are_means_and_deviations_of_the_records(folder, records, name, memory):
    rows = rows_of(folder, name)
    for delta in (0.2, 0.4):
        curve = [row for row in rows if row["delta"] == str(delta)]
        found = [one for one in records if (one["delta"], one["memory"]) == (delta, memory)]
        found = [one for one in found if one["problem"] == "spirals" and one["iterations"] is None]
        assert (len(curve), len(found)) == (ROUNDS, RUNS)
        columns = {"accuracy": "accuracies", "fidelity": "fidelities", "rho": "test_rhos", "rho_kept": "rhos"}
        for column, source in {**columns, "points": "kept"}.items():
            values = np.array([one[source] for one in found])
            assert [float(row[column]) for row in curve] == pytest.approx(values.mean(axis=0), rel=1e-5)
            assert [float(row[f"{column}_std"]) for row in curve] == pytest.approx(
                values.std(axis=0), rel=1e-4, abs=1e-6
            )
        assert [row["queries"] for row in curve] == ["100", "200", "300"]


def test_thresholds_and_weights_of_memory_are_curves_of_their_own(folder):
    third = {(row["method"], row["delta"], row["memory"]) for row in rows_of(folder, "fig3")}
    assert third == {("online", "", ""), ("pure", "", ""), ("sequential", "0.2", "none"), ("sequential", "0.4", "none")}
    assert {row["memory"] for row in rows_of(folder, "fig4")} == {"0.005", "0.05", "0.1", "0.25"}
    assert {row["memory"] for row in rows_of(folder, "fig5")} == {"automatic"}
    assert any(float(row["points"]) < float(row["queries"]) for row in rows_of(folder, "fig3"))


@pytest.mark.parametrize("name", ["fig1", "fig2"])
def test_single_passes_are_there_with_their_points(folder, records, name):
    rows = [row for row in rows_of(folder, name) if row["method"] == "one-shot"]
    assert [row["queries"] for row in rows] == ["200", "500", "1000", "3000"]
    for row in rows:
        found = [one["test_rhos"][0] for one in records if one["points"] == int(row["queries"])]
        assert float(row["rho"]) == pytest.approx(np.mean(found), rel=1e-5)
    svg = (folder / f"{name}.svg").read_text()
    assert all(f"one-shot, n={n}" in svg for n in (200, 500, 1000, 3000))


def test_the_numbers_of_the_papers_text_are_beside_ours(folder):
    page = (folder / "fig1.md").read_text()
    ours = next(row["accuracy"] for row in rows_of(folder, "fig1") if row["queries"] == "500")
    assert f"| 1 | one-shot, 500 points: accuracy | 0.85 | {float(ours):.3f} ± " in page
    assert "online, 3000 points" not in page  # there were no more than 300
    assert "of those at t=18" not in (folder / "fig3.md").read_text()


def test_points_used_are_cut_at_400_in_figure_3_only(folder, records):
    def top(name, options):
        shown = exhibit(name)
        units = shown.units(options)
        found = {tuple(one[part] for part in ("method", "delta", "memory", "repetition")): one for one in records
                 if one["problem"] == "spirals" and one["points"] is None and one["iterations"] is None}  # fmt: skip
        ordered = [found[unit.method, unit.delta, unit.memory, unit.repetition] for unit in units]
        ordered = [{**one, "kept": [kept * 10 for kept in one["kept"]]} for one in ordered]
        (axes,) = [axes for axes in shown.make(ordered, options).figure.axes if "S_t" in axes.get_ylabel()]
        return axes.get_ylim()[1]

    options = ExhibitOptions(runs=RUNS, iterations=ROUNDS, deltas=(0.2, 0.4))
    assert top("fig3", options) == 400
    assert top("fig5", options) > 1000


def test_the_theorems_show_what_moved_and_the_risk(folder, records):
    rows = rows_of(folder, "theorems")
    assert [row["method"] for row in rows] == ["pure"] * ROUNDS + ["sequential"] * ROUNDS
    pure = [one for one in records if one["method"] == "pure" and one["iterations"] is None]
    assert float(rows[2]["moved"]) == pytest.approx(np.mean([one["moved"][2] for one in pure]), rel=1e-5)
    assert float(rows[1]["risk"]) == pytest.approx(np.mean([one["test_risks"][1] for one in pure]), rel=1e-5)


def test_the_cost_is_of_all_iterations_so_far(folder, records):
    rows = [row for row in rows_of(folder, "cost") if row["method"] == "sequential"]
    found = [one["times"] for one in records if one["iterations"] == ROUNDS and one["method"] == "sequential"]
    assert len(found) == RUNS
    so_far = np.cumsum(found, axis=1).mean(axis=0)
    assert [float(row["seconds"]) for row in rows] == pytest.approx(so_far, rel=1e-5)
    exponent = fitted_power(so_far.tolist())[0]
    assert float(rows[0]["power"]) == pytest.approx(exponent, rel=1e-3)
    assert f"t^{exponent:.2f}" in (folder / "cost.md").read_text()
    kept = [one["kept"] for one in records if one["iterations"] == ROUNDS and one["method"] == "sequential"]
    assert [float(row["work"]) for row in rows] == pytest.approx(np.cumsum(kept, axis=1).mean(axis=0), rel=1e-5)


def test_the_cost_has_iterations_of_its_own_and_the_others_the_papers():
    assert {unit.iterations for unit in exhibit("cost").units(ExhibitOptions(runs=1, iterations=100))} == {100}
    assert exhibit("cost").iterations == 100
    assert {unit.iterations for unit in exhibit("theorems").units(ExhibitOptions(runs=1))} == {None}


@pytest.mark.parametrize("k", [0.8, 1, 2, 2.5])
def test_a_power_is_found_in_the_later_half(k):
    seconds = [0.5 * t**k for t in range(1, 41)]
    disturbed = [9.0] * 20 + seconds[20:]
    assert fitted_power(disturbed) == (pytest.approx(k), pytest.approx(0.5))
    assert fitted_power([3.0])[0] == 0


def test_figure_6_is_of_the_thresholds_of_every_toy(folder, records):
    rows = rows_of(folder, "fig6")
    assert [(row["problem"], row["delta"]) for row in rows] == [
        (name, delta) for name in ("spirals", "yin-yang", "moons") for delta in ("0.4", "0.2")
    ]
    for row in rows:
        unit = {"problem": row["problem"], "delta": float(row["delta"]), "memory": "automatic", "iterations": None}
        found = [one for one in records if all(one[name] == wanted for name, wanted in unit.items())]
        assert len(found) == RUNS
        for name in ("accuracy", "fidelity", "eff", "conv"):
            assert float(row[name]) == pytest.approx(np.mean([one[name] for one in found]), rel=1e-5)
    for name in ("best accuracy", "best efficiency", "best convergence"):
        assert sum(name in row["point"] for row in rows) == 3


# Drawing, from records made by hand


@pytest.fixture
def points():
    records = [*one_shot(0.95), at(1e-4, 0.5, 0.99, 0.99), at(1e-6, 0.92, 0.8, 0.90)]
    return operational_points([*records, at(1e-8, 0.94, 0.5, 0.95), at(1e-10, 0.98, 0.2, 0.93)])


def places(axes, marker):
    """Where on the axes there is a marker of this many corners of a path."""
    return [tuple(c.get_offsets()[0]) for c in axes.collections if len(c.get_paths()[0].vertices) == marker]


CIRCLE, SQUARE, STAR, TRIANGLE = 26, 5, 11, 4


def test_circles_squares_and_stars_are_where_the_points_are(points):
    axes = new_figure(9, 3).subplots(1, 3)
    panels(axes, [points], ["red"], dots=False)
    assert places(axes[0], CIRCLE) == [(0.2, 0.98)]
    assert places(axes[0], SQUARE) == [(0.8, 0.92)]
    assert places(axes[1], CIRCLE) == [(0.93, 0.98)]
    assert places(axes[1], STAR) == [(0.95, 0.94)]
    assert places(axes[2], STAR) == [(0.5, 0.95)]
    assert places(axes[2], SQUARE) == [(0.8, 0.90)]
    assert [axis.get_xlabel() for axis in axes] == ["efficiency", "convergence", "efficiency"]
    assert [axis.get_ylabel() for axis in axes] == ["copy accuracy", "copy accuracy", "convergence"]


def test_lines_are_fitted_to_what_is_accurate_enough_and_reach_from_point_to_point(points):
    axes = new_figure(9, 3).subplots(1, 3)
    panels(axes, [points], ["red"])
    (line,) = axes[0].lines
    slope, start = np.polyfit([0.8, 0.5, 0.2], [0.92, 0.94, 0.98], 1)  # not 0.99, 0.5
    assert line.get_linestyle() == "--"
    assert line.get_xdata() == pytest.approx([0.2, 0.8])
    assert line.get_ydata() == pytest.approx([start + slope * 0.2, start + slope * 0.8])


def test_a_triangle_stands_for_points_that_are_the_same(points):
    axes = new_figure(9, 3).subplots(1, 3)
    panels(axes, [points], ["red"], same=lambda _, panel: panel is PANELS[1], dots=False)
    assert places(axes[1], TRIANGLE) == [(0.93, 0.98)]
    assert not axes[1].lines
    assert len(axes[0].lines) == len(axes[2].lines) == 1


def test_the_diagonal_goes_from_corner_to_corner(points):
    axes = new_figure(3, 3).subplots()
    diagonal(axes, [points], ["red"])
    assert axes.get_xlim() == axes.get_ylim()
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [list(line.get_xdata()) for line in dashed] == [list(line.get_ydata()) for line in dashed]
    assert len(dashed) == 1


def test_the_table_marks_points_and_who_is_eligible(points):
    rows = {row["delta"]: row for row in table(points)}
    assert {delta: row["point"] for delta, row in rows.items()} == {
        "0.0001": "", "1e-06": "best efficiency", "1e-08": "best convergence", "1e-10": "best accuracy"
    }  # fmt: skip
    assert [row["eligible"] for row in rows.values()] == [False, True, True, True]


def test_where_one_stands_in_for_all_it_has_all_three_names_and_none_is_eligible():
    poor = operational_points([*one_shot(1.0), at(1e-4, 0.6, 0.9, 0.99), at(1e-8, 0.7, 0.2, 0.8)])
    rows = list(table(poor))
    assert [row["point"] for row in rows] == ["", "best accuracy, best efficiency, best convergence"]
    assert not any(row["eligible"] for row in rows)
    panels(new_figure(9, 3).subplots(1, 3), [poor], ["red"])


def test_no_line_through_one_place():
    assert fit([(0.5, 0.1), (0.5, 0.9)]) is None


@pytest.mark.parametrize("heights", [[0.98, 0.99, 1.0, 0.1], [0.5] * 4, [0.1, 0.2, 0.3], [0.3, 0.31, 0.36, 0.37]])
def test_names_are_apart_and_in_order(heights):
    found = spaced(heights, 0.06)
    order = np.argsort(heights, kind="stable")
    assert np.diff(np.array(found)[order]).min() >= 0.06 - 1e-9
    assert np.mean(found) == pytest.approx(np.mean(heights))


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("fig1", {"problems": ("spirals", "moons")}, "--problems: expected one alone for this figure"),
        ("fig4", {"deltas": (1e-6, 1e-8)}, "--deltas: expected one alone"),
        ("theorems", {"deltas": (1e-6, 1e-8)}, "--deltas: expected one alone"),
    ],
)
def test_more_than_a_figure_can_show_is_refused(name, options, says):
    with pytest.raises(SettingError, match=re.escape(says)):
        exhibit(name).units(ExhibitOptions(runs=1, **options))


@pytest.mark.parametrize(("name", "units"), [("fig1", 180), ("fig2", 180), ("fig3", 150), ("fig4", 120), ("fig5", 90),
                                             ("fig6", 3 * 13 * 30), ("theorems", 60)])  # fmt: skip
def test_by_default_they_are_the_papers(name, units):
    shown = exhibit(name)
    found = shown.units(ExhibitOptions(runs=shown.runs))
    assert len(found) == len(set(found)) == units
    assert {unit.space for unit in found} == {"normal"}
    assert {unit.space for unit in shown.units(ExhibitOptions(runs=1, space="learned"))} == {"learned"}
