"""Requests and answers in other forms than lists of JSON, against servers that speak so; answers that come later."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest

from commands import run_command
from dialects import Answer, Dialect
from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits
from ectype.original.protocols import polling as http_polling

pytestmark = pytest.mark.usefixtures("small_lessons")

FAST = RetryWaits(first=0.001, most=0.004, jitter=0.001)
ROWS = np.array([[1.0, 2.0], [-1.0, 0.5], [0.25, -3.0]])
FRAME = pd.DataFrame({"age": [1.5, -2.0, np.nan], "city": ["Köln", None, "a&b=c"], "member": [True, False, True]})
SIGNS = ["yes", "no", "yes"]


def opened(url, protocol="template", **options):
    return open_http(url, **{"protocol": protocol, "patience": FAST, "timeout": 5.0, **options})


def asked_alone(original, rows):
    """Answers to rows that go one by one, as a run sends them."""
    return [original.answer(rows[row : row + 1])[0] for row in range(len(rows))]


def sign(value):
    return "yes" if value is not None and float(value) > 0 else "no"


# --- requests ---------------------------------------------------------------------------------------------------------


def test_one_object_for_each_request():
    with Dialect(lambda asked: {"result": {"label": sign(asked.json["x0"]), "sure": 0.9}}) as server:
        original = opened(server.url, "object", output="result.label")
        assert original.request_rows == 1
        assert asked_alone(original, ROWS) == SIGNS
    assert [asked.json for asked in server.log] == [{"x0": row[0], "x1": row[1]} for row in ROWS.tolist()]
    with Dialect(lambda asked: sign(asked.json["age"])) as server:
        assert asked_alone(opened(server.url, "object"), FRAME) == ["yes", "no", "no"]
    assert server.log[2].json == {"age": None, "city": "a&b=c", "member": True}


def test_columns_of_json():
    def answer(asked):
        return {"predictions": [sign(value) for value in asked.json["x0"]]}

    with Dialect(answer) as server:
        assert opened(server.url, "columns", output="predictions").answer(ROWS).tolist() == SIGNS
    assert server.log[0].json == {"x0": [1.0, -1.0, 0.25], "x1": [2.0, 0.5, -3.0]}


def test_columns_in_the_answer():
    def answer(asked):
        scores = [0.9 if sign(row[0]) == "yes" else 0.2 for row in asked.json]
        return {"out": {"yes": scores, "no": [1 - score for score in scores]}}

    template = {"request": "$rows", "rows": "lists", "answer": "out", "reply": "columns"}
    with Dialect(answer) as server:
        asked = partial(opened, server.url, template=template)
        assert asked(decode="argmax", classes=["no", "yes"]).answer(ROWS).tolist() == SIGNS
        with pytest.raises(OriginalError, match="scores by class need decode"):
            asked().answer(ROWS)
        labelled = asked(template={**template, "label": "yes"}, decode="threshold", classes=["no", "yes"])
        assert labelled.answer(ROWS).tolist() == SIGNS


def test_lines_of_json():
    def answer(asked):
        assert asked.headers["Content-Type"] == "application/jsonlines"
        lines = [json.loads(line) for line in asked.body.decode().splitlines()]
        return b"".join(json.dumps({"label": sign(line[0])}).encode() + b"\n" for line in lines)

    with Dialect(answer) as server:
        assert opened(server.url, "lines", output="label").answer(ROWS).tolist() == SIGNS
    assert server.log[0].body == b"[1.0,2.0]\n[-1.0,0.5]\n[0.25,-3.0]\n"


def test_lines_with_ids_may_come_back_in_any_order():
    def answer(asked):
        lines = [json.loads(line) for line in asked.body.decode().splitlines()]
        said = [{"id": line["id"], "said": sign(line["features"][0])} for line in lines]
        return b"\n".join(json.dumps(line).encode() for line in said[::-1])

    request = {"features": "$row", "id": "$id"}
    with Dialect(answer) as server:
        template = {"request": request, "rows": "lists", "body": "lines", "label": "said", "id": "id"}
        assert opened(server.url, template=template).answer(ROWS).tolist() == SIGNS


def test_forms():
    def answer(asked):
        assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
        return {"label": sign(dict(asked.fields).get("age"))}

    with Dialect(answer) as server:
        assert asked_alone(opened(server.url, "form", output="label"), FRAME) == ["yes", "no", "no"]
        template = {"request": {"version": 2, "row": "$row"}, "rows": "objects", "body": "form", "answer": "label"}
        asked_alone(opened(server.url, template=template), FRAME[:1])
    assert server.log[0].fields == [("age", "1.5"), ("city", "Köln"), ("member", "true")]
    assert server.log[2].fields == [("city", "a&b=c"), ("member", "true")]  # a gap is left out
    assert server.log[3].fields == [("version", "2"), ("age", "1.5"), ("city", "Köln"), ("member", "true")]


def test_queries_of_a_url():
    with Dialect(lambda asked: {"label": sign(dict(asked.query)["x0"])}) as server:
        original = opened(f"{server.url}/score?key=7", "query", output="label")
        assert asked_alone(original, ROWS) == SIGNS
    assert [(asked.method, asked.path) for asked in server.log] == [("GET", "/score")] * 3
    assert server.log[0].query == [("key", "7"), ("x0", "1.0"), ("x1", "2.0")]
    assert server.log[0].body == b""


def test_fields_by_column():
    def answer(asked):
        return [sign(value) for name, value in asked.fields if name == "x0"]

    with Dialect(answer) as server:
        template = {"request": "$rows", "rows": "columns", "body": "form"}
        assert opened(server.url, template=template).answer(ROWS).tolist() == SIGNS


def test_what_no_form_can_hold():
    template = {"request": {"a": [["x"]], "row": "$row"}, "rows": "objects", "body": "form"}
    with pytest.raises(OriginalError, match="a value in the field a"):
        opened("http://127.0.0.1:1", template=template).answer(ROWS[:1])
    with pytest.raises(OriginalError, match="an object, to be sent as fields"):
        opened("http://127.0.0.1:1", template={**template, "request": ["$row"]}).answer(ROWS[:1])


# --- scores by class --------------------------------------------------------------------------------------------------


def scored(form):
    """A server whose answers hold a score for each class, in one of several forms."""

    def answer(asked):
        shares = [(0.8, 0.15, 0.05) if row[0] > 0 else (0.1, 0.3, 0.6) for row in asked.json["instances"]]
        return {"predictions": [form(dict(zip(["cat", "dog", "eel"], share, strict=True))) for share in shares]}

    return Dialect(answer)


FORMS = {
    "object": lambda scores: scores,
    "list": lambda scores: [{"label": name, "score": score} for name, score in scores.items()],
    "sorted": lambda scores: [
        {"label": name, "score": score} for name, score in sorted(scores.items(), key=lambda pair: -pair[1])
    ],
    "classes": lambda scores: {"classes": list(scores), "scores": list(scores.values())},
    "labels": lambda scores: {"labels": list(scores), "scores": list(scores.values()), "more": 1},
}


@pytest.mark.parametrize("form", FORMS)
def test_scores_by_class(form):
    with scored(FORMS[form]) as server:
        asked = partial(opened, server.url, "instances")
        assert asked(decode="argmax", classes=["eel", "dog", "cat"]).answer(ROWS).tolist() == ["cat", "eel", "cat"]
        said = asked(decode="scores", classes=["eel", "dog", "cat"]).query(ROWS)
        assert said.labels.tolist() == ["cat", "eel", "cat"]
        np.testing.assert_allclose(said.scores[:2], [[0.8, 0.15, 0.05], [0.1, 0.3, 0.6]], rtol=1e-6)  # cat, dog, eel
        with pytest.raises(OriginalError, match="scores of classes that were named, found the classes"):
            asked(decode="argmax").answer(ROWS)
        with pytest.raises(OriginalError, match="found 'dog' in row 0; name its classes, all of them"):
            asked(decode="argmax", classes=["cat", "eel"]).answer(ROWS)
        with pytest.raises(OriginalError, match="scores by class need decode"):
            asked().answer(ROWS)


def test_scores_of_the_best_classes_alone():
    with scored(lambda scores: dict(sorted(scores.items(), key=lambda pair: -pair[1])[:2])) as server:
        asked = partial(opened, server.url, "instances", classes=["cat", "dog", "eel"])
        assert asked(decode="argmax").answer(ROWS).tolist() == ["cat", "eel", "cat"]
        with pytest.raises(OriginalError, match="finite numbers"):
            asked(decode="scores").query(ROWS)


def test_a_threshold_for_the_second_class():
    with Dialect(lambda asked: [{"no": 0.6, "yes": 0.4}, {"yes": 0.3, "no": 0.7}, {"no": 0.5, "yes": 0.5}]) as server:
        original = opened(server.url, "azureml", decode="threshold", threshold=0.4, classes=["no", "yes"])
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes"]


def test_classes_that_are_numbers_or_booleans():
    with Dialect(lambda asked: [{"0": 0.6, "1": 0.4}, {"1": 0.9, "0": 0.1}]) as server:
        assert opened(server.url, "azureml", decode="argmax", classes=[1, 0]).answer(ROWS[:2]).tolist() == [0, 1]
    with Dialect(lambda asked: [{"classes": [False, True], "scores": [0.6, 0.4]}]) as server:
        original = opened(server.url, "azureml", decode="argmax", classes=[False, True])
        assert original.answer(ROWS[:1]).tolist() == [False]


@pytest.mark.parametrize(
    ("scores", "output"),
    [
        ({"list": "Classes", "label": "Name", "score": "Score"}, {"Classes": [{"Name": "yes", "Score": 0.7}]}),
        ({"labels": "result.names", "scores": "result.p"}, {"result": {"names": ["no", "yes"], "p": [0.2, 0.8]}}),
    ],
)
def test_a_template_says_where_scores_are(scores, output):
    template = {"request": {"rows": "$rows"}, "answer": "out", "scores": scores}
    with Dialect(lambda asked: {"out": [output] * 3}) as server:
        original = opened(server.url, template=template, decode="argmax", classes=["no", "yes"])
        assert original.answer(ROWS).tolist() == ["yes"] * 3
        with pytest.raises(
            SettingError, match="decode: expected argmax, threshold or scores, for a template that says"
        ):
            opened(server.url, template=template)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({"cat": "high", "dog": 0.3}, "not a score: in row 0"),
        ({"cat": True, "dog": 0.3}, "not a score: in row 0"),
        ({"cat": None, "dog": 0.3}, "NaN: in row 0"),
        ({}, "not a label: in row 0"),
        ({"classes": ["cat"], "scores": [0.1, 0.9]}, "not as many scores as classes"),
        ({"classes": ["cat", "cat"], "scores": [0.1, 0.9]}, "a class twice"),
        ([{"label": "cat", "score": 0.7}, 3], "not a label: in row 0"),
    ],
)
def test_scores_that_make_no_sense(output, message):
    with Dialect(lambda asked: [output]) as server:
        original = opened(server.url, "azureml", decode="argmax", classes=["cat", "dog"], attempts=1)
        with pytest.raises(OriginalError, match=message):
            original.answer(ROWS[:1])


def test_scores_in_some_rows_alone():
    with Dialect(lambda asked: [{"cat": 0.7, "dog": 0.3}, [0.7, 0.3]]) as server:
        original = opened(server.url, "azureml", decode="argmax", classes=["cat", "dog"])
        with pytest.raises(OriginalError, match="scores by class in some rows alone"):
            original.answer(ROWS[:2])


@pytest.mark.parametrize(
    ("reply", "content", "message"),
    [
        ("columns", ["a"], "not an object of columns"),
        ("columns", {"a": ["x"]}, "wrong count"),
        ("lines", b'{"a": 1}\n{"a"', "not JSON"),
        ("lines", b'{"a": 1}\n', "wrong count"),
    ],
)
def test_answers_in_another_form_than_said(reply, content, message):
    with Dialect(lambda asked: content) as server:
        template = {"request": {"rows": "$rows"}, "reply": reply, "label": "a"}
        with pytest.raises(OriginalError, match=message):
            opened(server.url, template=template, attempts=1).answer(ROWS)


# --- answers that come later ------------------------------------------------------------------------------------------


class Later:
    """A server that accepts a request, and has the answer after some looks; `plan` are the replies until then."""

    def __init__(self, place=None, plan=(), done=None):
        self.place = place or {"Location": "/jobs/7"}
        self.plan, self.done, self.rows = list(plan), done, []

    def __call__(self, asked):
        if asked.method == "POST":
            self.rows = asked.json["instances"]
            return Answer({"url": "/jobs/7", "state": "running"}, 202, self.place)
        if self.plan:
            return self.plan.pop(0)
        found = {"predictions": [sign(row[0]) for row in self.rows]}
        return found if self.done is None else self.done(found)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(http_polling, "FIRST", 0.001)
    monkeypatch.setattr(http_polling, "LEAST", 0.001)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "later",
    [
        Later(plan=[Answer({}, 202)] * 3),
        Later(plan=[Answer({}, 202), Answer({}, 503), Answer({}, 429, {"Retry-After": "0"})]),
        Later({"Operation-Location": "/jobs/7"}),
        Later(plan=[Answer(b"", 303, {"Location": "/results/7"})]),
    ],
)
def test_what_was_accepted_is_waited_for(later):
    with Dialect(later) as server:
        original = opened(f"{server.url}/score", "instances")
        assert original.answer(ROWS).tolist() == SIGNS
    assert original.failures == {}
    assert [asked.method for asked in server.log][:2] == ["POST", "GET"]
    assert [asked.method for asked in server.log].count("POST") == 1
    assert server.log[1].path == "/jobs/7"


@pytest.mark.usefixtures("quick")
def test_secrets_go_with_every_look(monkeypatch):
    monkeypatch.setenv("VENDOR_KEY", "hush")
    with Dialect(Later()) as server:
        opened(server.url, "instances", header=["X-Api-Key: env:VENDOR_KEY"]).answer(ROWS)
    assert [asked.headers["X-Api-Key"] for asked in server.log] == ["hush", "hush"]


def test_retry_after_of_a_202_is_honoured(monkeypatch):
    waits = []
    monkeypatch.setattr(http_polling.Poller, "_pause", lambda self, asked, pause, deadline: waits.append(asked))
    later = Later({"Location": "/jobs/7", "Retry-After": "7"}, plan=[Answer({}, 202, {"Retry-After": "11"})])
    with Dialect(later) as server:
        opened(server.url, "instances").answer(ROWS)
    assert waits == [7.0, 11.0]


@pytest.mark.usefixtures("quick")
def test_a_template_says_how_to_wait():
    poll = {"url": "url", "status": "state", "running": ["running", "queued"], "failed": ["failed"]}
    template = {"request": {"instances": "$rows"}, "answer": "predictions", "poll": poll}
    states = [{"state": "queued"}, {"state": "running"}]
    with Dialect(Later({"X": "y"}, states, lambda found: {"state": "done", **found})) as server:
        assert opened(server.url, template=template).answer(ROWS).tolist() == SIGNS
    assert len(server.log) == 4
    with Dialect(Later({"X": "y"}, [{"state": "failed", "why": "rows"}])) as server:
        original = opened(server.url, template=template)
        with pytest.raises(OriginalError, match=r'failed: an operation that is "failed": .*"why": "rows"'):
            original.answer(ROWS)
    assert len(server.log) == 2
    template["poll"]["result"] = "result"
    with Dialect(Later({"X": "y"}, [{"state": "done", "result": "/results/7"}])) as server:
        assert opened(server.url, template=template).answer(ROWS).tolist() == SIGNS
    assert [asked.path for asked in server.log] == ["/", "/jobs/7", "/results/7"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("later", "message"),
    [
        (lambda asked: Answer({}, 202), "status 202 without a Location to ask again"),
        (
            Later({"Location": "http://elsewhere.test/jobs?key=hush"}),
            "an answer at another place, http://elsewhere.test",
        ),
        (Later({"Location": "http://[::1"}), "an answer at another place, no URL"),
        (Later(plan=[Answer({}, 202, {"Retry-After": "3600"})]), "no answer within 5 s of waiting for it; it may be"),
        (Later({"Location": "/jobs/7", "Retry-After": "3600"}), "no answer within 5 s of waiting for it; it may be"),
        (Later(plan=[Answer({}, 404)]), "status 404"),
    ],
)
def test_what_never_comes_is_not_paid_for_twice(later, message):
    with Dialect(later) as server:
        original = opened(server.url, "instances", poll=5.0)
        with pytest.raises(OutageError, match=message) as caught:
            original.answer(ROWS)
    assert [asked.method for asked in server.log].count("POST") == 1
    assert "hush" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.usefixtures("quick")
def test_waiting_ends_with_an_interruption():
    reached = threading.Event()

    def answer(asked):
        if asked.method == "GET":
            reached.set()
        return Answer({}, 202, {"Location": "/jobs/7", "Retry-After": "0" if asked.method == "POST" else "60"})

    with Dialect(answer) as server:
        original = opened(server.url, "instances")
        with ThreadPoolExecutor(1) as pool:
            answering = pool.submit(original.answer, ROWS)
            assert reached.wait(10)
            original.stop()
            with pytest.raises(OutageError, match="an interruption"):
                answering.result(10)


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_copy_of_an_endpoint_that_takes_one_object(tmp_path):
    def answer(asked):
        inside = asked.json["x0"] ** 2 + asked.json["x1"] ** 2 < 1
        return {"scores": {"in": 0.9, "out": 0.1} if inside else {"in": 0.2, "out": 0.8}}

    asking = ["--protocol", "object", "--output", "scores", "--decode", "scores", "--classes", "in,out"]
    sizes = ["--space", "normal:2", "--budget", "150", "--certificate-n", "100", "--preset", "fast", "--json"]
    with Dialect(answer) as server:
        out = run_command("copy", server.url, *asking, *sizes, "--out", "run", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout)["certificate"]["estimate"] > 0.8
