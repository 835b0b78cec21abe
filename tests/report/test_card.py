"""The card of a copy says what its directory holds, and nothing from outside breaks out of its cells."""

import hashlib
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import ectype as ec
from ectype.cli import cli
from ectype.errors import DirectoryError
from ectype.report import model_card

SPACE = ec.Space.from_json(
    json.dumps(
        {
            "columns": [
                {"name": "a|b", "kind": "float", "mean": 0, "std": 1},
                {"name": "city", "kind": "category", "levels": ["<b>Bonn</b>", "Ni`ce"]},
            ],
            "rules": ["`a|b` < 3"],
        }
    )
)


def labels(frame):
    return np.where(frame["a|b"] > 2.2, "*rare*", np.where(frame["a|b"] > 0, "yes", "no"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "run"
    settings = {"budget": 200, "certificate_n": 1000, "schedule": 20, "to": "tree", "exclude": ["city"]}
    with pytest.warns(ec.errors.EctypeWarning, match="none of the first 1040 answers was 'never'"):
        return path, ec.copy_classifier(labels, SPACE, out=path, classes=["no", "yes", "*rare*", "never"], **settings)


def test_the_card_says_what_the_run_holds(run):
    path, result = run
    text = model_card(path)
    assert text.startswith("# A copy of labels")
    assert f"{result.certificate.estimate:.4f}, at least {result.certificate.lower:.4f} with 95% confidence" in text
    assert f"| for training | {result.queries['training']} |" in text
    assert "| tree | " in text
    assert "The copy does not see city" in text
    assert "None of the certificate's rows was 'never' to the original." in text
    assert f"They differ on {result.certificate.differences.n} of these rows." in text
    few = result.certificate.per_class["*rare*"].n
    assert f"Only {few} of the certificate's rows were '\\*rare\\*' to the original" in text
    for name in ("copy.safetensors", "run.json", "ledger.sqlite"):
        assert hashlib.sha256((path / name).read_bytes()).hexdigest() in text
    for setting, value in (("seed", 0), ("budget", 200)):
        assert f"| {setting} | {value} |" in text
    assert f"| kernel | {result.versions['kernel']} |" in text
    assert f"| numpy | {result.versions['numpy']} |" in text


def test_names_and_levels_stay_in_their_cells(run):
    text = model_card(run[0])
    assert "<b>" not in text
    lines = [line for line in text.splitlines() if "Bonn" in line]
    assert lines == [r"| city | category | \<b\>Bonn\</b\>, Ni\`ce | 0.0% | no |"]
    assert r"| a\|b | float |" in text


def test_a_copy_without_certificate_ledger_or_choice(tmp_path):
    result = ec.copy_classifier(labels, SPACE, budget=100, certificate_n=0, schedule=5)
    result.save(tmp_path / "saved")
    text = model_card(tmp_path / "saved")
    assert "There is no certificate: the run was asked for none." in text
    assert "Only blend: no other family was made to compare it with." in text


def test_an_original_that_changes_its_mind(tmp_path):
    rng = np.random.default_rng(0)
    with pytest.warns(ec.errors.EctypeWarning, match="differently when asked again"):
        ec.copy_classifier(
            lambda rows: rng.integers(0, 2, len(rows)), ec.Space.normal(1), out=tmp_path / "run", budget=200
        )
    text = model_card(tmp_path / "run")
    assert re.search(
        r"- The original answered \d+ of 44 rows differently when asked again: no copy can .*, with 95% conf", text
    )
    assert "| where the copy is unsure | " in text


def test_the_command(run, tmp_path):
    path, _ = run
    assert CliRunner().invoke(cli, ["card", str(path)]).stdout.strip() == str(path / "card.md")
    shown = CliRunner().invoke(cli, ["card", str(path), "--out", str(tmp_path / "c.md"), "--json"])
    assert json.loads(shown.stdout) == {"card": str(tmp_path / "c.md")}
    assert (tmp_path / "c.md").read_text() == model_card(path)
    with pytest.raises(DirectoryError, match="a file of a finished run"):
        CliRunner().invoke(cli, ["card", str(tmp_path / "none")], catch_exceptions=False)


def test_the_certificates_of_rows_of_ones_own_are_on_the_card(tmp_path):
    sign = ec.Original(lambda rows: np.where(rows[:, 0] > 1, "yes", "no"), ["no", "yes"], name="sign")
    rows = np.random.default_rng(0).normal(size=(120, 3))
    settings = {"preset": "fast", "budget": 90, "certificate_n": 200, "repeat": 0}
    result = ec.copy_classifier(sign, ec.Space.normal(3), rows=rows, out=tmp_path / "run", **settings)
    own, text = result.certificate.on_data, model_card(tmp_path / "run")
    assert own.n == 60
    assert f"| fidelity on rows of your own | {own.estimate:.4f}, at least {own.lower:.4f} with 95% confidence." in text
    _, part = text.split("### The certificate on rows of your own")
    assert f"| all | 60 | {own.estimate:.4f} | {own.lower:.4f} |" in part
    assert f"| the original says 'yes' | {own.per_class['yes'].n} |" in part


@pytest.mark.parametrize("to", [None, "auto"])
def test_no_family_is_said_to_be_asked_for(to, tmp_path, small_lesson):
    ec.copy_classifier(labels, SPACE, to=to, budget=60, certificate_n=0, repeat=0, schedule=5, out=tmp_path / "run")
    text = model_card(tmp_path / "run")
    assert "Only blend: no other family was made to compare it with." in text
    assert "asked for." not in text.partition("## Families tried")[2]
