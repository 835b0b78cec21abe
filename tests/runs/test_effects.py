"""Every setting either has an effect or is refused: measured by what is asked and by the copies that come of it."""

import re
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import ectype as ec
from commands import run_command
from ectype.errors import SettingError
from ectype.models.capacity import Capacity
from ectype.plan.effects import CONDITIONS, NO_ROWS, STORED
from ectype.plan.presets import PRESETS
from ectype.plan.resolve import resolve, resolve_decided
from ectype.plan.settings import METHODS, Settings
from ectype.plan.validation import MONOTONE, TREES
from ectype.runs.api import build_job, finish, run_job
from problems import disc

PLANE = ec.Space.normal(2)
BASE = {"budget": 500, "certificate_n": 40, "repeat": 0}
# Two values of every setting that may have no effect; between them, the outcome differs where it counts.
VALUES = {
    "batch": (90, 100),
    "iterations": (2, 3),
    "draw": ("random", "boundary"),
    "max_kept": (200, 250),
    "delta": (1e-9, 0.3),
    "method": ("pure", "sequential"),
    "memory": (0.5, 50.0),
    "penalty": ("bounded", "norm"),
    "schedule": (7, 9),
    "decay": (0.0, 0.5),
    "layers": ((5,), (6,)),
    "max_depth": (1, 2),
    "max_leaves": (2, 3),
    "confidence": (0.5, 0.9),
}
# What counts whatever the others are, or is said not to elsewhere: `until_flat` below, others beside an original.
ALWAYS = {
    *("budget", "seed", "preset", "to", "exclude", "certificate_n", "target", "max_bytes", "max_latency"),
    *("increasing", "decreasing", "scores", "progress", "until_flat", "rows_share", "repeat", "retries"),
}
# Ways to copy that differ in what counts: those of a network are quick, and every setting is measured.
WAYS = [
    *({"method": method, "preset": preset} for method in METHODS for preset in ("fast", "paper")),
    {"delta": 0.1},
    {"delta": 0.1, "memory": "none"},
    {"preset": "fast", "max_kept": 200},
    {"preset": "fast", "certificate_n": 0},
]
# Copies of other families take longer: of these, what counts because rows are chosen, or not because none is.
SLOWER = [
    ({"method": "one-shot", "to": "tree"}, ("batch", "schedule", "layers")),
    ({"to": "tree", "draw": "random"}, ("delta", "max_kept", "memory", "schedule", "max_depth")),
    ({"to": "linear", "batch": 100, "budget": 650}, ("delta", "layers")),
    ({"preset": "paper-staged", "to": "tree"}, ("max_kept", "decay")),
    ({"method": "online", "to": "linear"}, ("schedule", "max_leaves")),
]


@pytest.fixture(scope="module", autouse=True)
def hardly_any_effort():
    """Copies of other families are made of little, which is enough to tell one from another."""
    with pytest.MonkeyPatch.context() as patch:
        for name, preset in PRESETS.items():
            patch.setitem(PRESETS, name, replace(preset, effort=Capacity(share=0.05, free_rows=200)))
        yield


@cache
def _outcome(settings):
    asked = []

    def original(rows):
        asked.append(rows.tobytes())
        return disc(rows)

    plan = resolve_decided(Settings(**{**BASE, **dict(settings)}))
    result = finish(run_job(build_job(ec.Original(original, [False, True]), PLANE, plan)))
    made = [array.tobytes() for _, array in sorted(result.copy.model.state()[1].items())]
    proof = None if result.certificate is None else result.certificate.lower
    return sha256(b"".join(asked)).digest(), sha256(b"".join(made)).digest(), proof


def outcome(settings):
    """What is asked, the copy and its bound, of settings that are not checked for having an effect."""
    return _outcome(tuple(settings.items()))


def words(way):
    return " ".join(f"{key}={value}" for key, value in way.items()) if isinstance(way, dict) else ""


def refusal(settings):
    """The error of settings that would change nothing, if it is one."""
    try:
        resolve(Settings(**{**BASE, **settings}))
    except SettingError as error:
        return error
    return None


@pytest.mark.parametrize(("way", "names"), [*((way, tuple(VALUES)) for way in WAYS), *SLOWER], ids=words)
def test_a_setting_has_an_effect_or_is_refused(way, names):
    asked = {key: value for key, value in way.items() if key != "method" or refusal(way) is None}
    for name in sorted({*names} - way.keys()):
        values = VALUES[name]
        if name == "method" and way.keys() & {"delta", "max_kept"}:
            continue  # which would be refused beside it
        if name == "max_kept":
            room = max(resolve_decided(Settings(**{**BASE, **way})).ask.sizes)
            values = room, room + 20
        error = refusal({**asked, name: values[0]})
        if error is not None:
            assert "would change nothing" in str(error)
            assert (error.where, bool(error.hint)) == (name, True)
        alone = {"draw": "random"} if name == "layers" and error is not None and "draw" not in asked else {}
        one, other = (outcome({**asked, **alone, name: value}) for value in values)
        assert (one == other) == (error is not None), f"{name} with {words(way)}"


