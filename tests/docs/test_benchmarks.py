"""Benchmarks run, at their smallest, and print what they promise."""

import gzip
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import run_program
from optional_packages import needs

pytestmark = pytest.mark.usefixtures("small_lessons")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(name, *arguments):
    out = run_program(BENCHMARKS / name, *arguments)
    assert out.returncode == 0, out.stderr
    return out.stdout


def run_alone(name, *arguments):
    """In a process of its own, for what has workers import it, or measures how a process starts."""
    out = subprocess.run([sys.executable, BENCHMARKS / name, *arguments], capture_output=True, text=True, check=True)
    return out.stdout


def test_engine():
    document = json.loads(run_alone("engine.py", "--quick", "--json"))
    assert set(document) == {"steps", "row", "bulk", "sgemm_gflops"}
    rows = {(row["d"], row["engine"]): row for row in document["steps"]}
    assert set(rows) == {(d, name) for d in (2, 30, 166) for name in ("ectype", "jax", "sklearn", "torch", "keras")}
    for row in rows.values():
        assert row["us"] or row["note"].startswith("not installed")
    for d in (2, 30, 166):  # it is 14 and more; this is a smoke test on a machine that is busy testing
        assert rows[d, "sklearn"]["times_ours"] > 6
    assert [row["through"] for row in document["row"]] == ["copy.predict_proba", "engine", "onnxruntime"]
    assert [row["d"] for row in document["bulk"]] == [2, 30, 166]
    assert all(row["times_onnxruntime"] > 0.5 for row in document["bulk"])


def test_spirals():
    (row,) = json.loads(run("spirals.py", "--json", "--seeds", "1", "--variants", "online"))
    assert row["kept"] == 100
    assert 0.8 < row["fidelity"] < 0.98


def test_scale():
    small, large = json.loads(run_alone("scale.py", "--quick", "--json"))
    assert (small["kept"], large["kept"]) == (1000, 2000)


def test_ledger():
    head, *lines = run("ledger.py", "--rows", "3000", "--rounds", "1").splitlines()
    assert head.split()[:2] == ["original", "direct"]
    assert [line.split()[0] for line in lines[:2]] == ["asleep", "at_work"]


def test_exports():
    needs("duckdb")
    found = json.loads(run("exports.py", "--families", "tree", "--budget", "200", "--json"))
    assert [(row["format"], row["in"]) for row in found] == [("c", "cc"), ("sql", "sqlite"), ("sql", "duckdb")]
    assert all(row["disagree"] == 0 and row["seconds"] > 0 for row in found)


def test_parity():
    small = ["--problems", "mixed", "--rows", "2000", "--budget", "200", "--single-rows", "100"]
    document = json.loads(run("parity.py", *small, "--json"))
    assert {row["family"] for row in document["parity"]} == {"mlp", "linear", "tree", "forest", "boosting"}
    assert all(row["disagree"] == 0 for row in document["parity"] if row["family"] in ("tree", "forest"))
    assert all(row["ratio"] > 1 for row in document["speed"]["rounds"])


def test_keeping():
    without, kept = json.loads(run_alone("keeping.py", "--seconds", "0.5", "--rounds", "1", "--json"))
    assert [row["errors"] for row in (without, kept)] == [0, 0]
    assert (without["keep"], kept["keep"], kept["lost"], kept["wrong"]) == ("no", "yes", 0, 0)
    assert kept["kept"] == kept["answered"] == 100 - kept["failed"]


@pytest.mark.parametrize("only", ["copy", "certify"])
def test_kills(only):
    found = json.loads(run_alone("kills.py", "--only", only, "--kills", "1", "--queries", "240", "--asked", "40"))
    assert (found["again"], found["gone"], found["other"], found["left"]) == (0, 0, 0, 0)


def test_serve():
    found = json.loads(run_alone("serve.py", "--requests", "100", "--clients", "4", "--problems", "mixed", "--json"))
    assert [(row["clients"], row["rows"], row["requests"]) for row in found] == [(4, 1, 100), (1, 1, 10), (4, 1000, 4)]
    assert not any(row["errors"] for row in found)
    assert all(row["after_mb"] > 0 and row["p99_ms"] >= row["p50_ms"] > 0 for row in found)
    assert found[-1]["health_p99_ms"] > 0


