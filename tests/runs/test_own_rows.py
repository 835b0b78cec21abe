"""Rows of the user's own among the queries."""

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype.errors import EctypeWarning, OriginalError, SettingError, SpaceError
from ectype.original import open_original
from ectype.runs import model_selection
from ectype.space import outside_by_reason
from problems import loans

pytestmark = pytest.mark.usefixtures("small_lessons")

FRAME, LABELS = loans(900, 0)
SPACE = ec.Space.from_data(FRAME)
QUICK = {"certificate_n": 200, "repeat": 0, "budget": 400}


class Watched:
    """An original of one's own that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, frame):
        self.asked.append(frame)
        return np.where(frame["income"] > 3 * frame["debt"] + 20_000, "grant", "refuse")

    def own(self):
        """Which of the rows asked are rows of the user's own."""
        known = {tuple(row) for row in FRAME.astype(str).to_numpy()}
        return np.array([tuple(row) in known for row in pd.concat(self.asked).astype(str).to_numpy()])


@pytest.mark.parametrize("draw", ["committee", "random", "boundary", "balanced"])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_queries_are_rows_of_the_users_own(share, draw):
    original = Watched()
    result = ec.copy_classifier(original, SPACE, rows=FRAME, rows_share=share, draw=draw, **QUICK)
    assert result.queries["training"] == 400
    own = original.own()
    # 200 rows of the space, then training, then 200 held-out rows of the user's.
    assert own[:200].sum() <= 2  # rows of the space may coincide with them
    assert own[-200:].all()
    assert own[200:-200].mean() == pytest.approx(share, abs=0.02)


def test_the_certificate_on_them_is_from_rows_that_were_not_asked_before():
    original = Watched()
    result = ec.copy_classifier(original, SPACE, rows=FRAME, rows_share=1.0, **QUICK)
    frame = pd.concat(original.asked).astype(str)
    trained, held_out = ({tuple(row) for row in part.to_numpy()} for part in (frame[200:600], frame[600:]))
    assert not trained & held_out
    proof = result.certificate.on_data
    assert proof.n == result.queries["rows"] == 200
    assert 0.5 < proof.lower < proof.estimate <= 1
    assert result.certificate.n == 200


