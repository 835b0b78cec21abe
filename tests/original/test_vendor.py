"""vendor.toml says how an original is opened; a run remembers it, and none of its secrets."""

import json
import pickle
from hashlib import sha256
from pathlib import Path

import httpx2
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import ectype as ec
from commands import run_command
from ectype.errors import SettingError
from ectype.fleet import read_fleet
from ectype.original import open_original
from ectype.original.options import OPTIONS
from ectype.original.vendor import Vendor
from fault_server import TEMPLATE, FaultyServer
from server_process import Process

pytestmark = pytest.mark.usefixtures("small_lessons")

RUN = ("--space", "normal:2", "--budget", 60, "--certificate-n", 60)
ROWS = np.array([[-1.0, 0.0], [1.0, 0.0]])


def right(rows):
    return (np.asarray(rows, float)[:, 0] > 0).astype(int)


def words(rows):
    return np.where(right(rows), "yes", "no").tolist()


def write(path: Path, **values) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))
    return path


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_file_says_how_an_endpoint_is_opened(tmp_path, monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "hush-hush")
    folder = tmp_path / "vendors"
    with FaultyServer(words) as server:
        path = write(
            folder / "vendor.toml",
            original=server.url,
            classes=["no", "yes"],
            protocol="template",
            template="template.json",
            header=["X-Api-Key: env:VENDOR_KEY", "X-Model: 7"],
            request_rows=1,
            rate=1000,
        )
        (folder / "template.json").write_text(json.dumps(TEMPLATE))
        original = open_original(str(path))
        assert original.answer(ROWS[:1]).tolist() == ["no"]
        assert original.declared.classes.tolist() == ["no", "yes"]
        assert server.log[0].headers["X-Api-Key"] == "hush-hush"
        assert server.log[0].headers["X-Model"] == "7"
        assert original.request_rows == 1
        assert (
            original.opened
            == open_original(
                server.url,
                protocol="template",
                template=TEMPLATE,
                header=["X-Api-Key: env:VENDOR_KEY", "X-Model: 7"],
            ).opened
        )
        assert original.reopen().answer(ROWS[:1]).tolist() == ["no"]


def test_what_is_given_beside_the_file_goes_first(tmp_path):
    with FaultyServer(right) as server:
        path = write(
            tmp_path / "vendor.toml",
            original=server.url,
            protocol="v2",
            header=["X-Model: 7", "X-Region: eu"],
            request_rows=3,
        )
        wanted = open_original(str(path), [0, 1], protocol="instances", header=["x-model: 8"], rate=None)
        assert wanted.answer(ROWS).tolist() == [0, 1]
        assert (server.log[0].headers["x-model"], server.log[0].headers["X-Region"]) == ("8", "eu")
        assert (wanted.request_rows, wanted.declared.classes.tolist()) == (3, [0, 1])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("original = ", "a file in TOML"),
        ('classes = ["a"]', "original = "),
        ("original = 3", "original = "),
        ('original = "m:f"\nprotokol = "v2"', "is it 'protocol'?"),
        ('original = "m:f"\nclasses = "a,b"', "a list of labels"),
        ('original = "m:f"\ncost = -1', "a number of at least 0"),
        ('original = "m:f"\nrate = "fast"', "rate: expected a number"),
        ('original = "m:f"\nconcurrency = 2.5', "concurrency: expected a whole number"),
        ('original = "m:f"\nconcurrency = true', "concurrency: expected a whole number"),
        ('original = "m:f"\nheader = [1]', "header: expected a text, or a list of them"),
        ('original = "other.toml"', "an original itself"),
        ('original = "cmd:tail -n +2"\nprotocol = "v2"', "protocol: expected one of"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, named, tmp_path):
    (tmp_path / "vendor.toml").write_text(text)
    with pytest.raises(SettingError, match=named.replace("?", r"\?")):
        open_original(str(tmp_path / "vendor.toml"))
    refused = run_command("copy", "vendor.toml", "--out", "run", *RUN, cwd=tmp_path)
    assert (refused.returncode, named in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SettingError, match=r"vendor\.toml: expected a file in TOML"):
        open_original(str(tmp_path / "vendor.toml"))