def test_certificates_hold_as_often_as_they_say():
    """The small version of the benchmark, within three standard errors of what it shows at full size."""
    document = json.loads(run("coverage.py", "--runs", "100", "--real", "1", "--users", "2", "--json"))
    assert {row["case"] for row in document["simulated"]} == {"fixed", "chosen", "rising", "stuck", "swinging"}
    for row in document["simulated"]:
        assert row["held"] >= 0.95 - 3 * (0.05 * 0.95 / 100) ** 0.5, row
        assert row.get("exact", 1.0) >= 0.95
        assert row.get("wrongly", 0.0) <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5
    assert [row["target"] for row in document["real"]] == [None, 0.9, None, None, 0.9, None, None]
    done = {row["case"]: row["bounds"] for row in document["users"]}
    wanted = {"extended": 3, "re-targeted": 3, "refreshed": 8, "certified": 2, "remade": 5, "frontier": 1, "rows": 1}
    assert wanted.items() <= done.items()
    assert all(0 <= row["picked"] <= row["alone"] <= 1 for row in document["users"])


def test_strata():
    document = json.loads(run("strata.py", "--runs", "50", "--n", "50", "--only", "--json"))
    assert {row["form"] for row in document["coverage"]} == {"plain", "strata", "drawn"}
    for row in document["coverage"]:
        assert row["held"] >= 0.95 - 3 * (0.05 * 0.95 / 50) ** 0.5, row
        assert row.get("exact", 1.0) >= 0.95, row


def test_sweep():
    needs("distributed")
    small = ["--units", "2", "--iterations", "2", "--epochs", "5", "--rounds", "1"]
    document = json.loads(run("sweep.py", *small, "--json"))
    assert [row["workers"] for row in document["rows"]] == [1, 2]
    assert document["ratio"] > 0


def test_refresh():
    lines = run("refresh.py", "--checks-only", "--trials", "1").splitlines()
    assert len(lines) == 4
    assert lines[0] == "noise 0.0: unchanged in 1 of 1 trials (within 95 %), 300 rows asked on average"


def test_queries(tmp_path):
    small = ["--problems", "spirals", "--budgets", "100", "400", "--draws", "margin", "boundary", "--workers", "0"]
    document = json.loads(run("queries.py", *small, "--json", "--figure", tmp_path / "queries.svg"))
    assert document["problems"] == 1
    assert set(document["mean"]) == {"one-shot", "margin", "boundary"}
    assert document["mean"]["one-shot"]["3000"] == document["bar"] > 0.95
    assert document["mean"]["margin"]["400"] > document["mean"]["margin"]["100"]
    assert document["needed_median"] == {"margin": None, "boundary": None}
    assert (tmp_path / "queries.svg").read_text().count("<svg") == 1


def test_cascade():
    kinds = ["--what", "kinds", "--only", "mixed14-lgbm", "--workers", "0", "--rows", "500", "--agree", "0.9"]
    small = ["--times", "20", "--queries", "200", "--pool", "3000"]
    head, row, *_, over = run("cascade.py", *kinds, *small).splitlines()
    assert head.split()[3:] == ["agree", "holds", "alone", "nothing", "best"]
    holds, alone, _, best = map(float, row.split()[4:])
    assert holds >= 0.8
    assert 0 <= alone <= best + 0.05
    assert over.split()[:2] == ["1", "originals"]
    lines = run("cascade.py", *kinds, *small, "--rules").splitlines()
    assert [line[:14].strip() for line in lines] == ["rule", "two starts", "one start", "bonferroni", "halves"]


def test_answers():
    small = ["--only", "mixed12-forest", "--queries", "200", "--seeds", "0", "--workers", "0"]
    (row,) = json.loads(run("answers.py", *small, "--json"))
    assert 30 <= row["needed"] <= 200
    assert all(0.5 < fidelity <= 1 for pair in (row["labels"], row["rows"]) for fidelity in pair)


