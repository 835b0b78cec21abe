"""Wherever fidelity stands first, the worst label with its count and the majority baseline stand beside it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype.certificate.certificate import Bound, Certificate
from ectype.errors import EctypeWarning
from ectype.fleet import states
from ectype.report import model_card

pytestmark = pytest.mark.usefixtures("small_lessons")
MODELS = """
import numpy as np

def rare(rows):
    score = np.asarray(rows)[:, 0] + 0.3 * np.asarray(rows)[:, 1]
    return np.where(score > 2, "fraud", np.where(score > 1.4, "odd", "ok"))
"""
LABELS = ["fraud", "never", "odd", "ok"]
SPACE = ("--space", "normal:4", "--classes", ",".join(LABELS))
SMALL = (
    "--preset",
    "fast",
    "--budget",
    90,
    "--certificate-n",
    400,
    "--space",
    "normal:4",
    "--classes",
    ",".join(LABELS),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("beside")
    (path / "raremodels.py").write_text(MODELS)
    return path


@pytest.fixture(scope="module")
def copied(folder, small_lessons):
    """What `ectype copy` prints, and the run."""
    said = run_command("copy", "raremodels:rare", "--out", "run", *SMALL, cwd=folder)
    assert said.returncode == 0, said.stderr
    return said.stdout, ec.load(folder / "run")


def found(result):
    """The worst label with its count, and the share of the commonest label, counted from the table of classes."""
    counts = {label: (round(one.estimate * one.n), one.n) for label, one in result.certificate.per_class.items()}
    worst = min(counts, key=lambda label: counts[label][0] / counts[label][1])
    return worst, *counts[worst], max(n for _, n in counts.values()) / result.certificate.n


def is_said(text, result):
    worst, agreed, n, baseline = found(result)
    flat = " ".join(text.split())
    assert f"Its worst label is {worst!r}: it agrees on {agreed} of the {n} rows with it." in flat
    assert f"Always answering the commonest, 'ok', would agree on {baseline:.1%}." in flat
    assert "Not measured, as none of the rows had them: 'never'." in flat


# --- the rule -------------------------------------------------------------------------------------------------------


def certificate(**counts):
    parts = {label: Bound(agreed / n, 0.0, n) for label, (agreed, n) in counts.items()}
    n = sum(bound.n for bound in parts.values())
    return Certificate(sum(agreed for agreed, _ in counts.values()) / n, 0.0, 0.95, n, parts)


@pytest.mark.parametrize(
    ("counts", "worst"),
    [
        ({"ok": (900, 900), "fraud": (9, 17), "odd": (80, 83)}, "fraud"),
        ({"ok": (900, 900), "few": (0, 1), "many": (0, 5)}, "many"),  # as bad, and better known
        ({"ok": (900, 900), "few": (3, 3)}, "few"),  # as good, and less known
        ({"ok": (900, 900), "few": (0, 1), "many": (9, 17)}, "few"),  # its count says how little that is
    ],
)
def test_the_worst_label_is_the_one_with_the_lowest_share(counts, worst):
    proof = certificate(**counts)
    assert (proof.worst.label, proof.worst.agreed, proof.worst.n) == (worst, *counts[worst])
    assert (proof.baseline.label, proof.baseline.estimate) == ("ok", 900 / proof.n)


def test_a_copy_no_better_than_the_commonest_label_is_said_to_be():
    constant, better = certificate(ok=(942, 942), fraud=(0, 58)), certificate(ok=(942, 942), fraud=(1, 58))
    assert (constant.beats_baseline, better.beats_baseline) == (False, True)
    assert "The copy is no better than that." in " ".join(str(constant).split())
    assert "no better" not in str(better)
    assert "baseline 0.9420, which is not beaten" in repr(constant)
    assert "The copy is no better than that." in constant._repr_html_()


def test_labels_of_many_letters_fit_on_a_line():
    proof = certificate(**{"a" * 900: (90, 100), "b" * 900: (9, 17)}).among(["c" * 900])
    assert f"'{'b' * 36}..., 9 of 17" in repr(proof)
    assert len(str(proof).split("\n\n")[0]) < 500
    assert len(repr(proof)) < 250


def test_a_certificate_without_classes_has_neither():
    bare = Certificate(0.9, 0.8, 0.95, 100)
    assert (bare.worst, bare.baseline, bare.beats_baseline) == (None, None, True)
    assert Certificate.from_json(bare.as_json()) == bare


def test_of_a_stratified_certificate_both_come_from_the_plain_sample():
    sign = ec.Original(lambda rows: rows[:, 0] > 1.2, [False, True])
    copy = ec.copy_classifier(sign, ec.Space.normal(3), preset="fast", budget=90, certificate_n=0, repeat=0).copy
    proof = ec.certify(copy, sign, ec.Space.normal(3), n=1000)
    assert proof.design == "stratified"
    assert proof.baseline.n == proof.sampled < proof.n
    assert f"of the {proof.worst.n} rows with it of the {proof.sampled} that are a plain sample" in str(proof).replace(
        "\n", " "
    )


# --- where it stands ------------------------------------------------------------------------------------------------


def test_what_a_result_and_a_certificate_print(copied):
    text, result = copied
    for said in (text, str(result), str(result.certificate), result._repr_html_().replace("&#x27;", "'")):
        is_said(said, result)
    worst, agreed, n, baseline = found(result)
    for short in (repr(result), repr(result.certificate)):
        assert f"worst label {worst!r}, {agreed} of {n}, baseline {baseline:.4f}, not measured: 'never'" in short


def test_fields_for_programs(folder, copied):
    _, result = copied
    worst, agreed, n, baseline = found(result)
    certified = run_command("certify", "run", "raremodels:rare", "--n", 300, "--json", cwd=folder)
    for document in (result.summary()["certificate"], json.loads(certified.stdout)["certificate"]):
        assert document["absent"] == ["never"]
        assert {"label", "agreed", "n", "estimate"} == set(document["worst"])
        assert document["baseline"]["label"] == "ok"
    document = result.summary()["certificate"]
    assert document["worst"] == {"label": worst, "agreed": agreed, "n": n, "estimate": agreed / n}
    assert document["baseline"]["estimate"] == baseline


def test_a_run_of_an_earlier_version_has_them_too(folder, copied):
    _, result = copied
    content = json.loads((folder / "run" / "run.json").read_text())["certificate"]
    for name in ("worst", "baseline", "absent"):
        del content[name]
    assert Certificate.from_json(content).among(LABELS) == result.certificate


def test_what_certify_prints_of_own_rows_too(folder, copied):
    rows = ec.Space.normal(4).sample(200, np.random.default_rng(0))
    pd.DataFrame(rows, columns=ec.Space.normal(4).names).to_csv(folder / "rows.csv", index=False)
    said = run_command("certify", "run", "raremodels:rare", "--n", 300, "--data", "rows.csv", cwd=folder)
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("Its worst label is") == 2
    assert said.stdout.count("Not measured, as none of the rows had them: 'never'.") == 2


def test_the_page_of_a_comparison_counts_its_own_queries(folder, copied):
    _, result = copied
    made = sum(result.queries.values())
    for more, n in (((), 300), (("--data", "rows.csv"), 500)):
        run_command("certify", "run", "raremodels:rare", "--n", 300, *more, "--report", "page.html", cwd=folder)
        page = (folder / "page.html").read_text()
        assert f"Answers paid for</span><strong>{made + n:,}</strong>" in page
        assert ">Queries for this comparison</th>" in page


def test_a_remake_prints_those_of_the_new_copy(folder, copied):
    said = run_command("remake", "run", "--to", "tree", "--max-leaves", 2, "--out", "tree", cwd=folder)
    assert said.returncode == 0, said.stderr
    is_said(said.stdout, ec.load(folder / "tree"))


def test_the_page_and_the_card(folder, copied):
    _, result = copied
    worst, agreed, n, baseline = found(result)
    page = (folder / "run" / "report.html").read_text().replace("&#39;", "'")
    assert f"Its worst label is {worst!r}: it agrees on {agreed} of the {n} rows with it." in page
    assert f"would agree on {100 * baseline:.1f} %" in page
    text = model_card(folder / "run")
    head = next(line for line in text.splitlines() if line.startswith("| fidelity |"))
    assert f"Its worst label is {worst!r}: it agrees on {agreed} of the {n} rows with it." in head
    assert f"{baseline:.1%}" in head


def test_the_frontier_marks_what_is_no_better_than_the_commonest_label(folder, copied):
    _, result = copied
    baseline = found(result)[-1]
    said = run_command("frontier", "run", "--family", "boosting", "--family", "linear", cwd=folder)
    assert said.returncode == 0, said.stderr
    table = pd.read_csv(folder / "run" / "frontier.csv")
    assert (table["baseline"] == baseline).all()
    assert (table["beats_baseline"] == (table["fidelity"] > baseline)).all()
    assert set(table["beats_baseline"]) == {False, True}
    lines = [line for line in said.stdout.splitlines() if " boosting " in line or " linear " in line]
    for line, one in zip(lines, table.itertuples(), strict=True):
        assert f"{one.worst_label!r}, {one.worst_agreed} of {one.worst_n}" in line
        assert ("no better than baseline" in line) == (not one.beats_baseline)
    assert f"always answering the commonest label has {baseline:.4f} on the same rows" in said.stdout


def test_a_fleet_has_them_in_its_lines_table_and_page(folder, copied):
    (folder / "FLEET.toml").write_text(
        '[defaults]\nspace = "normal:4"\nbudget = 90\ncertificate_n = 400\npreset = "fast"\n'
        '[[model]]\nname = "rare"\noriginal = "raremodels:rare"\n'
        f"classes = {LABELS}\ntarget = 0.999\n"
    )
    out = run_command("fleet", "FLEET.toml", "--out", "fleet", "--workers", 1, cwd=folder)
    assert out.returncode == 1, out.stderr  # the target is missed
    result = ec.load(folder / "fleet" / "rare" / "copy-1")
    worst, agreed, n, baseline = found(result)
    assert f"worst label {worst!r}, {agreed} of {n}, baseline {baseline:.4f}, not measured: 'never'" in out.stderr
    assert f"{worst!r}, {agreed} of {n}" in out.stdout
    page = (folder / "fleet" / "index.html").read_text().replace("&#39;", "'")
    assert f"{worst!r}, {agreed} of {n}" in page
    assert f"{100 * baseline:.1f} %" in page
    (state,) = states(folder / "fleet")
    assert state.fidelity["worst"] == {"label": worst, "agreed": agreed, "n": n, "estimate": agreed / n}
    assert state.proof.baseline.estimate == baseline


def test_the_demo_has_a_column_of_worst_labels(copied, folder):
    said = run_command("demo", "--budget", 200, "--out", "demo", cwd=folder)
    assert said.returncode == 0, said.stderr
    worst = ec.load(folder / "demo").certificate.worst
    assert f"{worst.label}, {worst.agreed} of {worst.n}" in said.stdout
    assert "always answering the commonest label" in said.stdout


def test_a_fresh_process_prints_it(folder, copied):
    code = "import ectype as ec; print(ec.load('run'))"
    said = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    is_said(said.stdout, copied[1])


def test_a_copy_of_one_label_alone_is_told_apart_from_a_good_one():
    always = ec.Original(lambda rows: np.full(len(rows), "ok"), name="always")
    with pytest.warns(EctypeWarning, match="every one of the first"):
        result = ec.copy_classifier(always, ec.Space.normal(2), preset="fast", budget=60, certificate_n=200, repeat=0)
    assert result.certificate.estimate == 1.0
    assert "The copy is no better than that." in " ".join(str(result).split())
