"""The original behind a served copy: who answers, who waits, and what happens when the original is out."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from click.testing import CliRunner
from in_process_server import HTTP, metrics, posted, question, running

import ectype as ec
from ectype.cascades._calibration_sample import predict_with_margins
from ectype.cli.serve import command
from ectype.errors import OutageError, SettingError
from ectype.original.protocols.v2_messages import SERVICE, message
from ectype.serve import ServeSettings, service
from ectype.serve._binary_tensors import unpack_values
from ectype.serve._fallback import Fallback
from fault_server import FaultyServer
from problems import loans
from server_process import Process

pytestmark = [
    pytest.mark.usefixtures("small_lessons"),
    pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning"),
]
AGREE = 0.99
QUICK = {"budget": 400, "repeat": 0, "progress": False}


def waves(rows):
    """An original that few queries do not copy everywhere."""
    x, y = np.asarray(rows, float).T
    return np.where(np.sin(3 * x) + np.sin(2 * y) > 0, "high", "low")


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_lessons):
    return ec.copy_classifier(waves, ec.Space.normal(2), out=tmp_path_factory.mktemp("cascade") / "run", **QUICK)


@pytest.fixture(scope="module")
def routing(run):
    return ec.cascade(run, waves, agree=AGREE).routing


@pytest.fixture(scope="module")
def rows(run, routing):
    """Rows that the copy answers alone, some that it does not, and some of each in turns."""
    drawn = np.random.default_rng(4).normal(size=(5000, 2))
    alone = routing.answers(predict_with_margins(run.copy, drawn)[1])
    sure, unsure = drawn[alone][:8], drawn[~alone][:8]
    return sure, unsure, np.stack([sure, unsure], axis=1).reshape(16, 2)


class Box:
    """An original that can be out, or take its time."""

    def __init__(self):
        self.n, self.opened, self.out = 0, 0, False
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def open(self):
        self.opened += 1
        return ec.Original(self, name="box")

    def __call__(self, rows):
        self.asked.set()
        assert self.go_on.wait(20)
        if self.out:
            raise OutageError("box", "an answer", "nothing")
        self.n += len(rows)
        return waves(rows)


@pytest.fixture
def box():
    found = Box()
    yield found
    found.go_on.set()


def behind(box, run, routing, **options):
    return running(
        run.copy,
        fallback=Fallback(
            run.copy, routing, ServeSettings(fallback=box.open, **{f"fallback_{k}": v for k, v in options.items()})
        ),
    )


def predicted(server, rows, **options):
    return HTTP.post(f"{server.url}/predict", json=np.asarray(rows).tolist(), **options)


def test_every_form_of_answer_says_who_gave_it(run, routing, rows, box):
    mixed, by = rows[2], ["copy", "original"] * 8
    labels = np.where(np.array(by) == "copy", run.copy.predict(mixed), waves(mixed)).tolist()
    with behind(box, run, routing) as server:
        assert predicted(server, mixed).json() == {"predictions": labels, "answered_by": by}
        table = predicted(server, mixed, headers={"accept": "text/csv"}, params={"scores": "true"}).text.splitlines()
        assert table[0] == "prediction,score high,score low,answered_by"
        assert [line.split(",")[0] for line in table[1:]] == labels
        assert table[2].endswith("1.0,0.0,original" if labels[1] == "high" else "0.0,1.0,original")
        first = HTTP.post(f"{server.url}/v1/models/m:predict", json={"instances": mixed.tolist()}).json()
        assert first == {"predictions": labels, "answered_by": by}
        plain = posted(server, question(mixed)).json()
        assert plain["parameters"] == {"copy": 8, "original": 8, "outage": 0}
        assert [output["data"] for output in plain["outputs"]] == [labels]
        wanted = [{"name": name} for name in ("predict", "answered_by", "predict_proba")]
        given, who, scores = posted(server, question(mixed, outputs=wanted)).json()["outputs"]
        assert (given["data"], who["data"], who["datatype"]) == (labels, by, "BYTES")
        assert posted(server, question(mixed, outputs=wanted)).headers["content-type"] == "application/json"
        chances = np.reshape(scores["data"], scores["shape"])
        assert run.copy.classes[chances.argmax(axis=1)].tolist() == labels
        np.testing.assert_array_equal(chances[::2], run.copy.predict_proba(mixed)[::2])
        wanted = [{"name": "answered_by", "parameters": {"binary_data": True}}]
        answer = posted(server, question(mixed, outputs=wanted))
        tail = answer.content[int(answer.headers["inference-header-content-length"]) :]
        assert unpack_values(tail, "BYTES", 16, "") == by
        outputs = HTTP.get(server.model).json()["outputs"]
        assert [output["name"] for output in outputs] == ["predict", "predict_proba", "answered_by"]
        described = HTTP.get(f"{server.url}/openapi.json").json()["paths"]
        assert "/cascade" in described


def test_without_a_cascade_all_is_the_copys(plane):
    with running(plane) as server:
        wanted = [{"name": "answered_by"}]
        answer = posted(server, question([[1.0, 0.0]], outputs=wanted)).json()
        assert answer["outputs"][0]["data"] == ["copy"]
        assert "parameters" not in answer
        assert "answered_by" not in predicted(server, [[1.0, 0.0]]).json()
        assert HTTP.get(f"{server.url}/cascade").status_code == 404


def test_who_answered_is_counted(run, routing, rows, box):
    many = np.tile(rows[2], (20, 1))  # a large request, which is predicted on another thread
    with behind(box, run, routing, outage="copy") as server:
        assert predicted(server, many).json()["answered_by"] == ["copy", "original"] * 160
        predicted(server, rows[0])
        box.out = True
        predicted(server, rows[1])
        found, counted = HTTP.get(f"{server.url}/cascade").json(), metrics(server)
        assert found["rows"] == {"copy": 168, "original": 160, "outage": 8, "refused": 0}
        assert (found["agree"], found["threshold"], found["original"]) == (AGREE, routing.threshold, "box")
        assert (found["waiting"], found["out"], found["on_outage"]) == (0, True, "copy")
        for by, n in found["rows"].items():
            assert counted[f'ectype_cascade_rows_total{{by="{by}"}}'] == n
        assert counted["ectype_cascade_original_seconds_count"] == 2
        assert counted["ectype_cascade_outages_total"] == 1
        assert counted["ectype_cascade_waiting_rows"] == 0
    assert box.n == 160


def test_nobody_else_waits_for_the_original(run, routing, rows, box):
    box.go_on.clear()
    with behind(box, run, routing) as server, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(predicted, server, rows[1])
        assert box.asked.wait(20)
        assert predicted(server, rows[0]).json()["answered_by"] == ["copy"] * 8
        assert predicted(server, np.tile(rows[0], (20, 1))).status_code == 200
        assert HTTP.get(f"{server.url}/v2/health/ready").status_code == 200
        assert HTTP.get(f"{server.url}/cascade").json()["waiting"] == 8
        assert not waits.done()
        box.go_on.set()
        assert waits.result(20).json() == {"predictions": waves(rows[1]).tolist(), "answered_by": ["original"] * 8}


def test_an_outage_is_refused_with_a_time_to_come_back(run, routing, rows, box):
    with behind(box, run, routing, pause=1000) as server:
        box.out = True
        for _ in range(3):
            answer = predicted(server, rows[2])
            assert answer.status_code == 503
            assert 1 <= int(answer.headers["retry-after"]) <= 1000
            assert "its answer for 8 rows that the copy is not sure of" in answer.json()["error"]
        assert predicted(server, rows[0]).status_code == 200
        assert metrics(server)["ectype_cascade_original_seconds_count"] == 1  # it is left alone meanwhile
        assert metrics(server)['ectype_cascade_rows_total{by="refused"}'] == 24
    assert box.opened == 1


def test_an_original_that_comes_back_is_opened_anew(run, routing, rows, box):
    with behind(box, run, routing, pause=0.01) as server:
        box.out = True
        assert predicted(server, rows[1]).status_code == 503
        box.out = False
        answers = (predicted(server, rows[1]).status_code for _ in range(10_000))
        assert 200 in answers  # at the latest when the pause is over
        assert box.opened == 2


def test_a_request_waits_no_longer_than_it_may(run, routing, rows, box):
    box.go_on.clear()
    with behind(box, run, routing, timeout=0.1, pause=1000) as server:
        answer = predicted(server, rows[1])
        assert (answer.status_code, "within 0.1 s" in answer.json()["error"]) == (503, True)
        assert "an outage" in predicted(server, rows[1]).json()["error"]
        box.go_on.set()


def test_rows_beyond_the_limit_do_not_wait(run, routing, rows, box):
    box.go_on.clear()
    with behind(box, run, routing, rows=10) as server, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(predicted, server, rows[1])
        assert box.asked.wait(20)
        answer = predicted(server, rows[1])
        assert (answer.status_code, "8 rows that wait" in answer.json()["error"]) == (503, True)
        box.go_on.set()
        assert waits.result(20).status_code == 200
        assert predicted(server, rows[1]).status_code == 200


@pytest.mark.parametrize("on_outage", ["error", "copy"])
def test_a_label_that_the_copy_does_not_have_is_no_answer(run, routing, rows, on_outage):
    def other(X):
        return np.where(np.arange(len(X)) == 0, "new", waves(X))

    opened = lambda: ec.Original(other)  # noqa: E731
    settings = ServeSettings(fallback=opened, fallback_outage=on_outage)
    with running(run.copy, fallback=Fallback(run.copy, routing, settings)) as server:
        answer = predicted(server, rows[1])
        if on_outage == "error":
            assert (answer.status_code, "none of ['high', 'low']" in answer.json()["error"]) == (503, True)
        else:
            assert answer.json()["answered_by"] == ["outage"] + ["original"] * 7


def test_a_level_that_the_space_does_not_know_is_asked(lending, tmp_path):
    seen = []

    def original(frame):
        seen.append(frame)
        return ["grant"] * len(frame)

    frame = loans(2, 5)[0].assign(region=["north", "Atlantis"])
    anything = ec.cascades._routing.Routing.of  # of a copy that is certified everywhere
    held = ec.cascades._routing.HeldOutMargins(np.ones(2000), np.ones(2000, bool))
    sure = anything(
        ec.cascades._calibration_sample.CalibrationSample(held, "rows", np.ones(10), np.ones(10)), 0.99, 0.95
    )
    with running(
        lending, fallback=Fallback(lending, sure, ServeSettings(fallback=lambda: ec.Original(original)))
    ) as server:
        document = json.loads(frame.to_json(orient="records"))
        assert HTTP.post(f"{server.url}/predict", json=document).json()["answered_by"] == ["copy", "original"]
    assert seen[0]["region"].tolist() == ["Atlantis"]


def test_the_command_with_an_endpoint_that_goes_out_and_comes_back(run, rows):
    """Over HTTP and gRPC; the run's held-out rows certify it, so that nothing is asked before a client does."""
    with FaultyServer(waves, share=0, faults=("drop",)) as box:
        options = ["--fallback", f"{box.url}/v2/models/box", "--protocol", "v2", "--agree", str(AGREE)]
        with Process(
            run.directory, *options, "--attempts", "1", "--fallback-pause", "0.5", "--grpc-port", "0"
        ) as served:
            assert box.asked == 0
            assert predicted(served, rows[1]).json()["predictions"] == waves(rows[1]).tolist()
            assert box.asked == 8
            assert _by_grpc(served, rows[2]) == ["copy", "original"] * 8
            box.share = 1.0
            assert predicted(served, rows[1]).status_code == 503
            with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
                _by_grpc(served, rows[1])
            assert predicted(served, rows[0]).status_code == 200
            box.share = 0.0
            answers = (predicted(served, rows[1]).status_code for _ in range(100_000))
            assert 200 in answers
            found = HTTP.get(f"{served.url}/cascade").json()
            assert found["rows"]["original"] == 24
            assert found["rows"]["refused"] >= 16


