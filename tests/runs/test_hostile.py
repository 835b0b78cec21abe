"""A directory that somebody else made, with checksums that fit: loading it ends in a sentence, in bounded memory."""

import json
import os
import resource
import shutil

import pytest

import ectype as ec
from commands import run_command
from ectype.errors import DirectoryError
from ectype.runs.directory import FILES
from problems import disc

SETTINGS = {"budget": 90, "batch": 30, "certificate_n": 60, "preset": "fast", "repeat": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("hostile") / "run"
    words = ec.Original(lambda rows: ["in" if inside else "out" for inside in disc(rows)], ["in", "out"], name="disc")
    ec.copy_classifier(words, ec.Space.normal(2), out=out, **SETTINGS)
    return out


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def classes(kind, values):
    def change(run):
        about = json.loads((run / "copy.json").read_text())
        about["classes"] = {"type": kind, "values": values}
        (run / "copy.json").write_text(json.dumps(about))

    return change


def history(run):
    (run / "history.jsonl").write_text("[" * 100_000 + "]" * 100_000 + "\n")


def part(name, value):
    def change(run):
        content = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps({**content, name: value}))

    return change


WRONG = {
    "a label twice": (classes("<U3", ["in", "in"]), "not each once"),
    "labels of any length": (classes("<U200000000", ["in", "out"]), "classes of type <U200000000"),
    "labels in another order": (classes("<U3", ["out", "in"]), "not in order"),
    "one long label": (classes("<U1000", [*map(str, range(100_000)), "x" * 1000]), "labels of up to 1000 characters"),
    "deep history": (history, "nested more than 64 deep"),
    "a number for the settings": (part("settings", 3), "settings: expected an object, found 3"),
    "a number for the certificate": (part("certificate", 3), "a directory written by save"),
    "a number for the queries": (part("queries", 3), "queries: expected an object, found 3"),
    "a number for the files": (part("files", 3), "files: expected an object, found 3"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_no_run_has_written_is_bad_input(run, wrong):
    from mutated_directories import sealed

    change, found = WRONG[wrong]
    change(run)
    sealed(run, others=not wrong.startswith("a number"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DirectoryError) as error:
        ec.load(run)
    assert found in str(error.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # in KiB


@pytest.mark.parametrize(
    ("setting", "value", "found"),
    [("batch", "", "batch: expected"), ("batch", 0, "at least one row, found 0"), ("budget", None, "budget: expected")],
)
def test_a_run_whose_settings_no_run_has_is_not_gone_on_from(run, setting, value, found):
    from mutated_directories import sealed

    content = json.loads((run / "run.json").read_text())
    part("settings", {**content["settings"], setting: value})(run)
    sealed(run, others=False)
    with pytest.raises(DirectoryError, match=found):
        ec.copy_classifier(ec.Original(disc, ["in", "out"]), ec.Space.normal(2), out=run, **{**SETTINGS, "budget": 120})


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "hole"])
def test_what_is_no_regular_file_is_not_waited_for(run, name, kind):
    file = run / name
    if kind == "hole":
        os.truncate(file, 2**40)
    else:
        file.unlink()
        {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](file)
    with pytest.raises(DirectoryError):
        ec.load(run)


def test_a_page_of_labels_that_no_answer_has_is_written(run):
    from mutated_directories import sealed

    classes("<f8", [0.0, 1.0])(run)
    sealed(run, others=True)
    done = run_command("report", run)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").is_file()


def test_the_command_says_so(run):
    (run / "space.json").unlink()
    os.mkfifo(run / "space.json")
    done = run_command("card", run)
    assert done.returncode == 2, done.stderr
    assert "a pipe, and no regular file" in done.stderr
