"""The command: start, parallel run, stop, and options that it refuses."""

import inspect
import json
import re
import signal
import socket

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from in_process_server import HTTP, connected, head, metrics, received, saved, statuses

import ectype as ec
from ectype.cli.serve import command
from ectype.serve import serve_options, service
from fault_server import FaultyServer
from problems import loans
from server_process import Process

pytestmark = pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")


def test_the_command_from_start_to_stop(lending, tmp_path):
    """A parallel run against a real endpoint; then SIGTERM while a request is under way, and SIGINT."""
    saved(lending, tmp_path / "loans")
    log = tmp_path / "differ.csv"
    decide = lambda frame: np.where(frame["income"].astype(float) > 30_000, "grant", "refuse").tolist()  # noqa: E731
    with FaultyServer(decide, share=0) as box:
        original = f"{box.url}/v2/models/box"
        served = Process(tmp_path / "loans", "--shadow", original, "--protocol", "v2", "--shadow-log", str(log))
        other = Process(tmp_path / "loans", "--name", "a name", "--model-version", "7", "--grace", "0.1")
        try:
            assert served.wait_until_ready()["name"] == "loans"
            _parallel_run(served, lending, decide, log)
            _stopped_with_a_request_under_way(served, lending)
            assert other.wait_until_ready()["url"].endswith("/v2/models/a%20name")
            assert HTTP.get(f"{other.model}/versions/7/ready").json() == {"name": "a name", "ready": True}
            with connected(other) as stuck:
                stuck.sendall(head(b"{", "Expect: 100-continue", path="/v2/models/a%20name/infer", length=99))
                assert statuses(stuck.recv(65536)) == [100]
                other.signal(signal.SIGINT)
                assert other.ended()[0] == 130
        finally:
            served.kill()
            other.kill()


def test_a_second_signal_does_not_wait(plane, tmp_path):
    saved(plane, tmp_path / "m")
    served = Process(tmp_path / "m", "--grace", "1000")
    try:
        served.wait_until_ready()
        with connected(served) as stuck, connected(served) as idle:
            stuck.sendall(head(b"{", "Expect: 100-continue", length=99))
            assert statuses(stuck.recv(65536)) == [100]
            served.signal(signal.SIGTERM)
            assert received(idle) == b""
            served.signal(signal.SIGTERM)
            assert received(stuck) == b""
            assert served.ended()[0] == 0
    finally:
        served.kill()


def _parallel_run(served, lending, decide, log):
    frame = loans(60, 7)[0]
    ours, theirs = lending.predict(frame), np.array(decide(frame))
    client = ec.open_original(served.model, protocol="v2")
    assert client.answer(frame).tolist() == ours.tolist()
    found = next(found for _ in range(10_000) if (found := HTTP.get(served.url + "/shadow").json())["rows"] == 60)
    differ = int((ours != theirs).sum())
    assert differ
    assert (found["rows"], found["disagreements"], found["failed"]) == (60, differ, 0)
    counted = metrics(served)
    assert counted["ectype_shadow_rows_total"] == 60
    pairs = [value for name, value in counted.items() if name.startswith("ectype_shadow_disagreements_total")]
    assert sum(pairs) == differ
    written = pd.read_csv(log)
    assert written["copy"].tolist() == ours[ours != theirs].tolist()
    assert written["income"].tolist() == frame["income"][ours != theirs].tolist()


def _stopped_with_a_request_under_way(served, lending):
    frame = loans(2, 8)[0]
    body = ec.original.protocols.V2().encode(frame, "last")
    with connected(served) as line, connected(served) as idle:
        line.sendall(head(b"", "Expect: 100-continue", path="/v2/models/loans/infer", length=len(body)))
        assert statuses(line.recv(65536)) == [100]
        served.signal(signal.SIGTERM)
        assert received(idle) == b""  # nobody listens any more by the time that idle clients are let go
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", served.port), timeout=20)
        line.sendall(body)
        answer = received(line)
    assert statuses(answer) == [200]
    assert b"Connection: close" in answer or b"connection: close" in answer
    (output,) = json.loads(answer.partition(b"\r\n\r\n")[2])["outputs"]
    assert output["data"] == lending.predict(frame).tolist()
    code, out, errors = served.ended()
    assert (code, out) == (0, "")
    assert errors.startswith("ectype: stopped after ")


def test_the_options_are_declared_once():
    """The command has all of them, each under a heading, and `service` those that are not about listening."""
    declared = {part.name: about for part, about in serve_options()}
    options = {option.name: option for option in command.params if option.name in declared}
    assert options.keys() == declared.keys()
    assert {name: option.group for name, option in options.items()} == {n: a.group for n, a in declared.items()}
    taken = inspect.signature(service).parameters
    assert taken.keys() - declared.keys() == {"directory", "token"}
    assert declared.keys() - taken.keys() >= {"host", "port", "workers", "max_connections"}
    text = CliRunner().invoke(command, ["--help"]).output
    assert len(re.findall("^  --", text.partition("\nThe model:")[2], re.MULTILINE)) <= 20
    assert "--traffic DIR" in text
    assert "--keep " not in text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--port", "70000"], "--port"),
        (["--max-rows", "0"], "--max-rows"),
        (["--client-timeout", "0"], "--client-timeout"),
        (["--name", "a/b"], "a word without a slash"),
        (["--protocol", "v2"], "an original, since protocol is given"),
        (["--shadow-log", "x.csv"], "an original, since --shadow-log is given"),
        ([], "run.json"),
    ],
)
def test_bad_options(tmp_path, options, reason):
    with pytest.raises(ec.errors.EctypeError) as error:
        CliRunner().invoke(command, [str(tmp_path), *options], catch_exceptions=False, standalone_mode=False)
    assert reason in str(error.value)
    assert error.value.exit_code == 2