def test_scaling(tmp_path):
    small = ["--only", "made30-svm", "--budgets", "100", "300", "--seeds", "0", "--workers", "0"]
    methods = ["--methods", "ectype", "sklearn boosting", "--figure", tmp_path / "scaling.svg"]
    document = json.loads(run("scaling.py", *small, *methods, "--json"))
    found = {(row["method"], row["budget"]): row["fresh"] for row in document["rows"]}
    assert found["ectype", 300] > found["ectype", 100] > found["sklearn boosting", 100]
    assert (tmp_path / "scaling.svg").read_text().count("<svg") == 1


def test_pictures(tmp_path):
    run("pictures.py", "--out", tmp_path)
    decisions, scaling = ((tmp_path / f"{name}.svg").read_text() for name in ("decisions", "scaling"))
    assert float(re.search(r"agrees on ([\d.]+) %", decisions)[1]) > 99
    assert scaling == (BENCHMARKS.parent / "docs" / "scaling.svg").read_text()  # as the tables say


PARTS = [
    "steps",
    "training",
    "making",
    "sampling",
    "encoding",
    "distinct",
    "choosing",
    "asking",
    "dropping",
    "certificate",
    "other",
]


def test_where_the_time_goes():
    document = json.loads(run("profile_run.py", "--columns", "2", "--rounds", "1", "--queries", "300", "--json"))
    for found in document:
        assert found["steps"] > 0
        assert (found["making"] > 0) == (found["kind"] == "default")  # others hand out the network that chose
        assert found["all"] == pytest.approx(sum(value for name, value in found.items() if name in PARTS), abs=2)


def test_peers():
    small = ["--problems", "moons", "--queries", "200", "--methods", "ectype", "sklearn boosting"]
    document = json.loads(run("peers.py", *small, "--json"))
    (row,) = document["rows"]
    assert row["methods"]["ectype"]["kept"] == row["methods"]["sklearn boosting"]["kept"] == 200
    for found in row["methods"].values():
        assert 0.8 < found["fresh"] <= 1
        assert found["cold_cpu"] > found["warm_cpu"] > 0


