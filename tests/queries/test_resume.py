"""Runs that are killed and resumed: the same copy, and no answered row asked again. `--kills 20` for a long look."""

import hashlib
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from commands import run_code
from ectype import ledger
from ectype.errors import DirectoryError

# Asks, trains and writes as any run does, and says so on stdout before each, so that a test can kill it right there.
SCRIPT = """
import os, sys
import numpy as np
import ectype as ec
from ectype.runs.api import copy_steps, finish

def say(*words):
    print(*words, flush=True)

def original(rows):
    say("ask", rows.tobytes().hex())
    return np.digitize((rows**2).sum(axis=1), [1, 3])

replace = os.replace
def saying(source, target):
    say("write", os.path.basename(target))
    replace(source, target)
os.replace = saying

quick = {"preset": "fast"} if sys.argv[2] == "random" else {"schedule": 30}
settings = ec.Settings(batch=40, budget=400, certificate_n=150, seed=5, draw=sys.argv[2], **quick)
box = ec.Original(original, classes=[0, 1, 2], request_rows=25, name="rings")
result = finish(copy_steps(box, ec.Space.normal(3), settings, out=sys.argv[1]), lambda r: say("train", r.iteration))
say("done", result.certificate.estimate)
"""
PHASES = ("ask", "train", "write")


def start(path, draw):
    arguments = [sys.executable, "-c", SCRIPT, str(path), draw]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(path, draw):
    """To its end, in this process; how often each row was asked, and the words that were said."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["-c", str(path), draw])
        patch.setattr(os, "replace", os.replace)  # the script's own does not outlive it
        out = run_code(SCRIPT)
    lines = [line.split() for line in out.stdout.splitlines()]
    asked = Counter(row for line in lines if line[0] == "ask" for row in rows_of(line[1]))
    return asked, [line[0] for line in lines]


def rows_of(text, width=3 * 8 * 2):
    return [text[at : at + width] for at in range(0, len(text), width)]


def answered(path):
    """How many answers the ledger holds for each row."""
    if not (path / ledger.LEDGER).exists():
        return Counter()
    try:
        table = ledger.query_table(path / ledger.LEDGER, ledger.space_of(path / ledger.LEDGER))
    except DirectoryError:  # killed before the ledger was whole
        return Counter()
    kept = table[table["label"].notna()]
    return Counter(row.tobytes().hex() for row in kept[["x0", "x1", "x2"]].to_numpy(np.float64))


def digest(path):
    return hashlib.sha256((path / "copy.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module", params=["random", "balanced", "margin"])
def whole(request, tmp_path_factory):
    """An uninterrupted run: how it draws, its copy, how often each row was asked, and each word said."""
    path = tmp_path_factory.mktemp("whole") / "run"
    asked, words = run(path, request.param)
    assert sorted(asked.values()) == [1] * 539 + [2] * 11  # a few are asked again on purpose
    return request.param, digest(path), asked, {word: words.count(word) for word in PHASES}


def test_a_run_that_is_killed_resumes_to_the_same_copy(whole, tmp_path, kills):
    draw, expected, rows, counts = whole
    rng = np.random.default_rng(kills)
    for trial in range(kills):
        path, phase = tmp_path / f"run-{trial}", PHASES[trial % len(PHASES)]
        moment, seen = int(rng.integers(counts[phase])), 0
        process = start(path, draw)
        for line in process.stdout:
            seen += line.split()[0] == phase
            if seen > moment:
                break
        if phase == "train":  # somewhere in the round that follows, or on a busy machine later
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=float(rng.uniform(0, 0.02)))
        process.kill()
        process.communicate()
        paid = answered(path)
        asked, _ = run(path, draw)
        assert asked + paid == rows, f"{phase} {moment}: rows with an answer were asked again"
        assert digest(path) == expected, f"{phase} {moment}"
        assert answered(path) == rows
        again, words = run(path, draw)  # finished: loaded, nothing asked
        assert not again
        assert words.count("train") == counts["train"]


def test_two_processes_do_not_write_to_one_run(tmp_path):
    process = start(tmp_path / "run", "random")
    assert process.stdout.readline().startswith("ask")
    process.send_signal(signal.SIGSTOP)
    second = start(tmp_path / "run", "random")
    _, errors = second.communicate(timeout=60)
    process.kill()
    process.communicate()
    assert second.returncode != 0
    assert "a run that nobody else is at work on, found another process" in errors
