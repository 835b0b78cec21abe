"""Originals that are no classifiers: a regression by mistake, an id, answers that are too few. What is said of them."""

import re
import sys

import numpy as np
import pytest

import ectype as ec
from commands import run_command
from ectype.errors import AnswerCountError, OriginalError, TooManyLabelsError
from ectype.ledger import read_answers
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits
from fault_server import FaultyServer

FAST = RetryWaits(first=0.001, most=0.004, jitter=0.001)
SPACE = ec.Space.normal(3)
SMALL = {"preset": "fast", "budget": 120, "certificate_n": 100, "repeat": 0.05}
MODELS = """
import numpy as np

asked = []

def price(rows):
    asked.append(len(rows))
    return (np.asarray(rows)[:, 0] * 1e6).astype(int)

def short(rows):
    return (np.asarray(rows)[:, 0] > 0)[:-1]

def skipping(rows):
    rows = np.asarray(rows)
    return (rows[:, 0] > 0)[rows[:, 1] < 1.3]
"""
PROGRAM = "import sys; lines = sys.stdin.read().split()[2:]; print(*('yes' for line in lines), sep='\\n')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("originals")
    (path / "nolabels.py").write_text(MODELS)
    (path / "program.py").write_text(PROGRAM)
    return path


def named(name, answer):
    answer.__name__ = name
    return answer


ONE_A_ROW = {
    "hundreds of numbers": lambda rows: (np.asarray(rows)[:, 0] * 500).astype(int),
    "numbers": lambda rows: (np.asarray(rows)[:, 0] * 1e6).astype(int),
    "ids": lambda rows: [f"id-{row[0]}" for row in np.asarray(rows).tolist()],
}


@pytest.mark.parametrize("kind", ONE_A_ROW)
@pytest.mark.parametrize("certificate_n", [0, 100])
def test_about_one_label_a_row_is_asked_about_before_more_is_paid(kind, certificate_n, tmp_path):
    original, asked = ONE_A_ROW[kind], []

    def counting(rows):
        asked.append(len(rows))
        return original(rows)

    settings = {**SMALL, "certificate_n": certificate_n}
    message = (
        r"expected labels that come more than once, found \d+ different ones in the first \d+ answers, .* --classes"
    )
    with pytest.raises(TooManyLabelsError, match=message) as caught:
        ec.copy_classifier(named("price", counting), SPACE, out=tmp_path / "run", **settings)
    assert caught.value.exit_code == 2
    assert sum(asked) == (certificate_n or 40)  # neither repeats nor, after the certificate's rows, any other
    assert sum(len(told[1]) for told in read_answers(tmp_path / "run" / "ledger.sqlite").values()) == sum(asked)


def test_the_command_asks_about_it(folder):
    options = ("--space", "normal:3", "--preset", "fast", "--budget", 120, "--certificate-n", 100)
    said = run_command("copy", "nolabels:price", *options, "--out", "price", cwd=folder)
    assert said.returncode == 2
    assert "is it a regression, or does it answer an id?" in said.stderr
    assert "goes on from there" not in said.stderr


def test_labels_that_were_declared_are_believed():
    names = np.array([f"label {k}" for k in range(400)])
    many = ec.Original(lambda rows: names[(np.abs(rows[:, 0]) * 1e5).astype(int) % 400], names.tolist(), name="many")
    with pytest.warns(ec.errors.EctypeWarning, match="none of the first"):
        result = ec.copy_classifier(many, SPACE, preset="fast", budget=120, certificate_n=100, repeat=0)
    assert result.queries["training"] == 120


def test_many_labels_are_not_mistaken_for_a_regression():
    bins = ec.Original(lambda rows: np.digitize(rows[:, 0], np.linspace(-2, 2, 60)), name="bins")
    result = ec.copy_classifier(bins, SPACE, preset="fast", budget=120, certificate_n=200, repeat=0)
    assert len(result.copy.classes) > 50


@pytest.mark.parametrize(
    ("scale", "words"), [(100, "a regression, or scores; make classes"), (0, 'decode="threshold"')]
)
def test_fractions_are_told_from_probabilities(scale, words):
    answer = (lambda rows: rows[:, 0] * scale) if scale else (lambda rows: 1 / (1 + np.exp(-rows[:, 0])))
    with pytest.raises(OriginalError, match=re.escape(words)):
        ec.copy_classifier(ec.Original(answer), SPACE, **SMALL)


# --- too few answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [None, 0.05, 0])
@pytest.mark.parametrize("name", ["short", "skipping"])
def test_too_few_labels_are_no_reason_for_more_retries(name, retries, folder):
    more = () if retries is None else ("--retries", retries)
    options = ("--space", "normal:3", "--preset", "fast", "--budget", 120, "--certificate-n", 100, *more)
    said = run_command("copy", f"nolabels:{name}", *options, "--out", f"{name}-{retries}", cwd=folder)
    assert said.returncode == 3
    assert re.search(r"expected one label per row, \d+ in all, found \d+", said.stderr)
    assert "--retries" not in said.stderr


@pytest.mark.parametrize("retries", [None, 0])
def test_a_program_that_prints_too_few_lines(folder, retries):
    original = ec.open_original(f"cmd:{sys.executable} {folder / 'program.py'}")
    with pytest.raises(AnswerCountError, match=r"expected (\d+) lines, one for each row, found \d+"):
        ec.copy_classifier(original, SPACE, retries=retries, **SMALL)


@pytest.mark.parametrize(("retries", "attempts"), [(0, 2), (0.5, 1)])
def test_an_endpoint_that_answers_too_few(retries, attempts):
    yes = lambda rows: np.full(len(rows), "yes")  # noqa: E731
    with FaultyServer(yes, faults=("few",), share=1.0) as server:
        original = open_http(server.url, protocol="instances", attempts=attempts, patience=FAST)
        with pytest.raises(AnswerCountError, match=r"wrong count: \d+ outputs for \d+ rows"):
            ec.copy_classifier(original, SPACE, retries=retries, **SMALL)
