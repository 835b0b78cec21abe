import numpy as np
import pandas as pd
import pytest

import understudy as us
from conftest import disc
from understudy.report import write_report

NASTY = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def result():
    original = us.Original(lambda rows: np.where(disc(rows), NASTY, "out & about"), name="disc")
    return us.copy_classifier(original, us.Space.normal(2), budget=300, schedule=20, certificate_n=200)


def test_names_and_labels_are_escaped(result, tmp_path):
    page = write_report(tmp_path / "page.html", {NASTY: result}, title=NASTY).read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "out &amp; about" in page


def test_the_same_run_gives_the_same_page(result, tmp_path):
    pages = [write_report(tmp_path / name, {"a": result}, title="t").read_bytes() for name in ("1.html", "2.html")]
    assert pages[0] == pages[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.html", "2.html"]


def test_the_original_is_asked_only_if_given(result, tmp_path):
    asked = []
    original = us.Original(lambda rows: asked.append(len(rows)) or np.where(disc(rows), NASTY, "out & about"))
    without = write_report(tmp_path / "1.html", {"a": result}, title="t").read_text()
    assert not asked
    assert "where they differ" not in without
    assert (
        "where they differ"
        in write_report(tmp_path / "2.html", {"a": result}, original=original, title="t").read_text()
    )
    assert sum(asked) == 240 * 240


def test_names_are_shown_as_they_are(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["cost_$_in_$", "价格"])
    original = us.Original(lambda rows: rows.iloc[:, 0] > 0)
    result = us.copy_classifier(original, us.Space.from_data(table), budget=100, schedule=2, certificate_n=0)
    page = write_report(tmp_path / "page.html", {"sequential": result}, title="t").read_text()
    assert "cost_$_in_$" in page
    assert "价格" in page


@pytest.mark.parametrize("d", [1, 5])
def test_other_dimensions_have_no_map_and_no_certificate_is_fine(d, tmp_path):
    result = us.copy_classifier(
        lambda rows: rows[:, 0] > 0, us.Space.normal(d), budget=200, schedule=5, certificate_n=0
    )
    page = write_report(tmp_path / "page.html", {"sequential": result}, title="t").read_text()
    assert "Decisions over the plane" not in page
    assert "No certificate was asked for" in page
    assert "points kept" in page