def _by_grpc(served, rows):
    raw = [np.ascontiguousarray(rows).tobytes()]
    inputs = [{"name": "inputs", "datatype": "FP64", "shape": list(rows.shape)}]
    name = served.model.rpartition("/")[2]
    asked = message("ModelInferRequest")(
        model_name=name, inputs=inputs, outputs=[{"name": "answered_by"}], raw_input_contents=raw
    )
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc_port}") as channel:
        infer = channel.unary_unary(f"/{SERVICE}/ModelInfer")
        answer = message("ModelInferResponse").FromString(infer(asked.SerializeToString(), timeout=20))
    who = unpack_values(answer.raw_output_contents[0], "BYTES", len(rows), "")
    assert {name: value.int64_param for name, value in answer.parameters.items()} == {
        name: who.count(name) for name in ("copy", "original", "outage")
    }
    return who


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--agree", "0.99"], "--fallback: expected an original, since --agree is given"),
        (["--fallback-outage", "copy"], "--fallback: expected an original, since --fallback-outage is given"),
        (["--fallback", "ectype.toy_problems:spirals", "--fallback-outage", "none"], "'error', 'copy'"),
        (["--fallback", "ectype.toy_problems:spirals", "--agree", "2"], "--agree: expected a number between 0 and 1"),
        (["--fallback", "ectype.toy_problems:spirals", "--agree", "0.9999"], "--certificate-n"),
        (["--fallback", "ectype.toy_problems:spirals", "--workers", "2"], "--workers"),
        (["--fallback", "ectype.toy_problems:spirals", "--shadow", "ectype.toy_problems:spirals"], "start two servers"),
        (["--fallback", "ectype.toy_problems:spirals", "--shadow-log", "x.csv"], "--shadow: expected an original"),
    ],
)
def test_what_the_command_refuses(run, options, reason):
    with pytest.raises(ec.errors.EctypeError) as error:
        CliRunner().invoke(command, [str(run.directory), *options], catch_exceptions=False, standalone_mode=False)
    assert reason in str(error.value)
    assert error.value.exit_code == 2