def test_they_bring_a_copy_nearer_to_the_original_on_such_rows():
    """What the space lacks: here, that two columns never are what they would be if they were independent."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 3000)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(scale=0.02, size=(3000, 2))
    space = ec.Space.from_data(ring)  # a copula cannot say that they lie on a circle

    def original(rows):
        return np.floor(np.arctan2(rows[:, 1], rows[:, 0]) * 20 / np.pi).astype(int) % 2

    found = {}
    for rows in (None, ring[:2000]):
        result = ec.copy_classifier(original, space, rows=rows, budget=800, certificate_n=0, repeat=0)
        found[rows is None] = (result.copy.predict(ring[2000:]) == original(ring[2000:])).mean()
    assert found[False] > found[True] + 0.01


def test_when_they_run_out_rows_of_the_space_follow():
    original = Watched()
    result = ec.copy_classifier(original, SPACE, rows=FRAME[:50], rows_share=1.0, **QUICK)
    assert result.queries == {"training": 400, "certificate": 200, "repeat": 0, "rows": 25}
    assert original.own()[200:600].sum() == 25


def test_a_run_with_rows_is_recognised_by_them_and_resumes(tmp_path):
    original, left = Watched(), [350]

    def failing(frame):
        left[0] -= len(frame)
        if left[0] < 0:
            raise RuntimeError("gone")
        return original(frame)

    def copied(out, rows):
        asked = ec.Original(failing, ["grant", "refuse"], name="mine")
        return ec.copy_classifier(asked, SPACE, rows=rows, out=tmp_path / out, **QUICK)

    with pytest.raises(OriginalError, match="gone"):
        copied("run", FRAME)
    left[0] = 10**6
    assert copied("run", FRAME).certificate == copied("whole", FRAME).certificate
    files = [(tmp_path / out / "copy.safetensors").read_bytes() for out in ("run", "whole")]
    assert files[0] == files[1]
    with pytest.raises(ec.errors.DirectoryError, match="rows"):
        copied("run", FRAME[:800])
    with pytest.raises(ec.errors.DirectoryError, match="rows"):
        copied("run", None)


def test_rows_of_other_columns_are_refused_before_anything_is_asked():
    original = Watched()
    with pytest.raises(SpaceError, match=r"rows: .*income"):
        ec.copy_classifier(original, SPACE, rows=FRAME.drop(columns="income"), **QUICK)
    with pytest.raises(SettingError, match="rows_share: expected a share from 0 to 1"):
        ec.copy_classifier(original, SPACE, rows=FRAME, rows_share=1.5, **QUICK)
    assert not original.asked


def test_stored_answers_cannot_be_asked_about_them(tmp_path):
    FRAME.assign(label=LABELS).to_csv(tmp_path / "answers.csv", index=False)
    table = open_original(str(tmp_path / "answers.csv"))
    with pytest.raises(SettingError, match="rows: expected an original that can be asked about new rows"):
        ec.copy_classifier(table, SPACE, rows=FRAME, budget=400, certificate_n=200)


def test_the_command_takes_rows_and_announces_what_they_cost(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"]).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "mine.py").write_text("def disc(rows):\n    return (rows**2).sum(axis=1) < 1\n")
    done = run_command("space", "rows.csv", "--out", "space.json", cwd=tmp_path)
    assert done.returncode == 0
    settings = ("--budget", "200", "--certificate-n", "100", "--repeat", "0")
    done = run_command(
        "copy", "mine:disc", "--space", "space.json", "--rows", "rows.csv", *settings, "--out", "run", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert (
        "100 for the certificate, 100 for one on your rows, 0 again and 100 if requests fail, 500 in all" in done.stderr
    )
    assert "rows of your own; with 95% confidence" in " ".join(done.stdout.split())
    assert ec.load(tmp_path / "run").certificate.on_data.n == 100


@pytest.mark.parametrize(("share", "times"), [(0.0, 1), (0.25, 3), (0.5, 1)])
def test_copies_are_made_of_points_in_which_ones_own_rows_count_as_much_as_all_others(share, times, monkeypatch):
    made = []

    def watched(plan, space, view, paid, *rest):
        made.append(paid)
        return workshop(plan, space, view, paid, *rest)

    workshop = model_selection.fit_context
    monkeypatch.setattr("ectype.runs.pipeline.fit_context", watched)
    ec.copy_classifier(Watched(), SPACE, rows=FRAME, rows_share=share, preset="default", **QUICK)
    (paid,) = made
    _, counts = np.unique(paid.X, axis=0, return_counts=True)
    own = round(400 * share)
    assert len(paid) == pytest.approx(400 + (times - 1) * own, abs=6)  # of every round, a share that is whole
    assert (counts == times).sum() == pytest.approx(own if times > 1 else 400, abs=3)
    assert len(paid.y) == len(paid.X)


def test_random_queries_ask_about_no_row_of_ones_own_twice():
    original = Watched()
    ec.copy_classifier(original, SPACE, rows=FRAME, rows_share=1.0, draw="random", **QUICK)
    trained = pd.concat(original.asked)[200:600].astype(str)
    assert len(trained.drop_duplicates()) == len(trained) == 400


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_rows_whose_answers_are_given_are_not_asked_again(share):
    """They teach the copy already, and certify nothing: all that is paid for counts."""
    allowed = FRAME[~np.any([*outside_by_reason(SPACE, SPACE.read(FRAME, "rows")).values()], axis=0)]
    known = allowed[: int(share * len(allowed))]
    told, original = known.assign(label=Watched()(known)), Watched()
    if share < 1:
        result = ec.copy_classifier(original, SPACE, rows=allowed, answers=told, **QUICK)
        proof = result.certificate.on_data
        assert (proof.n, proof.reasons) == (result.queries["rows"], {"taught": len(known)})
    else:
        with pytest.warns(EctypeWarning, match=f"none of these {len(known)} rows is left to certify on"):
            result = ec.copy_classifier(original, SPACE, rows=allowed, answers=told, **QUICK)
        assert result.certificate.on_data is None
    rows = {tuple(row) for row in known.astype(str).to_numpy()}
    again = [tuple(row) in rows for part in original.asked for row in part.astype(str).to_numpy()]
    assert sum(again) == result.queries["same"]  # those that tell whether the original is the same
