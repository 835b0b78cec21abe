"""Pages in a real browser: they compute what the copy answers, can be used by anybody, and keep to themselves."""

import os
import re
import socket
import warnings
from dataclasses import replace
from inspect import getsource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

import ectype as ec
from browser import opened, started
from commands import run_command
from ectype.errors import EctypeWarning
from ectype.export._verification import fresh_rows
from ectype.fleet import FleetStatus, ModelState
from ectype.fleet._page import write_page
from ectype.fleet._quotas import Spent
from ectype.models.blend import Blend
from ectype.models.sklearn_model import SklearnModel
from ectype.report import write_report
from ectype.report._differences import numbers_of
from make_copies import APART, KINDS, copy_of
from optional_packages import needs
from problems import loans

EARLIER = Path(__file__).parent.parent / "runs" / "version_0_1" / "run"


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    """Where pictures are written for people to look at."""
    named = os.environ.get("ECTYPE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def judged(rows):
    """An original that decides about loans by rules, and has gaps to decide about."""
    score = rows["income"] / 30000 - rows["debt"] / 40000 + 0.4 * rows["owner"] - 0.1 * rows["jobs"].fillna(4)
    return np.where(score - 0.5 * (rows["region"] == "west") > 1, "grant", np.where(score > 0.4, "ask", "refuse"))


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_lessons):
    """A run on a table with gaps and categories, and its page."""
    path = tmp_path_factory.mktemp("report") / "run"
    space = ec.Space.from_data(loans(1000, 0)[0])
    original = ec.Original(judged, name="judged")
    result = ec.copy_classifier(original, space, budget=400, certificate_n=800, exclude=["employer"], out=path)
    return result, write_report(path / "report.html", {"sequential": result}, title="Loans")


@pytest.fixture(scope="module")
def plain(small_lessons):
    """A result whose copy and space others take the place of."""
    return ec.copy_classifier(lambda rows: rows[:, 0] > 0, ec.Space.normal(1), budget=60, certificate_n=0)


@pytest.mark.parametrize("family", [*KINDS, "a power of a forest"])
def test_the_page_answers_what_the_copy_answers(family, plain, browser, tmp_path):
    """A thousand rows with gaps and unknown levels, of a space with every kind of column."""
    copy = copy_of("forest" if family not in KINDS else family, "odd")
    if family not in KINDS:
        copy = type(copy)(Blend((copy.model,), np.array([0.7])), copy.classes, copy.space)
    page = write_report(tmp_path / "page.html", {"a": replace(plain, copy=copy, space=copy.space)}, title=family)
    rows = fresh_rows(copy, 1000, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EctypeWarning)  # that there are unknown levels
        matrix, expected = copy.space.read(rows, "test"), copy.predict_proba(rows)
    with opened(browser, page) as (tab, heard):
        found = np.array(tab.evaluate("rows => ectype.score(rows)", [numbers_of(row) for row in matrix.tolist()]))
        assert "Checked: on 24 rows" in tab.text_content("#check")
    assert not heard
    assert (matrix < 0).any()
    assert np.isnan(matrix).any()
    np.testing.assert_allclose(found, expected, rtol=0, atol=APART.get(family, 1e-9))
    sure = np.abs(np.diff(np.sort(expected, axis=1)[:, -2:]))[:, 0] > 1e-4
    assert (found.argmax(axis=1) == expected.argmax(axis=1))[sure].all()


def test_a_copy_that_a_page_cannot_compute_says_why(plain, browser, tmp_path, rng):
    X = rng.normal(size=(50, 1)).astype(np.float32)
    copy = type(plain.copy)(
        SklearnModel(KNeighborsClassifier().fit(X, X[:, 0] > 0), 2), plain.copy.classes, plain.space
    )
    page = write_report(tmp_path / "page.html", {"a": replace(plain, copy=copy)}, title="t")
    with opened(browser, page) as (tab, heard):
        assert "KNeighborsClassifier of scikit-learn, kept as it is" in tab.text_content("#try")
        assert tab.query_selector("form") is None
    assert not heard


