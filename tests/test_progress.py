"""Progress: a bar on a terminal and in a notebook, lines for the command, nothing elsewhere; and no part of a copy."""

import io
import json
import sys
import types
from threading import Event

import numpy as np
import pytest

import ectype as ec
from commands import run_command
from ectype import progress
from ectype.plan.resolve import resolve
from ectype.progress import ROWS, report_activity, report_answered, show_progress
from optional_packages import needs
from problems import disc
from processes import shown_on_a_terminal

PLANE = ec.Space.normal(2)
QUICK = {"budget": 60, "certificate_n": 40, "preset": "fast", "repeat": 0}
SCRIPT = """
import numpy as np
import ectype as ec

def disc(rows):
    return (rows**2).sum(axis=1) < 1

plane = ec.Space.normal(2)
settings = dict(budget=60, certificate_n=40, preset="fast")
result = ec.copy_classifier(disc, plane, out="run", {progress} **settings)
ec.certify(result.copy, disc, plane, n=50, {progress})
ec.frontier("run", ["linear"], {progress})
ec.refresh("run", disc, check=20, {progress})
"""


def test_a_terminal_shows_a_bar_in_python_unless_told_not_to(tmp_path):
    bars = shown_on_a_terminal([sys.executable, "-c", SCRIPT.replace("{progress}", "")], cwd=tmp_path).decode()
    for words in ("copy", "certify", "frontier", "refresh", "3/3", "50/50", "60 queries, fidelity", "linear"):
        assert words in bars, words
    silent = SCRIPT.replace("{progress}", "progress=False,").replace('"run"', '"other"')
    assert shown_on_a_terminal([sys.executable, "-c", silent], cwd=tmp_path) == b""


@pytest.mark.parametrize(("budget", "total"), [(100, "5/5"), (60, None)])
def test_a_run_that_goes_on_counts_all_of_its_rounds_and_a_finished_one_none(tmp_path, budget, total):
    """Three rounds of 20 were made before; further ones are as large."""
    code = SCRIPT.partition("result =")[0] + (
        'ec.copy_classifier(disc, plane, budget={0}, certificate_n=40, preset="fast", repeat=0, out="run")\n'
    )
    shown_on_a_terminal([sys.executable, "-c", code.format(60)], cwd=tmp_path)
    bars = shown_on_a_terminal([sys.executable, "-c", code.format(budget)], cwd=tmp_path).decode()
    assert (total in bars) if total else not bars
    assert "3/3" not in bars


def test_nothing_is_shown_where_nobody_watches(capfd):
    ec.certify(ec.copy_classifier(disc, PLANE, **QUICK).copy, disc, PLANE, n=50)
    assert capfd.readouterr() == ("", "")


def test_a_run_is_not_recognised_by_it_and_its_copy_is_the_same(tmp_path):
    seen = ec.copy_classifier(disc, PLANE, **QUICK, out=tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()  # as if it had been interrupted
    again = ec.copy_classifier(disc, PLANE, **QUICK, out=tmp_path / "run", progress=False)
    assert again.settings == seen.settings
    np.testing.assert_array_equal(again.copy.model.theta, seen.copy.model.theta)
    assert "progress" not in json.dumps(resolve(ec.Settings(progress=False)).as_json())
    with pytest.raises(ec.errors.SettingError, match="progress: expected True or False, found 1"):
        ec.copy_classifier(disc, PLANE, progress=1)


@pytest.fixture
def notebook(monkeypatch):
    """What a kernel of Jupyter's shows: the bundles that were displayed, and those they were replaced by."""
    IPython = needs("IPython")
    bundles = []
    handle = types.SimpleNamespace(update=lambda bundle, raw: bundles.append(bundle))

    def display(bundle, raw, display_id):
        bundles.append(bundle)
        return handle

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=True))
    monkeypatch.setattr(progress, "NOTEBOOK", 0)
    return bundles


def test_a_notebook_shows_a_bar_in_html(notebook):
    original = ec.Original(disc, name="<script>", request_rows=10)
    ec.copy_classifier(original, PLANE, **QUICK)
    assert any("10 of 40 rows answered" in bundle["text/plain"] for bundle in notebook)
    assert '<progress value="3" max="3">' in notebook[-1]["text/html"]
    del notebook[:]
    with show_progress("a <b>", 2) as tell:
        tell(1, "<script>")
    assert notebook[-1]["text/html"].endswith("a &lt;b&gt; 1/2, 0 s  &lt;script&gt;")


def test_what_is_made_meanwhile_is_said(notebook, small_lesson):
    ec.copy_classifier(disc, PLANE, budget=100, certificate_n=100, to="tree")
    said = " ".join(bundle["text/plain"] for bundle in notebook)
    for words in ("fitting a tree", "teaching a tree", "making the blend that teaches", "the blend labels"):
        assert words in said


def test_work_inside_other_work_shows_nothing_of_its_own(notebook):
    with show_progress("outer", 2, step=ROWS) as outer:
        report_answered(1, 2)
        with show_progress("inner", 5) as inner:
            inner(5)
            report_activity("a detail")
        outer(2)
    report_activity("nobody sees this")
    shown_words = [bundle["text/plain"].partition(",")[0] for bundle in notebook]
    assert shown_words == ["outer 1/2", "outer 1/2", "outer 2/2"]


def test_the_command_can_be_silent_too(tmp_path):
    (tmp_path / "mine.py").write_text("def decide(rows):\n    return rows[:, 0] > 0\n")
    arguments = [
        "copy",
        "mine:decide",
        "--space",
        "normal:1",
        "--out",
        "run",
        "--budget",
        "60",
        "--certificate-n",
        "40",
        "--preset",
        "fast",
    ]
    assert "iteration 3/3" in run_command(*arguments, cwd=tmp_path).stderr
    again = run_command(*arguments, "--no-progress", cwd=tmp_path)  # the same run
    assert again.returncode == 0
    assert again.stderr.count("\n") == 1


def test_lines_of_the_command_come_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0)
    with show_progress("sequential", 2, log=True, step="iteration") as tell:
        tell(1, "100 queries")
        report_activity("too soon for a line")
        tell(2, "200 queries")
    assert capsys.readouterr().err == "sequential: iteration 1/2, 100 queries\nsequential: iteration 2/2, 200 queries\n"


def test_a_log_says_what_takes_long_though_nothing_happens(monkeypatch):
    class Stream(io.StringIO):
        said = Event()

        def write(self, text):
            found = super().write(text)
            if "a step that takes long" in self.getvalue():
                self.said.set()
            return found

    monkeypatch.setattr(progress, "MEANWHILE", 0.001)
    monkeypatch.setattr(sys, "stderr", Stream())
    with show_progress("export", 3, log=True, step="rows"):
        report_activity("a step that takes long")
        assert Stream.said.wait(60)
    assert "export: rows 0/3, a step that takes long\n" in sys.stderr.getvalue()
