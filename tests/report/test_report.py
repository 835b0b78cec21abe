from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import understudy as us
from cases import disc
from understudy.certificate.diagnosis import Diagnosis
from understudy.certificate.values import Bound
from understudy.report import flip_matrix, write_report

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


def test_where_they_differ_is_shown_and_escaped(tmp_path, rng):
    table = pd.DataFrame({"kind": rng.choice(["plain", NASTY], 200), "b<i>g": rng.normal(size=200)})
    original = us.Original(lambda rows: np.where(rows["kind"] == NASTY, NASTY, "out & about"), name="kinds")
    result = us.copy_classifier(original, us.Space.from_data(table), budget=100, schedule=1, certificate_n=500)
    proof = us.certify(lambda rows: ["out & about"] * len(rows), original, result.space, n=500)
    result = replace(result, certificate=replace(proof, margin=0.5, near=Bound(0.9, 0.8, 7), away=Bound(1.0, 0.9, 8)))
    page = write_report(tmp_path / "page.html", {"a": result}, title="t").read_text()
    assert f"Where they differ: {proof.differences.n} of 500" in page
    for words in ("original \\ copy", "kind is &lt;script&gt;", "near the boundary", "b&lt;i&gt;g", "hold all at once"):
        assert words in page
    assert "<script" not in page
    assert "<i>" not in page


def test_many_labels_are_listed_by_pairs(result, tmp_path):
    proof = us.certify(
        lambda rows: np.arange(len(rows)) % 15, lambda rows: (np.arange(len(rows)) + 1) % 15, us.Space.normal(2), n=90
    )
    assert flip_matrix(proof) is None
    page = write_report(tmp_path / "page.html", {"a": replace(result, certificate=proof)}, title="t").read_text()
    assert '<tr><td>1</td><td>0</td><td class="n">6</td></tr>' in page


def test_the_flip_matrix_adds_up():
    def copy(rows):
        return np.where(rows[:, 1] > 1, 2, (rows[:, 0] > 0).astype(int))

    proof = us.certify(copy, lambda rows: (rows[:, 0] > 0.2).astype(int), us.Space.normal(2), n=400)
    matrix = dict(flip_matrix(proof))
    assert list(matrix) == [0, 1, 2]
    assert sum(map(sum, matrix.values())) == 400
    assert [sum(matrix[label]) for label in (0, 1)] == [proof.per_class[label].n for label in (0, 1)]
    assert matrix[2] == [0, 0, 0]


def test_a_missed_target_is_explained(result, tmp_path):
    diagnosis = Diagnosis("samples", "the copy needs <more>", 0.1, 0.0, None)
    missed = replace(result, diagnosis=diagnosis, settings={**result.settings, "target": 0.99})
    page = write_report(tmp_path / "page.html", {"a": missed}, title="t").read_text()
    assert "The target of 0.99 was missed: the copy needs &lt;more&gt;." in page
