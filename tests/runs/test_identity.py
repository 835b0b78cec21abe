"""One directory holds the labels of one original, read in one way: what decides what a label means is recognised."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import ectype as ec
from commands import run_command
from ectype.errors import DirectoryError, OriginalError
from ectype.original.options import ACCESS_OPTIONS, SEMANTIC_OPTIONS, OriginalOptions
from ectype.original.registry import KINDS, opener_of, options_of
from fault_server import TEMPLATE, FaultyServer

pytestmark = pytest.mark.usefixtures("small_lessons")

RUN = ("--space", "normal:2", "--budget", 60, "--certificate-n", 60, "--request-rows", 20, "--concurrency", 1)
THRESHOLD = ("--protocol", "instances", "--decode", "threshold", "--classes", "no,yes")
ARGMAX = ("--protocol", "instances", "--decode", "argmax")
SCORES = ("--protocol", "instances", "--decode", "scores")
LABELS = ("--protocol", "instances", "--classes", "0,1")


def chance(rows):
    return 1 / (1 + np.exp(-np.asarray(rows, float)[:, 0]))


def chances(rows):
    one = chance(rows)
    return np.stack([one / 2, one / 2, 1 - one], axis=1)


def labels(rows):
    return (chance(rows) > 0.5).astype(int)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("decide", "before", "now", "named"),
    [
        (chance, (*THRESHOLD, "--threshold", 0.5), (*THRESHOLD, "--threshold", 0.9), "threshold"),
        (chance, THRESHOLD, (*THRESHOLD, "--threshold", 0.9), "threshold 0.5 (now 0.9)"),
        (chance, (*THRESHOLD, "--threshold", 0.9), THRESHOLD, "threshold 0.9 (now 0.5)"),
        (chances, (*ARGMAX, "--classes", "c,b,a"), (*ARGMAX, "--classes", "a,b,c"), "outputs ['c', 'b', 'a'] (now"),
        (chance, THRESHOLD, ("--protocol", "instances", "--classes", "no,yes"), "decode 'threshold' (now 'label')"),
        (labels, LABELS, ("--protocol", "mlflow", "--classes", "0,1"), "protocol 'instances' (now 'mlflow')"),
        (labels, LABELS, ("--protocol", "instances", "--classes", "false,true"), "classes [0, 1] (now [False, True])"),
        (labels, LABELS, (*LABELS, "--token-env", "OTHER"), "token_env None (now 'OTHER')"),
        (chances, (*ARGMAX, "--classes", "a,b,c"), (*SCORES, "--classes", "a,b,c"), "decode"),
    ],
)  # fmt: skip
def test_other_ways_to_read_an_original_are_refused(decide, before, now, named, tmp_path, monkeypatch):
    monkeypatch.setenv("OTHER", "s3cret")
    with FaultyServer(decide, ["503 3600"], share=1, plan=[None] * 3) as server:
        begun = run_command("copy", server.url, "--out", "run", *RUN, *before, cwd=tmp_path)
        assert begun.returncode == 3, begun.stderr
        kept, asked = files(tmp_path / "run"), server.asked
        refused = run_command("copy", server.url, "--out", "run", *RUN, *now, cwd=tmp_path)
        assert refused.returncode == 2, refused.stderr
        assert named in refused.stderr
        assert "choose another directory, or use the same" in refused.stderr
        assert (files(tmp_path / "run"), server.asked) == (kept, asked)
        server.share = 0
        done = run_command("copy", server.url, "--out", "run", *RUN, *before, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert run_command("copy", server.url, "--out", "run", *RUN, *now, cwd=tmp_path).returncode == 2


def test_a_query_string_is_recognised_and_written_nowhere(tmp_path):
    with FaultyServer(labels, ["503 3600"], share=1, plan=[None] * 3) as server:
        for query, code in (("?key=hush-hush&model=alpha", 3), ("?key=hush-hush&model=beta", 2), ("", 2)):
            out = run_command("copy", server.url + "/p" + query, "--out", "run", *RUN, *LABELS, cwd=tmp_path)
            assert out.returncode == code, out.stderr
        assert "query.model" in out.stderr
        server.share = 0
        again = ("copy", server.url + "/p?model=alpha&key=hush-hush", "--out", "run", *RUN, *LABELS)
        assert run_command(*again, cwd=tmp_path).returncode == 0
    for content in files(tmp_path / "run").values():
        assert b"hush-hush" not in content
        assert b"alpha" not in content


def test_an_output_and_a_template_are_recognised(tmp_path):
    (tmp_path / "template.json").write_text(json.dumps(TEMPLATE))
    v2, template = ("--protocol", "v2"), ("--protocol", "template", "--template", "template.json")
    with FaultyServer(labels, ["503 3600"], share=1, plan=[None] * 3) as server:
        url = server.url + "/v2/models/m"
        assert run_command("copy", url, "--out", "v2", *RUN, *v2, cwd=tmp_path).returncode == 3
        other = run_command("copy", url, "--out", "v2", *RUN, *v2, "--output", "score", cwd=tmp_path)
        assert (other.returncode, "output None (now 'score')" in other.stderr) == (2, True)
        server.plan += [None] * 3
        assert run_command("copy", server.url, "--out", "own", *RUN, *template, cwd=tmp_path).returncode == 3
        (tmp_path / "moved.json").write_text(json.dumps(TEMPLATE, indent=3))
        moved = (*template[:3], "moved.json")
        assert run_command("copy", server.url, "--out", "own", *RUN, *moved, cwd=tmp_path).returncode == 3
        (tmp_path / "template.json").write_text(json.dumps({**TEMPLATE, "label": "id"}))
        other = run_command("copy", server.url, "--out", "own", *RUN, *template, cwd=tmp_path)
        assert (other.returncode, "template" in other.stderr) == (2, True), other.stderr


def test_how_an_original_is_reached_may_change(tmp_path):
    with FaultyServer(labels, ["503 3600"], share=1, plan=[None] * 3) as server:
        assert run_command("copy", server.url, "--out", "run", *RUN, *LABELS, cwd=tmp_path).returncode == 3
        server.share = 0
        other = ("--concurrency", 3, "--request-rows", 7, "--rate", 1000, "--timeout", 9, "--attempts", 2)
        more = ("--retries", 0.5, "--decode", "label")
        done = run_command("copy", server.url, "--out", "run", *RUN, *LABELS, *other, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_every_option_is_said_to_mean_something_or_not():
    assert set(SEMANTIC_OPTIONS) | set(ACCESS_OPTIONS) == set(OriginalOptions.__annotations__)
    assert not set(SEMANTIC_OPTIONS) & set(ACCESS_OPTIONS)
    for kind in KINDS:
        assert set(options_of(opener_of(kind))) <= {*SEMANTIC_OPTIONS, *ACCESS_OPTIONS}


@pytest.mark.parametrize("change", ["parameters", "fit"])
def test_estimators_are_told_apart_by_what_they_learned(change, tmp_path, rng):
    X = rng.normal(size=(200, 2))
    fitted = LogisticRegression(C=1.0).fit(X, X[:, 0] > 0)
    other = LogisticRegression(C=0.5) if change == "parameters" else LogisticRegression(C=1.0)
    other.fit(X, X[:, 0] > 0 if change == "parameters" else X[:, 1] > 0)
    settings = {"budget": 60, "certificate_n": 50, "out": tmp_path / "run", "preset": "fast"}
    result = ec.copy_classifier(fitted, ec.Space.normal(2), **settings)
    with pytest.raises(DirectoryError, match="found a run with an original that was fitted otherwise; choose"):
        ec.copy_classifier(other, ec.Space.normal(2), **settings)
    same = LogisticRegression(C=1.0).fit(X, X[:, 0] > 0)
    assert ec.copy_classifier(same, ec.Space.normal(2), **settings).certificate == result.certificate


def test_a_module_whose_source_changed_is_said(tmp_path):
    source = "def box(rows):\n    if FAIL: raise RuntimeError('down')\n"
    (tmp_path / "mine.py").write_text(f"FAIL = True\n{source}    return rows[:, 0] > 0.5\n")
    call = ("copy", "mine:box", "--space", "normal:2", "--out", "run", "--budget", 60, "--certificate-n", 60)
    assert run_command(*call, cwd=tmp_path).returncode == 3
    (tmp_path / "mine.py").write_text(f"FAIL = False\n{source}    return rows[:, 0] > 0.9\n")
    done = run_command(*call, cwd=tmp_path)  # mended, perhaps: whoever wrote it knows
    assert done.returncode == 0, done.stderr
    assert "the source of mine was changed since this run was begun" in done.stderr
    shutil.rmtree(tmp_path / "run")
    assert "was changed" not in run_command(*call, cwd=tmp_path).stderr
    assert "was changed" not in run_command(*call, cwd=tmp_path).stderr


def test_an_interrupted_run_of_version_0_1_that_does_not_say_how_it_was_read_is_refused(tmp_path):
    """Its ledger has no word of the threshold, so nobody knows what its labels mean."""
    import sqlite3

    with FaultyServer(chance, ["503 3600"], share=1, plan=[None] * 3) as server:
        box = ec.open_original(server.url, ["no", "yes"], protocol="instances", decode="threshold", request_rows=20)
        settings = {"budget": 60, "certificate_n": 60, "out": tmp_path / "run"}
        with pytest.raises(OriginalError):
            ec.copy_classifier(box, ec.Space.normal(2), **settings)
        with sqlite3.connect(tmp_path / "run" / "ledger.sqlite") as file:
            about = json.loads(file.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()[0])
            assert about.pop("opened")
            file.execute("UPDATE meta SET value = ? WHERE key = 'settings'", (json.dumps(about),))
            file.execute("UPDATE meta SET value = '1' WHERE key = 'format'")  # the format that had no checksums
            file.execute("DROP TABLE chain")
        file.close()
        with pytest.raises(DirectoryError, match="protocol None"):
            ec.copy_classifier(box, ec.Space.normal(2), **settings)
