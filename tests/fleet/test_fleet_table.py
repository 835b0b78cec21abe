"""FLEET.toml: what a table may say, and what is wrong with others."""

import pytest

from ectype.errors import SettingError
from ectype.fleet import read_fleet

TABLE = """
[limits]
queries = 1000
cost = 2.5
per = "day"
[limits.hosts]
"Scoring.example" = 20
"*" = 100

[defaults]
space = "spaces/{name}.json"
budget = 500
check = 50

[[model]]
name = "churn"
original = "https://scoring.example:8443/v2/models/{name}"
protocol = "v2"
header = ["X-Key: env:KEY"]
target = 0.95
every = "12h"
cost = 0.001

[[model]]
files = "models/*.onnx"
to = "tree"
exclude = ["age"]
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "FLEET.toml").write_text(text)
        return tmp_path / "FLEET.toml"

    for name in ("models/b.onnx", "models/a.onnx", "spaces/a.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return write


def test_a_table_with_defaults_globs_and_limits(written, tmp_path):
    fleet = read_fleet(written(TABLE))
    churn, a, b = fleet.models
    assert (churn.name, churn.original) == ("churn", "https://scoring.example:8443/v2/models/churn")
    assert churn.settings == {"budget": 500, "target": 0.95}
    assert churn.options == {"protocol": "v2", "header": ["X-Key: env:KEY"]}
    assert (churn.every, churn.cost, churn.check, churn.host) == (43200.0, 0.001, 50, "scoring.example:8443")
    assert churn.space == "spaces/churn.json"  # which is not there: an error of its own, when it is read
    assert (a.name, a.original, a.space) == (
        "a",
        str(tmp_path / "models/a.onnx"),
        str(tmp_path / "spaces/a.json"),
    )
    assert (b.name, b.settings, b.host) == ("b", {"budget": 500, "to": "tree", "exclude": ["age"]}, "")
    assert fleet.limits.rate(churn.host) == 20
    assert (fleet.limits.queries, fleet.limits.cost, fleet.limits.per) == (1000, 2.5, "day")


ONE = '[[model]]\nname = "a"\noriginal = "m:f"\nspace = "normal:2"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[model", "expected a table in TOML"),
        ("", r"at least one \[\[model\]\], found none"),
        (f"{ONE}budgett = 3\n", "keys that it knows, found 'budgett'; is it 'budget'?"),
        (f"[defaults]\nnmae = 1\n{ONE}", r"\[defaults\]: expected keys that it knows, found 'nmae'"),
        (f"[limts]\n{ONE}", "found 'limts'; is it 'limits'?"),
        (f'[limits]\nper = "week"\n{ONE}', "per: expected one of 'ever', 'month', 'day', found 'week'"),
        (f'[limits]\nhosts = {{"a" = 0}}\n{ONE}', "hosts: a: expected a number of rows a second above 0, found 0"),
        (f"[limits]\nqueries = -1\n{ONE}", "queries: expected a whole number of at least 0"),
        (f"{ONE}{ONE}", "model 2: expected a name of its own, found 'a'"),
        ('[[model]]\noriginal = "m:f"\n', "model 1: expected name = a text, found none"),
        ('[[model]]\nname = "a/b"\noriginal = "m:f"\n', "name: expected letters, digits, dots, dashes"),
        ('[[model]]\nname = "a"\nspace = "normal:2"\n', r"model 1 \(a\): expected original = a text, found none"),
        ('[[model]]\nfiles = "*.pmml"\nspace = "normal:2"\n', "files such as .*pmml, found none in"),
        ('[[model]]\nfiles = "*"\nname = "a"\n', "files, or a name and an original, found both"),
        (f'{ONE}every = "often"\n', "every: expected a time such as 30m, 12h or 1d, found 'often'"),
        (f"{ONE}cost = -1.0\n", "cost: expected a number of at least 0"),
    ],
)
def test_tables_that_are_none(written, text, says):
    with pytest.raises(SettingError, match=says):
        read_fleet(written(text))