def test_rows_are_asked_first_only_if_that_is_said(run, tmp_path, capsys, monkeypatch):
    """Of a run without a ledger; what the original prints is no part of the one document on stdout."""
    saved = run.save(tmp_path / "saved")
    talks = "def decide(rows):\n    print('asked', len(rows))\n    return ['low'] * len(rows)\n"
    (tmp_path / "talkative.py").write_text(talks)
    monkeypatch.chdir(tmp_path)
    options = ["--fallback", "talkative:decide", "--json"]
    for more, reason in (
        ([], "rows to ask, or the held-out rows"),
        (["--fallback-n", "100"], "rows would: --fallback-n"),
    ):
        with pytest.raises(SettingError, match=reason):
            CliRunner().invoke(command, [str(saved), *options, *more], catch_exceptions=False, standalone_mode=False)
    again = run.save(tmp_path / "again")  # what was asked is kept in the first
    found = CliRunner().invoke(command, [str(again), *options, "--fallback-n", "100"])
    assert "at most 100 rows are asked first" in found.stderr
    assert sum(int(n) for n in re.findall(r"^asked (\d+)$", found.stderr, re.MULTILINE)) == 100
    assert found.stdout == ""


def test_a_service_takes_the_same_options(run, box):
    app = service(run.directory, fallback=box.open, agree=AGREE, fallback_outage="copy", fallback_timeout=3.0)
    assert app.fallback.summary()["on_outage"] == "copy"
    assert box.n == 0
    app.close()
    fresh = service(run.directory, fallback=box.open, agree=AGREE, fallback_n=1000)
    assert box.n == 1000
    fresh.close()
    with pytest.raises(SettingError, match="--fallback-n"):
        service(run.directory, fallback_n=10)