def test_what_peers_are_compared_by(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    summary = importlib.import_module("peers").summary
    times = dict.fromkeys(("cold", "warm", "cold_cpu", "warm_cpu"), 2.0)
    about = {"test": 1.0, "accuracy": 1.0, "queries": 1000, "kept": 1000, "peak_mb": 1, **times}

    def problem(**fidelity):
        methods = {name.replace("_", " "): {**about, "fresh": value} for name, value in fidelity.items()}
        methods["ectype"] |= {"warm": 0.5}
        return {"problem": "any", "methods": methods}

    scikit = {"sklearn_MLP": 0.75, "sklearn_boosting": 0.85}
    first = problem(ectype=0.875, network=0.9375, PRESC=0.75, **scikit)
    second = problem(ectype=0.75, network=0.8125, PRESC=0.8125, **scikit)
    bars = summary([first, second])["bars"]
    assert bars["ectype beside PRESC"] == {
        "at_least_as_faithful_on": 0.5,
        "mean_gain": 0.0312,
        "times_faster": {"cold": 1.0, "warm": 4.0, "cold_cpu": 1.0, "warm_cpu": 1.0},
    }
    assert bars["network beside PRESC"]["mean_gain"] == 0.0938
    single = bars["ectype beside single passes"]
    assert single == {"over_the_better": -0.0375, "over_the_better_of_each": -0.0375}


def test_queries_needed(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    needed = importlib.import_module("queries").needed
    curve = {100: 0.5, 300: 0.7, 500: 0.6, 1000: 0.9}
    assert [needed(curve, bar) for bar in (0.4, 0.6, 0.75, 0.95)] == [100, 200, 750, None]


def test_peers_say_what_is_missing(tmp_path):
    without = tmp_path / "python"
    without.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    without.chmod(0o755)
    done = run_program(BENCHMARKS / "peers.py", "--problems", "moons", "--methods", "PRESC", "--presc", without)
    assert done.returncode == 1
    assert "pip install presc" in done.stderr
    assert done.stdout == ""


def test_iterations():
    document = json.loads(run("iterations.py", "--iterations", "20", "--json"))
    for found in document.values():
        assert len(found["all"]) == 10
        assert 0 < found["asking_to_training"] < 1


def test_report():
    lines = run("report.py", "--answers", "200", "--times", "1").splitlines()
    assert lines[0] == "200 answers, 40 columns, a blend"
    assert [line.split()[0] for line in lines[1:]] == ["bytes", "seconds", "seconds"]


def test_readings_of_figure_5():
    small = ["--runs", "1", "--iterations", "2", "--deltas", "1e-6", "--readings", "paper,moments kept,1000 steps"]
    paper, moments, steps = json.loads(run("figure5.py", "--json", *small))
    # The first iteration is the same but for its length, and the shorter it is, the fewer points it compresses.
    assert 100 < paper["points"] == moments["points"] < steps["points"] <= 150
    assert len({row["moved"] for row in (paper, moments, steps)}) == 3
    beside = json.loads(run("figure5.py", "--json", "--problem", "spirals,moons", *small))
    assert [row["reading"] for row in beside] == ["paper", "moments kept", "1000 steps"]
    assert beside[0]["end"] == beside[0]["end_error"] == beside[0]["late"] == 0
    assert beside[2]["left"] > beside[0]["left"]


def test_answers_used_again():
    said = run("again.py", "--only", "made30-svm", "--first", "60", "--queries", "150", "--workers", "0")
    assert "asked 90 exactly: True" in said
    assert run("again.py", "--remake", "--queries", "100").count("0 queries, the same bytes") == 6


def test_a_fleet():
    said = run_alone("fleet.py", "--models", "4", "--budget", "40", "--quick")
    assert "1 failed, 3 done" in said
    assert "the same bytes: 3 of 3" in said


def test_a_night():
    document = json.loads(run("nightly.py", "--quick", "--json"))
    assert [cost["budget"] for cost in document["costs"]] == [300, 1000]
    assert document["driver"]["turns"] > 0
    lines = run("nightly.py", "--simulate", "--models", "300", "--workers", "8").splitlines()
    assert lines[1].startswith("as above")
    assert len(lines) == 9


@pytest.fixture
def iris_folder(tmp_path):
    """A folder of one problem called iris, small and easy."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    rows = np.column_stack([5 + 10 * y + rng.normal(size=90), rng.normal(size=90), np.full(90, 7.0), y])
    lines = ["f0,f1,f2,label", *(",".join([*map(str, row[:3]), str(int(row[3]))]) for row in rows.tolist())]
    (tmp_path / "index.csv").write_text("name,classes\niris,3\n")
    (tmp_path / "iris.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path


def test_the_gap_on_uci_problems(iris_folder):
    options = ["--options", '{"preset": "fast"}']
    small = ["--only", "iris", "--methods", "one-shot", "--queries", "300", *options, "--workers", "1"]
    arguments = [BENCHMARKS / "uci_gap.py", "--folder", iris_folder, *small, "--json", iris_folder / "rows.jsonl"]
    out = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    learned, normal = (json.loads(line) for line in (iris_folder / "rows.jsonl").read_text().splitlines())
    assert (learned["space"], normal["space"]) == ("learned", "normal")
    assert learned["original"] == 1
    assert learned["fidelity"] > 0.8
    assert "means over 1 problems" in out.stdout


def test_the_gap_on_uci_problems_says_what_is_missing(tmp_path):
    arguments = [BENCHMARKS / "uci_gap.py", "--folder", tmp_path]
    out = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert out.returncode == 1
    assert re.fullmatch(r"uci_gap.py: .*index.csv: expected a readable list of problems, found .*\n", out.stderr)


def test_families(iris_folder):
    small = ["--only", "iris", "--queries", "200", "--workers", "0", "--json", iris_folder / "families.jsonl"]
    out = run_program(BENCHMARKS / "families.py", "--folder", iris_folder, *small)
    assert out.returncode == 0, out.stderr
    row = json.loads((iris_folder / "families.jsonl").read_text())
    assert set(row["seconds"]) == {"mlp", "linear", "tree", "forest", "boosting", "auto"}
    assert all(row["fidelity"][kind] > 0.7 for kind in ("mlp", "tree", "tree alone", "boosting", "auto"))
    assert row["auto"] == "blend taught by nobody"
    gain = row["fidelity"]["tree"] - row["fidelity"]["tree alone"]
    assert f"relay to a tree: {gain:+.4f} on average" in out.stdout
