"""Results, certificates and spaces as people see them: on a screen, in a notebook, in a plot, as a page."""

import re
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import ectype as ec
from ectype.errors import SettingError
from problems import disc

matplotlib.use("Agg")
EVIL = "<img src=x onerror=alert(1)>"
LINES, WIDTH = 24, 100


@pytest.fixture(scope="module")
def plane():
    original = ec.Original(lambda rows: np.where(disc(rows), "in", "out"), name="disc")
    return ec.copy_classifier(original, ec.Space.normal(2), budget=300, certificate_n=300, preset="fast")


@pytest.fixture(scope="module")
def wide():
    """Forty columns, one of them with a name that is long and means harm, as are two of thirty labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 39)), columns=[f"column number {j}" for j in range(39)])
    frame[EVIL + "x" * 60 + "\x1b[31m"] = rng.choice([EVIL, "b"], 300)
    labels = np.array([EVIL, "\x1b[31mred", *(f"label {k}" for k in range(28))])
    original = ec.Original(lambda rows: labels[(ndtr(rows.iloc[:, 0]) * 29.99).astype(int)], labels, name=EVIL)
    limits = {"budget": 400, "certificate_n": 400, "preset": "fast", "target": 0.99}
    return ec.copy_classifier(original, ec.Space.from_data(frame, rules=["`column number 0` < 9"] * 9), **limits)


@pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")
@pytest.mark.parametrize("name", ["plane", "wide"])
def test_what_is_printed_fits_on_a_screen(name, request):
    result = request.getfixturevalue(name)
    for thing in (result, result.certificate, result.space, result.space.columns[0]):
        lines = str(thing).splitlines()
        assert len(lines) <= LINES
        assert max(len(line) for line in lines if EVIL not in line) <= WIDTH
        assert "\x1b" not in str(thing)
        assert len(repr(thing)) <= 300
        assert "\n" not in repr(thing)
    for number in (result.certificate.estimate, result.certificate.lower):
        assert f"{number:.4f}" in repr(result)
        assert f"{number:.4f}" in str(result.certificate)


def test_words_say_what_matters(plane):
    proof = plane.certificate
    assert "A copy of disc: mlp" in str(plane)
    assert f"on {proof.estimate:.2%} of 300 fresh rows" in str(plane).replace("\n", " ")
    assert "Queries: 300 to learn from, 300 for the certificate, 12 asked again" in str(plane)
    assert [f"{record.fidelity:.4f}" in str(plane) for record in plane.history] == [True] * len(plane.history)
    assert "the original says 'in'" in str(proof)
    assert repr(plane.space) == "Space(2 columns: x0, x1)"


def test_names_are_never_cut(wide):
    whole = EVIL + "x" * 60 + "\\x1b[31m"
    space = wide.space.without([f"column number {j}" for j in range(30)])
    assert any(line.startswith(f" {whole} ") for line in str(space).splitlines())
    assert "and 25 more" in str(wide.space)
    assert "and 6 more" in str(wide.space)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = set(), []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)


@pytest.mark.parametrize("name", ["plane", "wide"])
def test_notebooks_get_tables_and_a_picture_and_nothing_else(name, request):
    result = request.getfixturevalue(name)
    known = {"table", "thead", "tbody", "tr", "th", "td", "p"}
    drawn = {"svg", "title", "polyline", "g", "circle", "text"}
    for thing, tags in ((result, known | drawn), (result.certificate, known), (result.space, known)):
        found = Tags()
        found.feed(thing._repr_html_())
        found.close()
        assert found.tags == tags
        assert not found.open


def test_plots(plane, wide):
    fidelity, decisions = plane.plot("fidelity"), plane.plot()
    assert fidelity.get_xlabel() == "queries"
    assert fidelity.lines[0].get_xdata().tolist() == [record.queries for record in plane.history]
    assert (decisions.get_xlabel(), decisions.get_ylabel()) == ("x0", "x1")
    codes = decisions.images[0].get_array()
    assert codes[70, 70] == plane.copy.classes_.tolist().index("in")
    assert [text.get_text() for text in decisions.get_legend().get_texts()] == ["in", "out"]
    assert wide.plot(axes=fidelity) is fidelity
    with pytest.raises(SettingError, match="two columns of numbers, to draw decisions over, found 40 columns"):
        wide.plot("decisions")
    with pytest.raises(SettingError, match="expected 'fidelity' or 'decisions', found 'all'"):
        wide.plot("all")
    matplotlib.pyplot.close("all")


def test_the_page_is_written_where_it_is_asked_for(plane, tmp_path):
    page = plane.report(tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert "A copy of disc" in page.read_text()


def test_whole_numbers_are_shown_whole(rng):
    """Their quantiles lie between them."""
    space = ec.Space.from_data(pd.DataFrame({"rpm": rng.integers(800, 3000, 1500), "bar": rng.normal(size=1500)}))
    rpm, bar = (column.summary for column in space.columns)
    assert re.fullmatch(r"8\d\d to 29\d\d, median \d{4}", rpm)
    assert "." in bar


def test_a_copy_whose_rows_measured_others_says_what_picking_by_them_is_worth(tmp_path):
    original, space = ec.Original(lambda rows: rows[:, 0] > 0, name="sign"), ec.Space.normal(1)
    settings = {"preset": "fast", "certificate_n": 200, "repeat": 0.0, "out": tmp_path / "run"}
    first = ec.copy_classifier(original, space, budget=120, **settings)
    said = "picks the best of several by these figures should certify it once more"
    assert said not in " ".join(str(first).split())
    longer = ec.copy_classifier(original, space, budget=240, **settings)
    assert f"this run's copies of 120 queries. The bound holds for this copy by itself; whoever {said}" in " ".join(
        str(longer).split()
    )
    remade = ec.remake(tmp_path / "run", to="tree", out=tmp_path / "tree")
    page = remade.report(tmp_path / "p.html").read_text()
    for shown in (str(remade), ec.report.model_card(tmp_path / "tree"), page):
        assert said in " ".join(shown.split())
    changed = ec.Original(lambda rows: rows[:, 0] > 0.7, name="sign")
    again = ec.refresh(tmp_path / "run", changed, out=tmp_path / "new", check=60, budget=120)
    assert f"the copy that was refreshed. The bound holds for this copy by itself; whoever {said}" in " ".join(
        str(again).split()
    )