# What is not to be seen whole in a table or a figure, but for what scrolls and what only screen readers have.
CUT = """() => [...document.querySelectorAll("caption, figcaption, th, td, label, svg text")]
  .filter((one) => !one.closest(".hidden, .scroll"))
  .filter((one) => {
    const [box, svg] = [one.getBoundingClientRect(), one.closest("svg")?.getBoundingClientRect()];
    if (svg) return box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 1;
    return one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0;
  })
  .map((one) => one.textContent)"""


def read_by_anybody(browser, page, picture, width, theme):
    """Opened whole, photographed, and looked at by axe-core."""
    axe = needs("axe_playwright_python.sync_playwright").Axe()
    with opened(browser, page, width, theme) as (tab, heard):
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        tab.screenshot(path=picture, full_page=True)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate(CUT) == []
        found = axe.run(tab).response["violations"]
        assert not heard
    grave = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert not grave


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_anybody_can_read_it(run, browser, shots, width, theme):
    read_by_anybody(browser, run[1], shots / f"report-{width}-{theme}.png", width, theme)


# Names that nobody would choose, and somebody has.
LONG = ("the_amount_that_was_declared_in_cents", "DaysSinceTheLastLetterThatWasAnswered", "leave_it_to_those_who_know")


PROOF = {"estimate": 0.9912, "lower": 0.9871, "confidence": 0.95, "n": 2000}
KNOWN = {"fidelity": PROOF, "family": "blend", "bytes": 215_000, "queries": 3000, "target": 0.97}
STATES = (
    ModelState(
        "scores-of-the-northern-branch", "failed", "http://10.0.0.1/v2/models/north: expected an answer, found 503"
    ),
    ModelState(
        "churn", "changed", "12 of 300 answers changed", copy="churn/copy-1", checked="2026-11-17T02:00:11", **KNOWN
    ),
    ModelState("credit", "done", copy="credit/copy-2", checked="2026-11-17T02:00:12", **KNOWN),
)


@pytest.fixture(scope="module")
def pages(run, tmp_path_factory):
    """The other pages: of a certificate, of a refresh, of a run over two columns, and of a fleet."""
    folder = tmp_path_factory.mktemp("pages")
    source = f"import numpy as np\n\n\n{getsource(judged)}"
    (folder / "today.py").write_text(source)
    (folder / "changed.py").write_text(source.replace("> 0.4", "> 0.7"))
    rows = loans(300, 1)[0]
    rows.to_csv(folder / "rows.csv", index=False)
    copy = run[1].parent
    certified = ("certify", copy, "today:judged", "--n", 400, "--data", "rows.csv", "--report", "certify.html")
    refreshed = ("refresh", copy, "changed:judged", "--out", "new", "--certificate-n", 400, "--budget", 300)
    for command in (certified, refreshed):
        done = run_command(*command, cwd=folder)
        assert done.returncode == 0, done.stderr
    plane = ec.Original(lambda rows: np.where(rows[LONG[0]] > rows[LONG[1]], "in", LONG[2]), name="diagonal")
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=LONG[:2])
    found = ec.copy_classifier(plane, ec.Space.from_data(table), budget=100, certificate_n=300, preset="fast")
    found.report(folder / "plane.html", plane)
    return {
        "certify": folder / "certify.html",
        "refresh": folder / "new/report.html",
        "plane": folder / "plane.html",
        "fleet": write_page(folder, FleetStatus(tuple(STATES), Spent("2026-11", 1_234_567, 98.5))),
    }


@pytest.mark.parametrize(
    ("name", "width", "theme", "says"),
    [
        ("certify", 390, "dark", ["On your own rows", "What drives them", "compared with today:judged"]),
        ("refresh", 390, "light", ["What changed in the original", "What the copy gets wrong, before and after"]),
        ("fleet", 390, "dark", ["2 of 3 need attention", "1,234,567", 'href="churn/copy-1/report.html"', "98.50"]),
        ("fleet", 1280, "light", ["the original answers otherwise than when it was copied"]),
        ("plane", 390, "light", ["of the area"]),
        ("plane", 1280, "dark", ["Where they differ: ", "of the area", "What drives them"]),
    ],
)
def test_anybody_can_read_the_other_pages(pages, browser, shots, name, width, theme, says):
    read_by_anybody(browser, pages[name], shots / f"{name}-{width}-{theme}.png", width, theme)
    text = pages[name].read_text()
    assert all(words in text for words in says)