def test_every_option_can_be_read(tmp_path):
    values = {"types": ["a.B"], "header": ["A: 1"], "template": "t.json", "threshold": 1, "rate": 0.5, "timeout": 3}
    whole = ("request_rows", "concurrency", "attempts", "workers")
    said = {name: values.get(name, 2 if name in (*whole, "poll") else "word") for name in OPTIONS}
    vendor = Vendor.read(write(tmp_path / "vendor.toml", original="m:f", cost=0.5, **said))
    assert (vendor.options, vendor.cost) == (said, 0.5)
    kept = vendor.remembered()
    assert "trust" not in kept
    assert kept["left_out"] == ["A"]
    assert {*OPTIONS} - {*kept} == {"trust", "header"}


def test_a_run_asks_its_original_again_without_being_told_how(tmp_path, monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "hush-hush")
    with FaultyServer(words) as server:
        write(
            tmp_path / "vendor.toml",
            original=server.url,
            classes=["no", "yes"],
            cost=0.002,
            protocol="template",
            template="template.json",
            header=["Authorization: Api-Key env:VENDOR_KEY"],
        )
        (tmp_path / "template.json").write_text(json.dumps(TEMPLATE))
        done = run_command("copy", "vendor.toml", "--out", "run", *RUN, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert b"hush-hush" not in everything(tmp_path / "run")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (tmp_path / "vendor.toml").unlink()

        before = server.asked
        refused = run_command("certify", "../run", "--n", 50, cwd=elsewhere)  # whose run.json may be anybody's
        assert (refused.returncode, server.asked) == (2, before)
        assert f"{server.url}, which is sent what VENDOR_KEY holds, as run.json says" in refused.stderr

        certified = run_command("certify", "../run", "run", "--n", 50, "--json", cwd=elsewhere)
        assert certified.returncode == 0, certified.stderr
        assert f"the original is {server.url}, as ../run remembers it; it is sent what VENDOR_KEY" in certified.stderr
        assert json.loads(certified.stdout)["queries"]["certificate"] == 50

        server.decide = lambda rows: words(-np.asarray(rows, float))
        renewed = run_command("refresh", "../run", "run", "--out", "new", "--json", cwd=elsewhere)
        assert renewed.returncode == 0, renewed.stderr
        assert json.loads(renewed.stdout)["verdict"] == "changed"
        assert ec.load(elsewhere / "new").vendor == ec.load(tmp_path / "run").vendor
        assert {seen.headers["Authorization"] for seen in server.log} == {"Api-Key hush-hush"}


@pytest.mark.parametrize("given", [("--fallback", "--agree", 0.6), ("--shadow", "run")])
def test_a_run_is_served_beside_its_original(given, tmp_path):
    with FaultyServer(right) as server:
        made = run_command("copy", server.url, "--protocol", "instances", "--out", "run", *RUN, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        before = server.asked
        arguments = [*map(str, given)]
        served = run_command("serve", "run", *arguments, "--workers", 2, cwd=tmp_path)  # refused for its workers
        assert (served.returncode, "--workers" in served.stderr) == (2, True)
        assert server.asked == before
        with Process("run", *arguments, cwd=tmp_path) as process:
            answer = httpx2.post(f"{process.url}/predict", json=[[1.0, 0.0], [-1.0, 0.0]], timeout=30)
            assert answer.status_code == 200, answer.text
            assert httpx2.get(f"{process.url}/{'cascade' if '--fallback' in given else 'shadow'}").status_code == 200


def test_what_may_be_secret_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "hush-hush")
    asked = ("--protocol", "instances", "--token-env", "VENDOR_KEY", "--header", "X-Model: quiet-quiet")
    with FaultyServer(right) as server:
        url = f"{server.url}/p?key=still-still"
        made = run_command("copy", url, "--out", "run", *asked, *RUN, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        found = everything(tmp_path / "run")
        for secret in (b"hush-hush", b"quiet-quiet", b"still-still"):
            assert secret not in found
        assert json.loads((tmp_path / "run" / "run.json").read_text())["vendor"] == {
            "original": f"{server.url}/p",
            "protocol": "instances",
            "token_env": "VENDOR_KEY",
            "left_out": ["query", "X-Model"],
        }
        before = server.asked
        refused = run_command("certify", "run", "run", cwd=tmp_path)
        assert refused.returncode == 2
        assert "the query in its URL" in refused.stderr
        assert "name the original with its URL" in refused.stderr
        assert server.asked == before


def test_a_header_that_is_not_remembered_is_asked_for(tmp_path):
    with FaultyServer(right) as server:
        asked = ("--protocol", "instances", "--header", "X-Model: quiet-quiet")
        made = run_command("copy", server.url, "--out", "run", *asked, *RUN, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        refused = run_command("certify", "run", "--n", 20, cwd=tmp_path)
        assert (refused.returncode, 'with --header "X-Model: VALUE"' in refused.stderr) == (2, True), refused.stderr
        given = run_command("certify", "run", "--n", 20, "--header", "x-model: quiet-quiet", cwd=tmp_path)
        assert given.returncode == 0, given.stderr
        assert server.log[-1].headers["x-model"] == "quiet-quiet"


def test_a_pickle_has_to_be_vouched_for_again(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(LogisticRegression().fit(X, X[:, 0] > 0)))
    trust = sha256((tmp_path / "model.pkl").read_bytes()).hexdigest()
    write(tmp_path / "vendor.toml", original="model.pkl", trust=trust)
    made = run_command("copy", "vendor.toml", "--out", "run", *RUN, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    kept = ec.load(tmp_path / "run").vendor
    assert kept == {"original": str(tmp_path / "model.pkl")}
    refused = run_command("certify", "run", cwd=tmp_path)
    assert (refused.returncode, "--trust SHA256" in refused.stderr) == (2, True), refused.stderr
    done = run_command("certify", "run", "--n", 20, "--trust", trust, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [("certify",), ("refresh",), ("serve", "--fallback"), ("serve", "--shadow")])
def test_a_run_of_an_object_says_what_to_do(command, tmp_path):
    ec.copy_classifier(right, ec.Space.normal(2), budget=60, certificate_n=60, out=tmp_path / "run")
    found = run_command(command[0], "run", *command[1:], cwd=tmp_path)
    assert found.returncode == 2
    assert "found one that was made of an object in memory, or by version 0.1; name the original: " in found.stderr


def test_a_run_goes_on_however_its_original_is_named(tmp_path):
    with FaultyServer(right) as server:
        made = run_command("copy", server.url, "--protocol", "instances", "--out", "run", *RUN, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        asked = server.asked
        write(tmp_path / "vendor.toml", original=server.url, protocol="instances", cost=1)
        again = run_command("copy", "vendor.toml", "--out", "run", *RUN, cwd=tmp_path)
        assert (again.returncode, server.asked) == (0, asked), again.stderr


def test_a_fleet_takes_the_file(tmp_path):
    write(
        tmp_path / "vendor.toml",
        original="https://vendor.example/score",
        classes=["no", "yes"],
        cost=0.5,
        protocol="template",
        template="template.json",
        rate=3,
    )
    (tmp_path / "template.json").write_text(json.dumps(TEMPLATE))
    table = '[[model]]\nname = "a"\noriginal = "vendor.toml"\nspace = "normal:2"\nrate = 7\n'
    (tmp_path / "FLEET.toml").write_text(table)
    (model,) = read_fleet(tmp_path / "FLEET.toml").models
    assert (model.original, model.host, model.cost) == ("https://vendor.example/score", "vendor.example", 0.5)
    assert model.classes == ["no", "yes"]
    assert model.options == {"protocol": "template", "template": str(tmp_path / "template.json"), "rate": 7}
    (tmp_path / "FLEET.toml").write_text(f"{table}cost = 0.25\nclasses = [0, 1]\n")
    (model,) = read_fleet(tmp_path / "FLEET.toml").models
    assert (model.cost, model.classes) == (0.25, [0, 1])


@pytest.mark.parametrize(
    "found",
    [
        {"original": "cmd:touch asked"},
        {"original": "mine:asked"},
        {"original": "other.toml"},
        {"original": "model.pkl", "trust": "0" * 64},
        {"original": "model.skops", "types": ["mine.Model"]},
        {"original": "https://vendor.example/score", "token_env": "VENDOR_KEY"},
        {"original": "https://vendor.example/score", "header": ["X-Api-Key: env:VENDOR_KEY"]},
        {"original": "https://vendor.example/score", "client_key": "key.pem"},
        {"original": "https://vendor.example/score", "protocol": "sagemaker"},
    ],
)
def test_what_a_stranger_could_gain_by_it_is_a_risk(found):
    assert Vendor._of("run.json", found).risk is not None


@pytest.mark.parametrize("name", ["model.onnx", "answers.csv", "https://vendor.example/score", "grpc://vendor:9000/m"])
def test_what_only_answers_is_none(name):
    assert Vendor._of("run.json", {"original": name}).risk is None