def test_every_setting_is_measured_or_always_counts():
    names = {part.name for part in fields(Settings)}
    assert VALUES.keys() | ALWAYS == names
    assert not VALUES.keys() & ALWAYS
    said = {name for one in (*CONDITIONS, STORED, NO_ROWS) for name in one.names}
    assert said == VALUES.keys() | {"until_flat", "rows_share", "repeat", "retries"}


def test_the_documents_list_all_that_may_have_no_effect():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "families.md").read_text()
    table = page.partition("## Settings that would change nothing")[2].partition("\n\nA limit")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    found = {word.partition("=")[0] for cell in first for word in re.findall(r"`([^`]+)`", cell)}
    assert found == {name for one in (*CONDITIONS, STORED, NO_ROWS) for name in one.names}


@pytest.mark.parametrize("budget", [100, 1000])
def test_one_shot_has_no_rounds_that_could_be_watched(budget):
    assert refusal({"method": "one-shot", "until_flat": True, "budget": budget}).where == "until_flat"
    growing, watched = (resolve(Settings(budget=budget, until_flat=flag)) for flag in (False, True))
    assert growing.ask.sizes != watched.ask.sizes


def test_pure_keeps_the_points_that_sequential_drops():
    """With the preset paper; elsewhere both keep all, and pure is refused."""
    kept = {}
    for method in ("sequential", "pure"):
        result = ec.copy_classifier(disc, PLANE, method=method, preset="paper", schedule=20, delta=None, **BASE)
        kept[method] = [record.kept for record in result.history]
    assert kept["pure"] == [100, 200, 300, 400, 500]
    assert kept["sequential"][-1] < 500
    for preset in ("default", "fast"):
        error = refusal({"method": "pure", "preset": preset})
        assert "pure counts only where sequential drops points: with the preset paper" in str(error)


@pytest.fixture
def table(tmp_path):
    rows = PLANE.sample(300, np.random.default_rng(0))
    frame = pd.DataFrame(rows, columns=["x0", "x1"]).assign(label=disc(rows))
    frame.to_csv(tmp_path / "answers.csv", index=False)
    return ec.open_original(str(tmp_path / "answers.csv"))


@pytest.mark.parametrize("given", [{"draw": "margin"}, {"repeat": 0.1}, {"retries": 1}, {"to": "tree", "schedule": 3}])
def test_what_stored_answers_cannot_do_is_refused(table, given):
    name = list(given)[-1]
    with pytest.raises(SettingError, match=f"^{name}: .*would change nothing"):
        ec.copy_classifier(table, PLANE, budget=100, certificate_n=50, **given)


def test_a_share_of_rows_needs_rows():
    with pytest.raises(SettingError, match=r"^rows_share: expected rows of your own.*give them with rows \(--rows\)"):
        ec.copy_classifier(disc, PLANE, rows_share=0.25, **BASE)  # even if it is the usual one


def test_estimators_and_remakes_refuse_likewise(tmp_path):
    rows = PLANE.sample(50, np.random.default_rng(0))
    with pytest.raises(SettingError, match=r"^batch: expected none for the method one-shot with a budget"):
        ec.SinglePassCopy(disc, batch=50).fit(rows)
    with pytest.raises(SettingError, match=r"^delta: expected the method sequential"):
        ec.OnlineCopy(disc, delta=0.1).fit(rows)
    ec.copy_classifier(disc, PLANE, preset="fast", budget=60, certificate_n=20, out=tmp_path / "run")
    with pytest.raises(SettingError, match=r"^max_leaves: expected a copy of trees"):
        ec.remake(tmp_path / "run", max_leaves=4)
    with pytest.raises(SettingError, match=r"^layers: expected a copy that is a network"):
        ec.remake(tmp_path / "run", to="tree", layers=(4,))


def test_the_command_says_what_would_make_an_option_count(tmp_path):
    (tmp_path / "mine.py").write_text("def disc(rows):\n    return (rows**2).sum(axis=1) < 1\n")
    copy = ("copy", "mine:disc", "--space", "normal:2", "--out", "run", "--preset", "fast")
    for option, value, hint in (
        ("--memory", "3", "let the method sequential drop some: with delta, or the preset paper"),
        ("--method", "pure", "pure counts only where sequential drops points"),
        ("--max-leaves", "8", "choose one of them with to (--to), or auto"),
    ):
        done = run_command(*copy, option, value, cwd=tmp_path)
        assert done.returncode == 2
        assert hint in done.stderr
        assert "will be asked" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_classifier_of_ones_own_has_no_layers_and_no_leaves_of_ours():
    for name, value in (("layers", (5,)), ("max_leaves", 4), ("max_depth", 2)):
        assert refusal({"to": LogisticRegression(), name: value}).where == name


def test_auto_chooses_among_families_that_can_be_held_to_the_limits():
    assert resolve(Settings(max_leaves=4)).make.families == resolve(Settings(max_depth=2)).make.families == TREES
    assert resolve(Settings(max_depth=2, increasing=["a"])).make.families == TREES
    assert resolve(Settings(increasing=["a"])).make.families == MONOTONE
    result = ec.copy_classifier(disc, PLANE, max_depth=1, budget=60, certificate_n=40)
    assert result.family in TREES
    assert {one["family"] for one in result.tried} == {*TREES}