def test_examples_sort_and_filter(run, browser):
    with opened(browser, run[1]) as (tab, heard):
        rows = tab.locator("#examples tbody tr:visible")
        whole = rows.count()
        assert whole == run[0].certificate.differences.n > 5
        place = [head.strip() for head in tab.locator("#examples thead th").all_text_contents()].index("income")

        def values():
            return [float(row.locator("td").nth(place).text_content().replace(",", "")) for row in rows.all()]

        head = tab.get_by_role("button", name="income", exact=True)
        head.focus()
        tab.keyboard.press("Enter")
        assert values() == sorted(values())
        head.click()
        assert values() == sorted(values(), reverse=True)
        assert tab.locator("#examples th[aria-sort=descending]").text_content().strip() == "income"
        tab.select_option("#filter-original", "grant")
        left = rows.count()
        assert 0 < left < whole
        assert {row.locator("td").nth(1).text_content() for row in rows.all()} == {"grant"}
        assert tab.text_content("#shown") == f"{left} of {whole} rows"
        tab.fill("#search", "no such thing")
        assert rows.count() == 0
        assert not heard


def test_a_row_is_tried(run, browser):
    """Fields change the answer at once; a gap is none of the numbers; an example fills the form."""
    copy = run[0].copy
    with opened(browser, run[1]) as (tab, heard):
        names = tab.locator(".field > label[for]").all_text_contents()
        assert names == list(copy.space.names)  # an excluded column has no field

        def field(name):
            return tab.locator(".field").nth(names.index(name))

        row = {"age": 40, "income": 52000.0, "debt": 1000.0, "owner": True, "region": "north", "grade": "B"}
        for name, value in row.items():
            if isinstance(value, (str, bool)):
                field(name).locator("select").select_option(label=str(value).lower() if value is True else value)
            else:
                field(name).locator(".box").fill(str(value))
        for jobs in (np.nan, 3.0):
            box = field("jobs").get_by_role("checkbox")
            box.check() if np.isnan(jobs) else field("jobs").locator(".box").fill(str(jobs))
            assert box.is_checked() == np.isnan(jobs)
            chances = copy.predict_proba(pd.DataFrame([{**row, "jobs": jobs}]))[0]
            assert tab.text_content("#label") == copy.classes[chances.argmax()]
            shown = tab.locator("#chances li").first.locator(".n").text_content()
            assert float(shown.split()[0]) == pytest.approx(100 * chances.max(), abs=0.06)
        slider = field("income").locator("input[type=range]")
        slider.focus()
        before = tab.text_content("#label")
        tab.keyboard.press("Home")
        least = {**row, "income": float(slider.input_value()), "jobs": 3.0}
        assert tab.text_content("#label") == copy.predict(pd.DataFrame([least]))[0] != before
        assert field("income").locator(".box").input_value() == slider.input_value()
        field("income").locator(".box").fill("")
        assert tab.text_content("#label") == "…"  # a number that must be there
        example = tab.locator("#examples tbody tr").first
        said = example.locator("td").nth(2).text_content()
        example.get_by_role("button").click()
        assert tab.text_content("#label") == said
        assert (
            tab.text_content("#told") == f"The original says {example.locator('td').nth(1).text_content()} to this row."
        )
        tab.click("#another")
        assert tab.text_content("#told") == ""
        assert not heard


