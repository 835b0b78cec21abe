import gc
import json
import logging
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tenacity import sleep_using_event

from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original import open_original
from ectype.original.http import client
from ectype.original.http.credentials import QUOTED
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import CircuitBreaker, RateLimit, RetryWaits, retry_after
from ectype.original.http.urls import target
from fault_server import RECOVERABLE, TEMPLATE, FaultyServer, Refused

pytestmark = pytest.mark.usefixtures("small_lessons")

FAST = RetryWaits(first=0.001, most=0.004, jitter=0.001)
TOKEN = 'to/ken+"with\\all-of-it=='
ROWS = np.array([[1.0, 2.0], [-1.0, 0.5], [0.25, -3.0], [-4.0, 1e-9]])
MIXED = pd.DataFrame(
    {
        "height": [1.5, np.nan, -2.0],
        "age": [3, -4, 5],
        "member": [True, False, True],
        "city": ["Köln", "Nice", None],
        "size": pd.Categorical(["S", "M", None]),
    }
)


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """No proxy of the machine that runs the tests."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(autouse=True)
def _uncertified(monkeypatch):
    """No certificates: no test here gets as far as checking one, and reading them takes as long as all the rest."""
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_: None)


def sign(rows):
    """Whether the first column, by position, is above 0, as a word."""
    first = rows[:, 0] if isinstance(rows, np.ndarray) else rows.iloc[:, 0].to_numpy(dtype=float)
    return np.where(first > 0, "yes", "no")


def opened(url, protocol="instances", **options):
    if protocol == "template":
        options.setdefault("template", TEMPLATE)
    if protocol == "v2":
        url += "/v2/models/m"
    return open_http(url, protocol=protocol, **{"patience": FAST, "timeout": 5.0, **options})


def serving(*plan, decide=sign, **options):
    return FaultyServer(decide, plan=plan, share=options.pop("share", 0.0), **options)


# --- asking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["v2", "instances", "mlflow", "seldon", "csv", "template"])
def test_every_protocol_asks_about_arrays_and_data_frames(protocol):
    with serving() as server:
        original = opened(server.url, protocol)
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
        assert original.answer(MIXED).tolist() == ["yes", "no", "no"]
        assert original.answer(ROWS[:0]).tolist() == []
        assert original.failures == {}
    assert len(server.log) == 2
    assert server.log[0].rows == ROWS.tolist()
    for found, sent in zip(server.log[1].rows, MIXED.astype(object).to_numpy().tolist(), strict=True):
        assert [None if pd.isna(value) else value for value in found] == [None if pd.isna(v) else v for v in sent]


@pytest.mark.parametrize(
    ("labels", "kind"), [([1, 0], "i"), ([True, False], "b"), ([1.0, 2.0], "f"), (["a", "b"], "U")]
)
def test_labels_keep_their_type(labels, kind):
    with serving(decide=lambda rows: labels) as server:
        answers = opened(server.url).answer(ROWS[:2])
    assert answers.tolist() == labels
    assert answers.dtype.kind == kind


def test_scores_are_decoded_when_that_is_said():
    def scores(rows):
        return np.column_stack([rows[:, 0] < 0, rows[:, 0] >= 0]).astype(float)

    with serving(decide=scores) as server:
        for protocol in ("instances", "seldon"):
            asked = opened(server.url, protocol, classes=["no", "yes"], decode="argmax")
            assert asked.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
            with pytest.raises(OriginalError, match="a table of shape"):
                opened(server.url, protocol).answer(ROWS)
    with serving(decide=lambda rows: rows[:, 0]) as server:
        asked = opened(server.url, "csv", classes=[0, 1], decode="threshold", threshold=0.2)
        assert asked.answer(ROWS).tolist() == [1, 0, 1, 0]


def test_csv_labels_take_the_type_of_the_classes():
    with serving(decide=lambda rows: [1, 0, 1, 1]) as server:
        assert opened(server.url, "csv", classes=[0, 1]).answer(ROWS).tolist() == [1, 0, 1, 1]
        assert opened(server.url, "csv").answer(ROWS).tolist() == ["1", "0", "1", "1"]


def test_a_url_opens_as_an_original():
    with serving() as server:
        original = open_original(f"{server.url}/score?key=1#top", protocol="instances", request_rows=7, concurrency=2)
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    assert original.name == f"{server.url}/score"
    assert (original.request_rows, original.concurrency) == (7, 2)
    assert server.log[0].path == "/score?key=1"
    assert server.log[0].headers["User-Agent"].startswith("ectype/")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": None}, "protocol: expected one of 'v2', 'instances'"),
        ({"protocol": "grpc"}, "protocol: expected one of 'v2', 'instances'"),
        ({"protocol": "template"}, "template: expected request, and perhaps rows, body, answer"),
        ({"protocol": "v2"}, "original: expected a model's URL"),
        ({"template": TEMPLATE}, "template: expected protocol='template'"),
        ({"output": "label"}, "output: expected protocol='v2' or"),
        (
            {"input": "x"},
            "input: expected protocol='v2' or 'litserve' or 'bentoml' beside it, found protocol='instances'",
        ),
        ({"poll": 0}, "poll: expected a number above 0, found 0"),
        (
            {"protocol": "object", "request_rows": 2},
            "request_rows: expected at most 1 for a protocol of one row at a t",
        ),
        ({"rate": 0}, "rate: expected a number above 0, found 0"),
        ({"rate": float("inf")}, "rate: expected a number above 0, found inf"),
        ({"timeout": 0.0}, "timeout: expected a number above 0"),
        ({"timeout": float("nan")}, "timeout: expected a number above 0"),
        ({"concurrency": 0}, "concurrency: expected a whole number of at least 1"),
        ({"attempts": 0}, "attempts: expected a whole number of at least 1"),
        ({"request_rows": 0.5}, "request_rows: expected a whole number of at least 1"),
        ({"decode": "guess"}, "decode: expected one of"),
        ({"threshold": 0.5}, "threshold: expected decode='threshold'"),
        ({"token_env": "ECTYPE_NO_SUCH"}, "a token in the environment variable ECTYPE_NO_SUCH, found none"),
    ],
)
def test_settings_are_checked_before_anything_is_sent(options, message):
    with pytest.raises(SettingError) as caught:
        open_http("http://127.0.0.1:1/x", **{"protocol": "instances", **options})
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "url", ["ftp://a.test/", "http://", "http:///x", "http://a.test:port/", "http://[::1", "http://a.test/\x01", "x"]
)
def test_urls_that_are_none(url):
    with pytest.raises(SettingError, match="original: expected"):
        open_http(url, protocol="instances")


@pytest.mark.parametrize("url", ["http://me:hush@a.test/", "https://hush@a.test", "http://me:hu\uff0fhush@a.test/x"])
def test_a_password_in_a_url_is_refused_and_not_repeated(url):
    with pytest.raises(SettingError, match="a URL without a user or a password") as caught:
        open_http(url, protocol="instances")
    assert "hush" not in "".join(traceback.format_exception(caught.value))


# --- faults ---------------------------------------------------------------------------------------------------------

CAUSES = {
    "drop": "connection",
    "stall": "timeout",
    "drip": "timeout",
    "drip head": "timeout",
    "429": "429",
    "429 date": "429",
    "408": "408",
    "425": "425",
    "500": "500",
    "502": "502",
    "503": "503",
    "504": "504",
    "truncated": "not JSON",
    "garbage": "not JSON",
    "cut": "connection",
    "nan": "NaN",
    "null": "NaN",
    "few": "wrong count",
    "many": "wrong count",
}


@pytest.mark.parametrize(("fault", "cause"), CAUSES.items())
def test_what_passes_is_asked_again(fault, cause):
    with serving(fault) as server:
        original = opened(server.url, timeout=0.4 if cause == "timeout" else 5.0, attempts=2)
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    assert original.failures == {cause: 1}
    assert len(server.log) == 2


@pytest.mark.parametrize(
    ("fault", "protocol"), [("strange ids", "v2"), ("strange ids", "template"), ("one id twice", "template")]
)
def test_an_answer_to_another_request_is_asked_for_again(fault, protocol):
    with serving(fault) as server:
        original = opened(server.url, protocol)
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    assert original.failures == {"wrong id": 1}
    tickets = [seen.document["id"] if protocol == "v2" else seen.document["ids"][0] for seen in server.log]
    assert tickets[0] != tickets[1]


def test_answers_in_another_order_are_put_back():
    with serving("shuffled") as server:
        original = opened(server.url, "template")
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    assert original.failures == {}


def error_of(*plan, times=1, **options):
    with serving(*plan) as server:
        original = opened(server.url, **options)
        with pytest.raises(OriginalError) as caught:
            original.answer(ROWS)
    assert len(server.log) == times
    assert str(caught.value).startswith(f"{server.url}: expected an answer, found ")
    return caught.value


@pytest.mark.parametrize("fault", ["500", "truncated", "nan", "few"])
def test_what_a_row_may_be_to_blame_for_is_no_outage(fault):
    error = error_of(*[fault] * 3, times=3, attempts=3)
    assert not isinstance(error, OutageError)
    assert "at the last of 3 attempts" in str(error)


@pytest.mark.parametrize("fault", ["drop", "stall", "429", "cut"])
def test_what_no_row_is_to_blame_for_is_an_outage(fault):
    error = error_of(*[fault] * 3, times=3, attempts=3, timeout=0.1 if fault == "stall" else 5.0)
    assert isinstance(error, OutageError)
    assert error.exit_code == 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_of_rows_is_not_asked_again(status):
    error = error_of(str(status))
    assert not isinstance(error, OutageError)
    assert f"status {status}" in str(error)
    assert "refused" in str(error)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("401", "no token was sent: name the environment variable"),
        ("403", "no token was sent: name the environment variable"),
        ("404", "check the URL"),
        ("405", "check the URL and the protocol"),
        ("307", "status 307 Temporary Redirect, to http://elsewhere.test/model; redirects are not followed"),
        ("301", "to http://elsewhere.test/model; redirects are not followed"),
        ("429 61", "and to come back in 61 s, above the 60 s that are waited"),
        ("503 999999", "and to come back in 999999 s"),
    ],
)
def test_what_no_waiting_helps_is_an_outage_at_once(fault, message):
    error = error_of(fault)
    assert isinstance(error, OutageError)
    assert message in str(error)
    assert "key=secret" not in str(error)


def test_answers_that_make_no_sense_are_not_paid_for_again():
    with serving(decide=lambda rows: [{"label": 1}] * len(rows)) as server:
        original = opened(server.url)
        with pytest.raises(
            OriginalError, match=r"not a label: in row 0 \(the protocol template can say where"
        ) as caught:
            original.answer(ROWS)
    assert not isinstance(caught.value, OutageError)
    assert original.failures == {"not a label": 1}


@pytest.mark.parametrize("fault", ["huge", "gzip"])
def test_an_answer_is_read_up_to_a_limit(fault, monkeypatch):
    monkeypatch.setattr(client, "MOST_BYTES", 100_000)
    error = error_of(fault)
    assert "an answer of more than 100000 bytes" in str(error)


def test_an_endpoint_that_is_not_there():
    with serving() as server:
        pass
    original = opened(server.url, attempts=2)
    with pytest.raises(OutageError, match="ConnectionRefusedError"):
        original.answer(ROWS)
    assert original.failures == {"connection": 2}


def test_an_endpoint_that_speaks_no_tls():
    with serving() as server:
        original = opened(server.url.replace("http:", "https:"), attempts=2)
        with pytest.raises(OutageError, match="SSLError"):
            original.answer(ROWS)


def test_an_endpoint_that_accepts_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        original = opened(f"https://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2, attempts=2)
        with pytest.raises(OutageError, match=r"no connection within 0.1 s, at the last of 2 attempts"):
            original.answer(ROWS)
    assert original.failures == {"timeout": 2}


def test_a_long_refusal_is_cut_short():
    error = error_of("400 long")
    assert len(str(error)) < QUOTED + 200


def test_a_redirect_to_no_url():
    assert target("http://[::1") == "no URL"
    assert target("") == "nowhere"
    assert target("/elsewhere?key=secret") == "/elsewhere"


def test_retry_after_is_honoured():
    with serving("429 0.3", "503 0.2") as server:
        original = opened(server.url)
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    first, second, third = (seen.at for seen in server.log)
    assert second - first >= 0.3
    assert third - second >= 0.2


def test_retry_after_holds_everyone():
    with serving("503 0.3") as server:
        original = opened(server.url, attempts=1)
        with pytest.raises(OriginalError, match="status 503"):
            original.answer(ROWS)
        original.answer(ROWS)
    assert server.log[1].at - server.log[0].at >= 0.29  # the clock starts when the answer is in


def test_retry_after_may_be_a_date():
    later = datetime.now(UTC) + timedelta(seconds=30)
    assert 20 < retry_after(format_datetime(later, usegmt=True)) <= 30
    assert 20 < retry_after(format_datetime(later.replace(tzinfo=None))) <= 30
    assert retry_after("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert retry_after("Fri, 31 Dec 2999 23:59:59 GMT") > 1e9
    assert retry_after("0") == 0
    assert retry_after(None) is None


@settings(deadline=None)
@given(st.text())
def test_any_retry_after_is_seconds_or_nothing(text):
    found = retry_after(text)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("protocol", "more"), [("instances", ()), ("template", ("shuffled", "strange ids", "one id twice")), ("v2", ())]
)
def test_faults_at_random_change_no_label(protocol, more, rng):
    batches = [rng.normal(size=(5, 2)) for _ in range(60)]
    with FaultyServer(sign, faults=(*RECOVERABLE, *more), share=0.1, seed=1) as server:
        original = opened(server.url, protocol, timeout=1.0, concurrency=8)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(original.answer, batches))
    for batch, answers in zip(batches, found, strict=True):
        np.testing.assert_array_equal(answers, sign(batch))
    failed = [seen for seen in server.log if seen.fault not in (None, "shuffled")]
    assert len(failed) >= 3
    assert original.failures.total() == len(failed)
    assert len(server.log) == len(batches) + len(failed)


# --- pace -----------------------------------------------------------------------------------------------------------


def test_not_more_requests_at_once_than_allowed():
    three, more, go_on = threading.Barrier(4), threading.Event(), threading.Event()

    def decide(rows):
        if len(server.log) > 3:
            more.set()
        if not go_on.is_set():
            three.wait(10)
            go_on.wait(10)
        return sign(rows)

    with serving(decide=decide) as server, ThreadPoolExecutor(9) as pool:
        original = opened(server.url, concurrency=3)
        answers = [pool.submit(original.answer, ROWS) for _ in range(9)]
        three.wait(10)
        assert not more.wait(0.2)
        go_on.set()
        for each in answers:
            assert each.result().tolist() == ["yes", "no", "yes", "no"]
    assert server.peak == 3


def test_not_more_requests_in_a_second_than_allowed():
    with serving(None, "500", None, "429") as server:
        original = opened(server.url, rate=40.0)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(original.answer, [ROWS] * 10))
    assert len(server.log) == 12  # attempts that fail take their turn, too
    arrivals = sorted(seen.at for seen in server.log)
    assert arrivals[-1] - arrivals[0] >= 11 / 40 - 0.1  # the first may be late


def test_a_clock_gives_every_turn_once():
    pace = RateLimit(10.0)
    turns = [pace.slot() for _ in range(4)]
    assert turns == pytest.approx([0, 10, 20, 30], abs=1)
    pace.hold(100)
    assert pace.slot() == pytest.approx(100, abs=1)


# --- the breaker ----------------------------------------------------------------------------------------------------


def test_after_an_outage_nobody_asks_any_more():
    with serving(*["drop"] * 2) as server:
        original = opened(server.url, attempts=2)
        with pytest.raises(OutageError):
            original.answer(ROWS)
        with pytest.raises(OutageError, match="Server disconnected") as caught:
            original.replace(name="other").answer(ROWS)
        assert original.replace().failures == {"connection": 2}
    assert len(server.log) == 2
    assert caught.value.where == server.url


def test_failures_in_a_row_open_the_breaker():
    with serving(*["500"] * 9, None, *["500"] * 99) as server:
        original = opened(server.url, attempts=1, request_rows=1, concurrency=1)
        for _ in range(9):
            with pytest.raises(OriginalError, match="status 500"):
                original.answer(ROWS[:1])
        original.answer(ROWS[:1])
        for _ in range(10):
            with pytest.raises(OriginalError, match="status 500") as caught:
                original.answer(ROWS[:1])
            assert not isinstance(caught.value, OutageError)
        with pytest.raises(OutageError, match="10 failures in a row, the last of them status 500"):
            original.answer(ROWS[:1])
    assert len(server.log) == 20


def test_threads_that_wait_hear_of_an_outage_at_once():
    first, second, release = threading.Event(), threading.Event(), threading.Event()

    def decide(rows):
        if not first.is_set():
            first.set()
            release.wait(10)
            raise Refused("401")
        second.set()
        raise Refused("429 50")

    with serving(decide=decide) as server, ThreadPoolExecutor(2) as pool:
        original = opened(server.url)
        refused = pool.submit(original.answer, ROWS)
        assert first.wait(10)
        waiting = pool.submit(original.answer, ROWS)
        assert second.wait(10)
        release.set()
        for each in (refused, waiting):
            with pytest.raises(OutageError, match="status 401"):
                each.result(timeout=10)


def test_a_wait_ends_when_the_breaker_opens():
    breaker = CircuitBreaker("there", limit=3)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(breaker.wait, 60)
        breaker.open("first reason")
        breaker.open("second reason")
        with pytest.raises(OutageError, match="there: expected an answer, found first reason"):
            waiting.result(timeout=10)


def test_stopping_wakes_who_waits_for_another_attempt():
    failed = threading.Event()

    def decide(rows):
        failed.set()
        raise Refused("500")

    with serving(decide=decide) as server, ThreadPoolExecutor(1) as pool:
        original = opened(server.url, patience=RetryWaits(first=60.0, most=60.0))
        waiting = pool.submit(original.answer, ROWS)
        assert failed.wait(10)
        original.stop()
        with pytest.raises(OutageError, match="found an interruption"):
            waiting.result(timeout=10)
    assert len(server.log) == 1


def test_every_wait_is_twice_the_one_before(monkeypatch):
    slept = []
    monkeypatch.setattr(sleep_using_event, "__call__", lambda self, seconds: slept.append(seconds))
    with serving(*["500"] * 5) as server:
        patience = RetryWaits(first=1.0, most=5.0, jitter=0.5)
        assert opened(server.url, patience=patience).answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    for seconds, least in zip(slept, [1, 2, 4, 5, 5], strict=True):
        assert least <= seconds <= least + 0.5


@pytest.mark.parametrize("fault", ["500", "400"])
def test_finding_the_one_row_that_fails_is_no_outage(fault):
    def decide(rows):
        if (rows[:, 0] == 0).any():
            raise Refused(fault)
        return sign(rows)

    def split(rows):
        try:
            return original.answer(rows).tolist()
        except OutageError:
            raise
        except OriginalError:
            half = len(rows) // 2
            return split(rows[:half]) + split(rows[half:]) if half else ["poison"]

    with serving(decide=decide) as server:
        original = opened(server.url, request_rows=64, concurrency=1, attempts=6)
        assert split(np.arange(64.0)[:, None]) == ["poison"] + ["yes"] * 63
    assert original.failures == {fault: 7 * (6 if fault == "500" else 1)}


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", f"{TOKEN}\n")
    return TOKEN


def forms(token):
    return [token, json.dumps(token)[1:-1], repr(token)[1:-1], token[:8], "to%2Fken"]


@pytest.mark.parametrize(
    "fault",
    ["401 echo", "403 echo", "400 echo", "404 echo", "500 echo", "429 echo", "301 echo", "garbage", "drop", "bad head"],
)
def test_the_token_is_sent_and_never_shown(fault, secret, caplog):
    # What httpcore2 logs of an answer's headers, below INFO, is its own.
    caplog.set_level(logging.INFO if "echo" in fault or "head" in fault else logging.DEBUG)
    with serving(*[fault] * 2) as server:
        original = opened(server.url, token_env="MY_TOKEN", attempts=2)
        with pytest.raises(OriginalError) as caught:
            original.answer(ROWS)
    assert server.log[0].headers["Authorization"] == f"Bearer {TOKEN}"
    shown = [original.name, repr(original), repr(vars(original)), caplog.text]
    shown += [str(vars(record)) for record in caplog.records]
    error = caught.value
    while error is not None:
        shown += [str(error), repr(error), "".join(traceback.format_exception(error))]
        error = error.__cause__ or error.__context__
    for form in (TOKEN, json.dumps(TOKEN)[1:-1], repr(TOKEN)[1:-1], quote(TOKEN, safe=""), TOKEN[:8]):
        assert form not in "\n".join(shown)
    if fault not in ("301 echo", "drop"):
        assert "***" in str(caught.value)
    if fault[:3] in ("401", "403"):
        assert "the token in the environment variable MY_TOKEN was refused" in str(caught.value)


def test_a_token_is_hidden_before_a_text_is_cut(secret):
    with serving(decide=lambda rows: [{"a" * int(rows[0, 0]): TOKEN}]) as server:
        original = opened(server.url, token_env="MY_TOKEN", patience=FAST._replace(failures=1000))
        for length in range(QUOTED - 140, QUOTED + 5, 3):
            with pytest.raises(OriginalError, match="not a label") as caught:
                original.answer(np.array([[float(length)]]))
            assert TOKEN[:3] not in str(caught.value)


def test_a_token_that_is_part_of_a_label_does_not_change_it(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "e")
    with serving() as server:
        assert opened(server.url, token_env="MY_TOKEN").answer(ROWS).tolist() == ["yes", "no", "yes", "no"]


@pytest.mark.parametrize("token", ["", "  ", "a\nb", "schlüssel"])
def test_tokens_that_cannot_be_sent(token, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", token)
    with pytest.raises(SettingError, match="MY_TOKEN, found") as caught:
        open_http("http://a.test", protocol="instances", token_env="MY_TOKEN")
    assert not token.strip() or token not in str(caught.value)


# --- surroundings ---------------------------------------------------------------------------------------------------


def test_netrc_is_not_read(tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hush\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving() as server:
        opened(server.url).answer(ROWS)
    assert "Authorization" not in server.log[0].headers


def test_a_proxy_from_the_environment_is_used(monkeypatch):
    with serving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert opened("http://model.invalid/score").answer(ROWS).tolist() == ["yes", "no", "yes", "no"]
    assert proxy.log[0].path == "http://model.invalid/score"


def test_an_environment_that_no_client_can_use(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "gopher://a.test")
    with pytest.raises(OutageError, match=r"expected a usable HTTP environment, found .*; check HTTP_PROXY"):
        opened("http://model.invalid/score").answer(ROWS)


def lines():
    return {thread for thread in threading.enumerate() if thread.name == "ectype-http"}


def test_a_client_starts_when_first_asked_and_ends_with_its_original():
    gc.collect()
    before = lines()
    with serving() as server:
        original = opened(server.url)
        assert lines() == before
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(original.answer, [ROWS] * 8))
        (line,) = lines() - before
        del original
        gc.collect()
        line.join(timeout=10)
        assert not line.is_alive()


def test_nothing_is_left_open_at_exit():
    script = """
        import sys
        import numpy as np
        from ectype.original import open_original
        original = open_original(sys.argv[1], protocol="instances", timeout=1.0)
        print(original.answer(np.ones((2, 2))).tolist())
    """
    with serving("stall") as server:
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script), server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "['yes', 'yes']\n")
    assert "Warning" not in done.stderr
