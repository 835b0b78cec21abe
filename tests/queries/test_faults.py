"""Whole runs against a server that fails: the same copy as from a healthy one, or an end that names its cause."""

import json

import numpy as np
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.errors import OriginalError, OutageError
from ectype.original.http import RetryWaits, open_http
from fault_server import RECOVERABLE, TEMPLATE, FaultyServer, Refused

QUICK = RetryWaits(first=0.002, most=0.02, jitter=0.002)
# With room for as many retries as a busy machine may cause: how many there are is tested in test_budget.py.
RUN = {"budget": 300, "batch": 50, "schedule": 20, "certificate_n": 200, "seed": 3, "retries": 1.0}
SPACE = ec.Space.normal(3)


def rings(rows):
    return np.digitize((np.asarray(rows, float) ** 2).sum(axis=1), [1, 3]).tolist()


def copied(url, out, protocol="template", **options):
    template = TEMPLATE if protocol == "template" else None
    options = {"request_rows": 20, "concurrency": 4, "timeout": 0.4, "attempts": 8, **options}
    box = open_http(url, [0, 1, 2], protocol=protocol, template=template, patience=QUICK, **options)
    return ec.copy_classifier(box.but(name="rings"), SPACE, out=out, **RUN)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """The copy that a server without faults gives."""
    out = tmp_path_factory.mktemp("healthy") / "run"
    with FaultyServer(rings, share=0) as server:
        copied(server.url, out, timeout=20)  # a busy machine is no fault
        assert server.asked == 510
    return (out / "copy.safetensors").read_bytes()


@pytest.mark.parametrize("protocol", ["template", "instances", "v2", "seldon", "mlflow", "csv"])
def test_ten_percent_of_faults_change_nothing(protocol, healthy, tmp_path):
    # Only this server's own protocol says which answer belongs to which row, and so can be answered out of order.
    faults = (*RECOVERABLE, "shuffled", "strange ids") if protocol == "template" else RECOVERABLE
    with FaultyServer(rings, faults, share=0.1, seed=len(protocol)) as server:
        copied(server.url + ("/v2/models/m" if protocol == "v2" else ""), tmp_path / "run", protocol)
        failed = sum(seen.fault not in (None, "shuffled") for seen in server.log)
    assert failed > 0
    assert (tmp_path / "run" / "copy.safetensors").read_bytes() == healthy
    found = ledger.summarise_ledger(tmp_path / "run" / "ledger.sqlite")
    assert (found.answered, found.asked) == (510, server.asked)
    assert sum(found.failures.values()) >= failed - 1


def test_an_outage_ends_the_run_and_the_same_call_resumes(healthy, tmp_path):
    out = tmp_path / "run"
    with FaultyServer(rings, ["503"], share=1, plan=[None] * 15) as server:
        with pytest.raises(OriginalError, match="503"):
            copied(server.url, out, attempts=3)
        kept = ledger.summarise_ledger(out / "ledger.sqlite").answered
        assert kept == sum(len(seen.rows) for seen in server.log if seen.fault is None) > 200
    with FaultyServer(rings, share=0) as server:
        copied(server.url, out, timeout=20)  # a busy machine is no fault
        assert server.asked == 510 - kept
    assert (out / "copy.safetensors").read_bytes() == healthy


def test_a_poison_row_is_named_and_the_rest_is_kept(tmp_path):
    def decide(rows):
        if (np.asarray(rows, float)[:, 0] > 2.5).any():
            raise Refused("422")
        return rings(rows)

    with FaultyServer(decide, share=0) as server, pytest.raises(OriginalError) as caught:
        copied(server.url, tmp_path / "run", concurrency=1)
    assert not isinstance(caught.value, OutageError)
    row = json.loads(str(caught.value.found).partition("for the row ")[2].removesuffix(" alone"))
    assert row[0] > 2.5
    asked = ledger.query_table(tmp_path / "run" / "ledger.sqlite", SPACE)
    answered = asked[asked["label"].notna()]
    assert len(answered) >= 20
    assert (answered["label"] == rings(answered[["x0", "x1", "x2"]])).all()


def test_the_command_keeps_the_token_to_itself(tmp_path, monkeypatch):
    secret = "s3cret-t0ken-for-nobody"
    monkeypatch.setenv("BOX_TOKEN", secret)
    (tmp_path / "template.json").write_text(json.dumps(TEMPLATE))
    arguments = ["--space", "normal:3", "--budget", 100, "--certificate-n", 100, "--protocol", "template", "--template",
                 "template.json", "--classes", "0,1,2", "--token-env", "BOX_TOKEN", "--attempts", 2]  # fmt: skip
    with FaultyServer(rings, share=0) as server:
        out = run_command("copy", server.url, "--out", "run", *arguments, cwd=tmp_path)
        assert out.returncode == 0, out.stderr
        assert server.log[0].headers["Authorization"] == f"Bearer {secret}"
    with FaultyServer(rings, ["401"], share=1) as server:
        refused = run_command("copy", server.url, "--out", "other", *arguments, cwd=tmp_path)
    assert refused.returncode == 3
    assert "the token in the environment variable BOX_TOKEN was refused" in refused.stderr
    for path in (*(tmp_path / "run").iterdir(), *(tmp_path / "other").iterdir()):
        assert secret.encode() not in path.read_bytes()
    assert secret not in out.stdout + out.stderr + refused.stdout + refused.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["http://127.0.0.1:9/", "--protocol", "instances", "--attempts", "1"], 3, "ConnectionRefusedError"),
        (["http://127.0.0.1:9/", "--protocol", "soap"], 2, "found 'soap'"),
        (["http://127.0.0.1:9/"], 2, "protocol"),
        (["http://127.0.0.1:9/", "--protocol", "csv", "--token-env", "NO_SUCH"], 2, "the environment variable NO_SUCH"),
        (["http://127.0.0.1:9/", "--protocol", "csv", "--trust", "abc"], 2, "trust: expected one of protocol"),
        (["model.onnx"], 2, "model.onnx"),
        (["model.pkl"], 2, "--trust"),
        (["model.pkl", "--trust", "0" * 64], 2, "0" * 64),
        (["cmd:no-such-program-anywhere"], 2, "a program that can be run"),
        (["answers.csv"], 2, "a column 'label' with the answers"),
    ],
)
def test_originals_that_cannot_be_opened_or_reached(arguments, code, message, tmp_path):
    (tmp_path / "model.onnx").write_text("not a model")
    (tmp_path / "model.pkl").write_bytes(b"not a pickle")
    (tmp_path / "answers.csv").write_text("a,b\n1,2\n")
    out = run_command("copy", *arguments, "--space", "normal:2", "--out", "run", cwd=tmp_path)
    assert out.returncode == code, out.stderr
    assert message in out.stderr
    assert "Traceback" not in out.stderr
    assert (tmp_path / "run").exists() == (code == 3)
