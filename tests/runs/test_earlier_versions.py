"""What version 0.1 wrote, before its modules moved, is read as before; `version_0_1` was made by that version."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from ectype import ledger
from ectype.errors import OutageError
from problems import ask_through

MADE = Path(__file__).with_name("version_0_1")
EXPECTED = json.loads((MADE / "expected.json").read_text())
ROWS = pd.DataFrame(EXPECTED["rows"])


def houses(rows):
    return np.where((rows["size"] > 3) & (rows["kind"] != "old") | rows["sold"], "yes", "no")


@pytest.fixture
def run(tmp_path):
    shutil.copytree(MADE / "run", tmp_path / "run")
    return tmp_path / "run"


def test_a_run_is_loaded_and_said_to_be_unchecked(run):
    with pytest.warns(ec.errors.EctypeWarning, match=r"run was written by version 0\.1, without checksums"):
        result = ec.load(run)
    assert not result.checked
    assert not ledger.summarise_ledger(run / ledger.LEDGER).checked
    assert result.certificate.lower == EXPECTED["lower"]
    assert result.copy.predict(ROWS).tolist() == EXPECTED["labels"]
    assert ledger.summarise_ledger(run / ledger.LEDGER).asked == sum(result.queries.values())


def test_a_run_is_recognised_by_the_call_that_made_it(run):
    asked = []
    original = ec.Original(lambda rows: asked.append(rows) or houses(rows), ["no", "yes"], name="houses")
    space = ec.Space.load(run / "space.json")
    settings = {"budget": 120, "batch": 40, "certificate_n": 100, "layers": (6,), "preset": "fast", "seed": 2}
    with pytest.warns(ec.errors.EctypeWarning, match="without checksums"):
        result = ec.copy_classifier(original, space, **settings, out=run)
    assert not asked
    assert result.copy.predict(ROWS).tolist() == EXPECTED["labels"]


def test_a_ledger_goes_on(run):
    """It has no table of attempts, and gets one."""
    space, failures = ec.Space.load(run / "space.json"), iter([OutageError("houses", "an answer", "none")])

    def moody(rows):
        for failure in failures:
            raise failure
        return houses(rows)

    original = ec.Original(moody, ["no", "yes"], name="houses")
    with ledger.Ledger(run / ledger.LEDGER, {}, space) as book:
        assert (book.counts.sent, book.counts.different, book.counts.answered, book.counts.lost) == (225, 225, 225, 0)
        with pytest.raises(OutageError):
            ask_through(book, original, space, space.sample(10, np.random.default_rng(9)), "training")
        ask_through(book, original, space, space.sample(10, np.random.default_rng(9)), "training")
        assert (book.counts.sent, book.counts.again) == (245, 10)
    assert ledger.summarise_ledger(run / ledger.LEDGER).maybe_paid == 10


def test_a_run_that_goes_on_has_checksums_from_then_on(run):
    path = run / ledger.LEDGER
    before, answered, settings = (
        ledger.query_table(path, ledger.space_of(path)),
        ledger.read_answers(path),
        ledger.settings_of(path),
    )
    (run / "run.json").unlink()
    with ledger.Ledger(path, settings, ledger.space_of(path)) as book:
        for purpose, (rows, said) in answered.items():  # of an original that cannot be asked
            found = ask_through(book, ec.Original(None, ["no", "yes"]), ledger.space_of(path), rows, purpose)
            np.testing.assert_array_equal(found, said.labels)
    assert ledger.summarise_ledger(path).checked
    pd.testing.assert_frame_equal(ledger.query_table(path, ledger.space_of(path)), before)


@pytest.mark.parametrize("name", ["copy", "tree"])
def test_a_skops_export_is_loaded(name):
    """In a process of its own: nothing but the list of trusted types has been imported there."""
    code = (
        "import json, sys, pandas\n"
        "from ectype.export import load_skops\n"
        "copy = load_skops(sys.argv[1])\n"
        "print(json.dumps(copy.predict(pandas.DataFrame(json.load(sys.stdin))).tolist()))\n"
    )
    command = [sys.executable, "-c", code, str(MADE / f"{name}.skops")]
    done = subprocess.run(command, input=json.dumps(EXPECTED["rows"]), capture_output=True, text=True, check=True)
    agree = np.array(json.loads(done.stdout)) == np.array(EXPECTED["labels"])
    assert agree.all() if name == "copy" else agree.mean() > 0.8