def test_a_value_outside_the_space_is_marked(run, browser):
    copy = run[0].copy
    with opened(browser, run[1]) as (tab, heard):
        names = tab.locator(".field > label[for]").all_text_contents()
        assert tab.locator("#outside").is_hidden()
        row = {
            "age": 40,
            "income": 52000.0,
            "debt": 1000.0,
            "owner": True,
            "region": "north",
            "grade": "B",
            "jobs": 2.0,
        }
        for name, value in (("age", -5.0), ("income", 1e9), ("jobs", 2.5)):
            tab.click("#another")
            tab.locator(".field").nth(names.index(name)).locator(".box").fill(f"{value:g}")
            assert tab.locator("#outside").text_content().startswith(f"Outside the space: {name}. No such row was ever")
            assert tab.locator(".field.outside").count() == 1
            assert copy.outside(pd.DataFrame([{**row, name: value}])).all()
        tab.click("#another")
        tab.locator(".field").nth(names.index("region")).locator("select").select_option(label="another level")
        assert "Outside the space: region." in tab.text_content("#outside")
        tab.click("#another")
        assert tab.locator("#outside").is_hidden()
        assert not heard


DATED = """{"columns": [
 {"name": "day", "kind": "date", "low": "2020-01-01", "high": "2026-01-01", "missing": 0.1},
 {"name": "moment", "kind": "timestamp", "low": "2026-01-01T00:00:00", "high": "2026-02-01T00:00:00"}
]}"""


def test_dates_are_dates(browser, tmp_path, small_lessons):
    late = ec.Original(lambda rows: rows["day"] > pd.Timestamp("2023-03-01"), name="late")
    settings = {"budget": 300, "certificate_n": 400, "to": "tree", "out": tmp_path / "run"}
    copy = ec.copy_classifier(late, ec.Space.from_json(DATED), **settings).copy
    done = run_command("report", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    with opened(browser, tmp_path / "run" / "report.html") as (tab, heard):
        said = tab.text_content("#differ")
        assert re.search(r"up to 202\d-\d\d-\d\d", said)
        assert re.search(r"above 2026-01-2\d \d\d:00", said)
        day, moment = tab.locator(".field .box").all()
        day.fill("2025-07-01")
        moment.fill("2026-01-15T12:30:00")
        assert tab.text_content("#label") == "true"
        day.fill("2021-07-01")
        assert tab.text_content("#label") == "false"
        found = tab.evaluate("ectype.score([[18809, 1768480200]])")[0]
        row = pd.DataFrame({"day": pd.to_datetime(["2021-07-01"]), "moment": pd.to_datetime(["2026-01-15T12:30:00"])})
        assert found == pytest.approx(copy.predict_proba(row)[0].tolist())
        assert not heard


def test_the_drivers_of_another_label_are_shown(run, browser):
    with opened(browser, run[1]) as (tab, heard):
        assert "employer, which the copy does not" in tab.text_content("#drivers")
        before = tab.locator(".dependence:visible").get_attribute("data-label")
        tab.select_option("#dependence-label", "1")
        after = tab.locator(".dependence:visible").get_attribute("data-label")
        assert before != after == tab.text_content("#dependence-of")
        assert not heard


LEAVING = """async (place) => {
  const picture = Object.assign(new Image(), { src: `${place}/x.png` });
  const loaded = new Promise((done) => {
    picture.onload = () => done("loaded");
    picture.onerror = () => done("refused");
  });
  document.body.append(picture);
  return [await fetch(place).then(() => "sent", () => "refused"), await loaded];
}"""


def test_nothing_leaves_the_page_even_if_it_tried(run, browser):
    with socket.create_server(("127.0.0.1", 0)) as server, opened(browser, run[1]) as (tab, _):
        server.setblocking(False)
        place = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert tab.evaluate(LEAVING, place) == ["refused", "refused"]
        with pytest.raises(BlockingIOError):  # nobody came
            server.accept()


def test_it_prints(run, browser, shots):
    with opened(browser, run[1]) as (tab, heard):
        written = tab.pdf(path=shots / "report.pdf", format="A4")
        assert written.startswith(b"%PDF")
        tab.emulate_media(media="print")
        assert not tab.locator("#form").is_visible()
        assert not heard


def test_a_run_of_an_earlier_version_has_its_page(browser, tmp_path):
    done = run_command("report", EARLIER, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    with opened(browser, tmp_path / "page.html") as (tab, heard):
        assert tab.locator(".figure").count() == 1
        assert "Checked: on 24 rows" in tab.text_content("#check")
        assert not heard
