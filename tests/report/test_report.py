import json
import re
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype._kernel import quantile_pieces
from ectype.algorithm.mlp import MLP, Network
from ectype.certificate.certificate import Bound
from ectype.certificate.diagnosis import Diagnosis
from ectype.models import rbf
from ectype.models.base import size_of
from ectype.models.blend import Blend
from ectype.models.capacity import Capacity
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import FamilyLimits, fit_boosting
from ectype.original import Labels
from ectype.report import PaidAnswers, write_report
from ectype.report._differences import flip_matrix
from ectype.report._page import page_file
from ectype.runs.decision_grid import COLOURS, PIXELS
from ectype.space import Encoding
from problems import disc

# The sections that answers are needed for.
READ_OFF = ("differ", "drivers")
NASTY = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def result():
    original = ec.Original(lambda rows: np.where(disc(rows), NASTY, "out & about"), name="disc")
    return ec.copy_classifier(original, ec.Space.normal(2), budget=300, schedule=20, certificate_n=200)


def test_names_and_labels_are_escaped(result, tmp_path):
    page = write_report(tmp_path / "page.html", {NASTY: result}, title=NASTY).read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "out &amp; about" in page


def test_the_same_run_gives_the_same_page(result, tmp_path):
    pages = [write_report(tmp_path / name, {"a": result}, title="t").read_bytes() for name in ("1.html", "2.html")]
    assert pages[0] == pages[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.html", "2.html"]


def test_the_page_of_a_run_in_memory_is_as_whole_as_that_of_a_directory(tmp_path):
    """Its answers are nowhere else, and the page is read off them."""
    original = ec.Original(lambda rows: np.where(disc(rows), "in", "out"), name="disc")
    settings = {"budget": 100, "schedule": 2, "certificate_n": 200}
    pages = []
    for more in ({}, {"out": tmp_path / "run"}):
        found = ec.copy_classifier(original, ec.Space.normal(2), **settings, **more)
        pages.append(found.report(tmp_path / "page.html").read_text())
    parts = [[re.search(rf'<section id="{name}".*?</section>', page, re.S)[0] for page in pages] for name in READ_OFF]
    assert all(one == other for one, other in parts)
    assert "All charts have one scale" in pages[0]
    assert "fitted to the same answers" in pages[0]


def test_answers_that_were_let_go_are_not_claimed(result, tmp_path):
    many = replace(result, queries={**result.queries, "training": 10**6})
    assert "fitted to the first 300 answers" in many.report(tmp_path / "page.html").read_text()


def test_a_page_without_answers_says_so(result, tmp_path):
    page = ec.load(result.save(tmp_path / "saved")).report(tmp_path / "page.html").read_text()
    assert "this page was written without them" in page
    assert "What drives them" not in page


def test_maps_and_plots_have_the_same_colours():
    assert re.findall(r"--r\d: (#\w+);", page_file("style.css"))[: len(COLOURS)] == list(COLOURS)


def test_the_original_is_asked_only_if_given(result, tmp_path):
    asked = []
    original = ec.Original(lambda rows: asked.append(len(rows)) or np.where(disc(rows), NASTY, "out & about"))
    without = write_report(tmp_path / "1.html", {"a": result}, title="t").read_text()
    assert not asked
    assert "of the area" not in without
    assert "of the area" in write_report(tmp_path / "2.html", {"a": result}, original=original, title="t").read_text()
    assert sum(asked) == PIXELS**2


def test_names_are_shown_as_they_are(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["cost_$_in_$", "价格"])
    original = ec.Original(lambda rows: rows.iloc[:, 0] > 0)
    result = ec.copy_classifier(original, ec.Space.from_data(table), budget=100, schedule=2, certificate_n=0)
    page = write_report(tmp_path / "page.html", {"sequential": result}, title="t").read_text()
    assert "cost_$_in_$" in page
    assert "价格" in page


@pytest.mark.parametrize("d", [1, 5])
def test_other_dimensions_have_no_map_and_no_certificate_is_fine(d, tmp_path):
    result = ec.copy_classifier(
        lambda rows: rows[:, 0] > 0, ec.Space.normal(d), budget=200, schedule=5, certificate_n=0
    )
    page = write_report(tmp_path / "page.html", {"sequential": result}, title="t").read_text()
    assert "Decisions over the plane" not in page
    assert "No certificate was asked for" in page
    assert "points kept" in page
    assert "Where they differ" not in page


def test_where_they_differ_is_shown_and_escaped(tmp_path, rng):
    table = pd.DataFrame({"kind": rng.choice(["plain", NASTY], 200), "b<i>g": rng.normal(size=200)})
    original = ec.Original(lambda rows: np.where((rows["kind"] == NASTY) & (rows["b<i>g"] < 2), NASTY, "out & about"))
    result = ec.copy_classifier(original, ec.Space.from_data(table), budget=100, schedule=1, certificate_n=500)
    proof = ec.certify(lambda rows: ["out & about"] * len(rows), original, result.space, n=500)
    result = replace(result, certificate=replace(proof, margin=0.5, near=Bound(0.9, 0.8, 7), away=Bound(1.0, 0.9, 8)))
    page = write_report(tmp_path / "page.html", {"a": result}, title="t").read_text()
    assert f"Where they differ: {proof.differences.n} of 500" in page
    for words in ("Flip matrix", "kind is &lt;script&gt;", "near the boundary", "b&lt;i&gt;g", "hold all at once"):
        assert words in page
    assert "<script>alert" not in page
    assert "<i>" not in page


def test_many_labels_are_listed_by_pairs(result, tmp_path):
    proof = ec.certify(
        lambda rows: np.arange(len(rows)) % 15, lambda rows: (np.arange(len(rows)) + 1) % 15, ec.Space.normal(2), n=90
    )
    assert flip_matrix(proof) is None
    page = write_report(tmp_path / "page.html", {"a": replace(result, certificate=proof)}, title="t").read_text()
    assert '<tr><td>1</td><td>0</td><td class="n">6</td></tr>' in page


def test_the_flip_matrix_adds_up():
    def copy(rows):
        return np.where(rows[:, 1] > 1, 2, (rows[:, 0] > 0).astype(int))

    proof = ec.certify(copy, lambda rows: (rows[:, 0] > 0.2).astype(int), ec.Space.normal(2), n=400)
    matrix = dict(flip_matrix(proof))
    assert list(matrix) == [0, 1, 2]
    counts = {label: [cell.n for cell in cells] for label, cells in matrix.items()}
    assert sum(map(sum, counts.values())) == 400
    assert [sum(counts[label]) for label in (0, 1)] == [proof.per_class[label].n for label in (0, 1)]
    assert counts[2] == [0, 0, 0]


def test_a_missed_target_is_explained(result, tmp_path):
    diagnosis = Diagnosis("samples", "the copy needs <more>", 0.1, 0.0, None)
    missed = replace(result, diagnosis=diagnosis, settings={**result.settings, "target": 0.99})
    page = write_report(tmp_path / "page.html", {"a": missed}, title="t").read_text()
    assert "The target of 99 % was missed: the copy needs &lt;more&gt;." in page


def wide(columns, decide):
    """A copy of forty columns as large as ten thousand answers make it, that nobody took the time to train."""
    rng, rows = np.random.default_rng(0), columns.sample(700, np.random.default_rng(1))
    encoding = Encoding(columns)
    X, classes = encoding(rows), np.array(["grant", "refuse", "review"])
    y = np.searchsorted(classes, decide(columns.present(rows))).astype(np.int32)
    usual, pieces = Capacity(), quantile_pieces(X, 4)
    trees = [
        fit_boosting(X, y, 3, FamilyLimits(), 0, how)
        for how in (usual.boosting(10_000, encoding.width, 3), usual.stumps())
    ]
    networks = [MLP(width, (128, 64), 3) for width in (pieces.width, encoding.width)]
    seen = [Network(mlp, mlp.initial(rng), part, "mish") for mlp, part in zip(networks, (pieces, None), strict=True)]
    members = (*trees, *seen, rbf.fit_radial(X, y, 3, rng))
    return CopyClassifier(Blend(members, np.full(len(members), 0.3)), classes, columns)


def test_a_page_of_forty_columns_stays_small(result, tmp_path):
    made = run_path(str(Path(__file__).parents[2] / "benchmarks" / "report.py"))
    columns = made["space"]()
    decide = made["decider"](columns)
    copy = wide(columns, decide)
    proof = ec.certify(copy, decide, columns)
    rows = [columns.sample(n, np.random.default_rng(n)) for n in (10_000, 2_000)]
    answers = [(part, decide(columns.present(part))) for part in rows]
    found = replace(result, copy=copy, space=columns, certificate=proof)
    page = write_report(tmp_path / "page.html", {"a": found}, title="t", answers=PaidAnswers(found, *answers))
    text = page.read_text()
    assert size_of(copy.model) > 1_800_000
    assert page.stat().st_size <= 2_000_000
    assert text.count('class="field"') == columns.d == 40
    assert text.count('data-row="') == 100
    assert "Plain boosting" in text
    assert "What drives them" in text


def test_a_copy_that_is_too_large_is_left_out(result, tmp_path, monkeypatch):
    monkeypatch.setattr("ectype.report._try_form.MOST", 1000)
    page = write_report(tmp_path / "page.html", {"a": result}, title="t").read_text()
    assert "MB of this page, more than the 0.001 MB that are allowed" in page
    assert "<form" not in page


def test_stored_rows_are_never_shown(tmp_path, rng):
    """A table of stored answers is the user's: neither its run's page nor a certificate's holds a row of it."""
    table = pd.DataFrame({"secret": rng.normal(size=600).round(7) + 1234.5, "label": rng.choice(["a", "b"], 600)})
    table.to_csv(tmp_path / "answers.csv", index=False)
    quick = ("--budget", 100, "--certificate-n", 200, "--preset", "fast", "--out", tmp_path / "run")
    assert run_command("copy", tmp_path / "answers.csv", *quick).returncode == 0
    page = tmp_path / "certified.html"
    done = run_command("certify", tmp_path / "run", tmp_path / "answers.csv", "--report", page, "--json")
    assert json.loads(done.stdout)["report"] == str(page)
    for path in (tmp_path / "run" / "report.html", page):
        text = path.read_text()
        assert "All charts have one scale" in text  # fidelity by column
        assert "Inputs on which they differ" not in text
        assert not [value for value in table["secret"] if f"{value:.7f}" in text]


def test_what_drives_them_is_read_on_rows_that_training_never_saw():
    """Of an original that cannot be learned, a copy remembers what it was told, and else is no better than chance."""

    def noise(rows):
        return np.sin(1e6 * rows @ np.arange(1, rows.shape[1] + 1)) > 0

    result = ec.copy_classifier(noise, ec.Space.normal(4), budget=400, certificate_n=400, repeat=0, draw="random")
    paid = PaidAnswers.of(result, None)
    assert (result.copy.predict(paid.training[0]) == paid.training[1]).mean() > 0.75
    original, copy = (model.probabilities(paid.encoding(paid.held_out[0])).argmax(axis=1) for model in paid.surrogates)
    held = Labels(result.copy.classes).find(paid.held_out[1])
    assert (original == held).mean() > 0.85  # fitted to the original's answers to these very rows
    assert (copy == result.copy.predict(paid.held_out[0])).mean() > 0.85  # and to the copy's
    assert (original == copy).mean() < 0.65  # which have nothing in common
    assert replace(paid, held_out=None).surrogates is None
