"""Benchmarks run, at their smallest, and print what they promise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def run(name, *arguments):
    out = subprocess.run([sys.executable, BENCHMARKS / name, *arguments], capture_output=True, text=True, check=True)
    return out.stdout


def test_engine():
    document = json.loads(run("engine.py", "--quick", "--json"))
    assert set(document) == {"steps", "compile_s", "sgemm_gflops"}
    rows = {(row["d"], row["engine"]): row for row in document["steps"]}
    assert set(rows) == {(d, name) for d in (2, 30, 166) for name in ("understudy", "sklearn", "torch", "keras")}
    for row in rows.values():
        assert row["us"] or row["note"].startswith("not installed")
    for d in (2, 30, 166):  # the bar is 8; this is a smoke test on a machine that is busy testing
        assert rows[d, "sklearn"]["us"] > 4 * rows[d, "understudy"]["us"]
    assert document["compile_s"] > 0


def test_spirals():
    (row,) = json.loads(run("spirals.py", "--json", "--seeds", "1", "--variants", "online"))
    assert row["kept"] == 100
    assert 0.8 < row["fidelity"] < 0.98


def test_scale():
    small, large = json.loads(run("scale.py", "--quick", "--json"))
    assert (small["kept"], large["kept"]) == (1000, 2000)


def test_parity():
    small = ["--problems", "mixed", "--rows", "2000", "--budget", "200", "--single-rows", "100"]
    document = json.loads(run("parity.py", *small, "--json"))
    assert {row["family"] for row in document["parity"]} == {"mlp", "linear", "tree", "forest", "boosting"}
    assert all(row["disagree"] == 0 for row in document["parity"] if row["family"] in ("tree", "forest"))
    assert all(row["ratio"] > 1 for row in document["speed"]["rounds"])


def test_serve():
    found = json.loads(run("serve.py", "--requests", "100", "--clients", "4", "--problems", "mixed", "--json"))
    assert [(row["clients"], row["rows"], row["requests"]) for row in found] == [(4, 1, 100), (1, 1, 10), (4, 1000, 4)]
    assert not any(row["errors"] for row in found)
    assert all(row["after_mb"] > 0 and row["p99_ms"] >= row["p50_ms"] > 0 for row in found)
    assert found[-1]["health_p99_ms"] > 0


def test_certificates_hold_as_often_as_they_say():
    """The small version of the benchmark, within three standard errors of what it shows at full size."""
    document = json.loads(run("coverage.py", "--runs", "100", "--real", "2", "--json"))
    assert {row["case"] for row in document["simulated"]} == {"fixed", "chosen", "rising", "stuck", "swinging"}
    for row in document["simulated"]:
        assert row["held"] >= 0.95 - 3 * (0.05 * 0.95 / 100) ** 0.5, row
        assert row.get("exact", 1.0) >= 0.95
        assert row.get("wrongly", 0.0) <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5
    assert [row["target"] for row in document["real"]] == [None, 0.9]


def test_sweep():
    pytest.importorskip("distributed")
    small = ["--units", "2", "--iterations", "2", "--epochs", "5", "--rounds", "1"]
    document = json.loads(run("sweep.py", *small, "--json"))
    assert [row["workers"] for row in document["rows"]] == [1, 2]
    assert document["ratio"] > 0


def test_refresh():
    lines = run("refresh.py", "--checks-only", "--trials", "1").splitlines()
    assert len(lines) == 4
    assert lines[0] == "noise 0.0: unchanged in 1 of 1 trials (within 95 %), 300 rows asked on average"
