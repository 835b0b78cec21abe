"""Where copy and original differ: bounds near the boundary, flips, honest rules, examples, and the user's own rows."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import ectype as ec
from ectype.certificate.bounds import bound_of
from ectype.certificate.certificate import Certificate
from ectype.certificate.certify import certify
from ectype.conditions.conditions import logic_of
from ectype.errors import SettingError, SpaceError
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import fit
from ectype.space import UNKNOWN_LEVEL, Encoding
from problems import disc

PLANE = ec.Space.normal(2)


def right(rows):
    return np.asarray(rows)[:, 0] > 0


def but_above(rows):
    """The same, except in a corner."""
    return right(rows) ^ (np.asarray(rows)[:, 1] > 1.2)


def mixed(rng, n=600):
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "plan": rng.choice(["pro", "plus", "basic"], n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "flag": rng.uniform(size=n) < 0.4,
            "rooms": rng.integers(1, 6, n),
            "income": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    return frame, ec.Space.from_data(frame)


@pytest.fixture(scope="module")
def result():
    original = ec.Original(lambda rows: np.where(disc(rows), "in", "out"), name="disc")
    return ec.copy_classifier(original, PLANE, budget=200, schedule=20, certificate_n=1000)


def test_a_rule_says_where_and_how_often():
    (rule,) = certify(right, but_above, PLANE, n=4000).differences.rules
    name, sign, cut = rule.text.split()
    assert (name, sign) == ("x1", ">")
    assert float(cut) == pytest.approx(1.2, abs=0.05)
    assert len(cut) <= 6
    assert rule.share > 0.95
    assert rule.share > rule.lower > 0.9
    assert 150 < rule.n < 320  # of the half it was not found on


def test_rules_are_not_read_out_of_chance():
    """Copies that err anywhere: at most one certificate in twenty may show a rule, on average."""
    shown = 0
    for seed in range(40):
        noise = np.random.default_rng(seed)
        proof = certify(lambda rows, noise=noise: right(rows) ^ (noise.random(len(rows)) < 0.05), right, PLANE, 1000)
        shown += bool(proof.differences.rules)
        assert proof.differences.note or proof.differences.rules
    assert shown <= 5


@pytest.mark.parametrize(("original", "note"), [(right, "none of the rows"), (lambda rows: rows[:, 0] > 0.01, "few")])
def test_too_few_disagreements_have_no_rules(original, note):
    found = certify(right, original, PLANE, 500).differences
    assert not found.rules
    assert note in found.note


def test_regions_hold_just_the_rows_that_the_tree_sends_there(rng):
    _, space = mixed(rng)
    rows, encode = space.sample(3000, rng), Encoding(space)
    y = ((rows[:, 0] > 40) & (rows[:, 1] != 1) | (rows[:, 4] == 3) | np.isnan(rows[:, 5])).astype(int)
    copy = CopyClassifier(fit("tree", encode(rows), y, 2), np.array(["no", "yes"]), space)
    tree = logic_of(copy)
    fresh = space.sample(3000, rng)
    fresh[:100, 1] = UNKNOWN_LEVEL
    fresh[50:150, 2] = UNKNOWN_LEVEL
    held = np.array([tree.holds(region, fresh) for region in tree.regions])
    assert (held.sum(axis=0) == 1).all()
    codes = np.array([region.code for region in tree.regions])
    np.testing.assert_array_equal(codes[held.argmax(axis=0)], copy.decide(encode(fresh)))


def test_near_and_away_share_the_rows_by_the_copys_margin(result):
    proof = result.certificate
    assert proof.near.n + proof.away.n == proof.n
    assert proof.near.n / proof.n == pytest.approx(0.2, abs=0.05)
    assert proof.near.estimate < proof.estimate < proof.away.estimate
    assert proof.near.estimate * proof.near.n + proof.away.estimate * proof.away.n == pytest.approx(
        proof.estimate * proof.n
    )


def test_a_copy_that_is_equally_sure_everywhere_has_no_boundary_to_be_near_to(rng):
    X = rng.normal(size=(500, 2))
    copy = CopyClassifier(fit("tree", Encoding(PLANE)(X), disc(X).astype(int), 2), np.array([False, True]), PLANE)
    proof = certify(copy, disc, PLANE, 500)
    assert (proof.near, proof.away, proof.margin) == (None, None, None)
    assert certify(right, disc, PLANE, 500).near is None  # and one that does not say how sure it is


def test_any_classifier_with_probabilities_has_a_boundary(rng):
    X = rng.normal(size=(500, 2))
    proof = certify(LogisticRegression().fit(X, right(X)), but_above, PLANE, 1000)
    assert proof.near.n > 100


def test_examples_are_of_every_kind_and_true(result):
    def thirds(rows):
        return np.digitize(np.asarray(rows)[:, 0], [-1.0, 1.0])

    def swapped(rows):
        return np.where(np.asarray(rows)[:, 1] > 1, 2 - thirds(rows), thirds(rows))

    found = certify(swapped, thirds, PLANE, 2000).differences
    assert {(flip.original, flip.copy) for flip in found.flips} == {(0, 2), (2, 0)}
    assert sum(flip.n for flip in found.flips) == found.n
    assert [(example.original, example.copy) for example in found.examples[:2]] in (
        [(0, 2), (2, 0)],
        [(2, 0), (0, 2)],
    )
    assert len(found.examples) == 10
    rows = np.array([list(example.row.values()) for example in found.examples])
    assert thirds(rows).tolist() == [example.original for example in found.examples]
    assert swapped(rows).tolist() == [example.copy for example in found.examples]


def test_labels_of_other_types_are_flips_too():
    found = certify(lambda rows: [1] * len(rows), lambda rows: ["a"] * len(rows), PLANE, 100).differences
    assert [(flip.original, flip.copy, flip.n) for flip in found.flips] == [("a", 1, 100)]


def test_a_certificate_survives_json_whole(rng):
    frame, space = mixed(rng)
    original = ec.Original(lambda rows: np.where(rows["income"].isna(), "gap", "number"))
    copy = ec.Original(lambda rows: np.where(rows["income"] > 1, "number", "gap"))
    proof = certify(copy, original, space, 800, data=frame)
    assert proof.differences.rules
    assert proof.on_data.differences.examples
    assert Certificate.from_json(json.loads(json.dumps(proof.as_json()))) == proof
    assert any(example.row["income"] is not None for example in proof.differences.examples)


def test_runs_saved_before_there_were_differences_still_load(result, tmp_path):
    path = result.save(tmp_path / "copy") / "run.json"
    content = json.loads(path.read_text())
    assert ec.load(tmp_path / "copy").certificate == result.certificate
    for name in ("level", "margin", "near", "away", "differences", "on_data", "distinct", "left_out"):
        del content["certificate"][name]
    del content["diagnosis"], content["checksums"], content["files"], content["ledger"]
    path.write_text(json.dumps({**content, "format": 1}))
    with pytest.warns(ec.errors.EctypeWarning, match="without checksums"):
        old = ec.load(tmp_path / "copy")
    assert old.certificate.lower == result.certificate.lower
    assert old.certificate.differences is None


def test_no_row_of_stored_answers_is_kept_as_an_example(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(700, 2)), columns=["a", "b"])
    frame.assign(label=disc(frame.to_numpy()).astype(int)).to_csv(tmp_path / "answers.csv", index=False)
    table = ec.open_original(str(tmp_path / "answers.csv"))
    result = ec.copy_classifier(table, ec.Space.from_data(table.stored[0]), budget=100, certificate_n=500)
    assert result.certificate.differences.n > 0
    assert result.certificate.differences.examples == ()


@pytest.mark.filterwarnings("ignore:.*levels that its space does not have")
def test_levels_too_rare_for_the_space_count_as_the_copy_takes_them(tmp_path, rng):
    frame, _ = mixed(rng)
    frame.loc[:3, "plan"] = "rare"
    frame.assign(label=frame["plan"].isin(["pro", "rare"])).to_csv(tmp_path / "answers.csv", index=False)
    table = ec.open_original(str(tmp_path / "answers.csv"))
    space = ec.Space.from_data(table.stored[0])
    result = ec.copy_classifier(table, space, budget=100, certificate_n=500)
    proof = certify(result.copy, table, space, 600)
    for one in (result.certificate, proof):
        assert one.differences.n == round((1 - one.estimate) * one.n)
    predicted = result.copy.predict(frame) == frame["plan"].isin(["pro", "rare"])
    assert proof.estimate == pytest.approx(predicted.mean())
    assert len(proof.differences.examples) == min(10, proof.differences.n - 4 + predicted[:4].sum())


# --- rows of the user's ---------------------------------------------------------------------------------------------


def test_data_is_certified_apart_and_every_different_row_asked_once(rng):
    frame, space = mixed(rng)
    asked = []

    def original(rows):
        asked.append(len(rows))
        return rows["age"] > 40

    data = pd.concat([frame, frame.iloc[:100]])
    proof = certify(lambda rows: rows["age"] > 45, original, space, 300, data=data)
    different = len(frame.drop_duplicates())
    assert sum(asked) == 300 + different
    assert (proof.on_data.n, proof.on_data.distinct, proof.on_data.left_out) == (700, different, 0)
    agree = (data["age"] > 45) == (data["age"] > 40)
    assert proof.on_data.estimate == agree.mean()
    assert proof.on_data.lower == bound_of(agree.to_numpy(), 0.95).lower
    assert proof.n == 300
    assert {example.row["age"] for example in proof.on_data.differences.examples} <= set(range(41, 46))


def test_levels_that_the_space_does_not_know_are_left_out_and_counted(rng):
    frame, space = mixed(rng)
    data = frame.assign(plan=["new"] * 7 + frame["plan"].tolist()[7:])

    def original(rows):
        assert set(rows["plan"]) <= {"pro", "plus", "basic"}
        return rows["age"] > 40

    proof = certify(original, original, space, 100, data=data)
    assert (proof.on_data.n, proof.on_data.left_out) == (593, 7)
    with pytest.raises(SpaceError, match=r"data: .* found none of 7: 7 have a level that the space does"):
        certify(original, original, space, 100, data=data.iloc[:7])
    with pytest.raises(SpaceError, match="found no 'plan' among those given"):
        certify(original, original, space, 100, data=frame.drop(columns="plan"))


def test_a_space_without_a_frame_takes_its_columns_by_name_or_all_there_are(rng):
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["x1", "id", "x0"])
    by_name = certify(right, right, PLANE, 10, data=frame).on_data
    assert by_name.per_class[True].n == (frame["x0"] > 0).sum()
    rows = frame.drop(columns="id").set_axis(["a", "b"], axis=1)
    assert certify(right, right, PLANE, 10, data=rows).on_data.per_class[True].n == (rows["a"] > 0).sum()
    with pytest.raises(SpaceError, match="data: expected rows of 2 columns, found 3"):
        certify(right, right, PLANE, 10, data=frame.to_numpy())


def test_stored_answers_say_nothing_of_other_rows(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    frame.assign(label=1).to_csv(tmp_path / "answers.csv", index=False)
    table = ec.open_original(str(tmp_path / "answers.csv"))
    with pytest.raises(SettingError, match="data: expected an original that can be asked about new rows"):
        certify(right, table, ec.Space.from_data(frame), 10, data=frame)
