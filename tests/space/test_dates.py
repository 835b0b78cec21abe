"""Dates and timestamps: learned from frames and text, drawn, given back as they were, copied, exported and served."""

import datetime
import json
import re

import httpx2
import numpy as np
import onnxruntime
import pandas as pd
import pytest

import ectype as ec
from ectype.errors import SpaceError
from ectype.ledger import LEDGER, query_table, space_of
from ectype.original.protocols.json_rows import objects
from ectype.space._dates import DAY
from fault_server import FaultyServer
from server_process import Process

BASE = np.datetime64("2024-01-01")


def bookings(n, seed=0):
    """Dates as frames have them: in types of pandas, as objects of Python, as text, with gaps and with time zones."""
    rng = np.random.default_rng(seed)
    start, stay, booked = BASE + rng.integers(0, 600, n), rng.integers(1, 15, n), rng.integers(0, 600 * DAY, n)
    times = BASE.astype("datetime64[s]") + booked
    return pd.DataFrame(
        {
            "start": start.astype("datetime64[ns]"),
            "end": (start + stay).astype("datetime64[ns]"),
            "born": [(BASE - int(k)).item() for k in rng.integers(7000, 30000, n)],
            "paid": pd.Series((start - 3).astype(str)).where(rng.random(n) > 0.2),
            "booked": pd.Series(times).dt.tz_localize("UTC").dt.tz_convert("Europe/Madrid"),
            "clicked": pd.Series(times.astype(str)) + "Z",
            "rooms": rng.integers(1, 4, n),
        }
    )


def original(rows):
    late, old = rows["booked"].dt.year > 2024, rows["born"].map(lambda born: born.year) < 1980
    return np.where((rows["start"] > "2025-01-01") & late | rows["paid"].isna() & old, "refuse", "take")


@pytest.fixture(scope="module")
def space():
    return ec.Space.from_data(bookings(2000), rules=["start + 1 <= end", "end - start <= 14"])


@pytest.fixture(scope="module")
def run(space, tmp_path_factory):
    path = tmp_path_factory.mktemp("dates") / "run"
    limits = {"budget": 800, "certificate_n": 300, "to": "tree", "draw": "random"}
    return path, ec.copy_classifier(original, space, **limits, rows=bookings(200, 1), out=path)


def test_dates_are_learned_drawn_and_given_back_as_they_were(space, rng):
    frame = bookings(500, 2)
    assert [column.kind for column in space.columns] == ["date"] * 4 + ["timestamp"] * 2 + ["integer"]
    rows = space.read(frame, "here")
    assert rows[:, 0].tolist() == (frame["start"].to_numpy().astype("datetime64[D]").astype(int)).tolist()
    assert rows[:, 4].tolist() == rows[:, 5].tolist()
    pd.testing.assert_frame_equal(space.present(rows), frame)
    drawn = space.present(space.sample(400, rng))
    pd.testing.assert_series_equal(drawn.dtypes, frame.dtypes)
    stay = (drawn["end"] - drawn["start"]).dt.days
    assert stay.between(1, 14).all()
    assert isinstance(drawn["born"][0], datetime.date)
    assert drawn["clicked"].str.fullmatch(r"202\d-\d\d-\d\dT\d\d:\d\d:\d\dZ").all()
    assert drawn["paid"].isna().mean() == pytest.approx(0.2, abs=0.08)
    again = ec.Space.from_json(space.to_json())
    assert again == space
    assert again.digest == space.digest
    assert '"kind": "date", "quantiles": ["2024-01-0' in space.to_json()
    assert "2024-01-0" in str(space)


def test_dates_in_a_schema_by_hand(rng):
    columns = [
        {"name": "day", "kind": "date", "low": "2026-01-01", "high": "2026-12-31"},
        {"name": "at", "kind": "timestamp", "mean": "2026-06-01T12:00", "std": 3600, "form": "%d.%m.%Y %H:%M"},
        {"name": "term", "kind": "date", "values": ["2026-06-30", "2026-12-31"], "shares": [0.5, 0.5]},
    ]
    rules = ["day <= '2026-03-31'", "if day < '2026-02-01' then term == '2026-06-30'", "term in ['2026-06-30']"]
    space = ec.Space.from_json(json.dumps({"columns": columns, "rules": rules}))
    rows = space.sample(200, rng)
    drawn = space.present(rows)
    np.testing.assert_array_equal(space.read(drawn, "here"), rows)
    assert drawn["day"].between("2026-01-01", "2026-03-31").all()
    assert drawn["at"].str.fullmatch(r"0[12]\.06\.2026 .*|31\.05\.2026 .*").all()
    assert set(drawn["term"].astype(str)) == {"2026-06-30"}


def test_words_that_are_no_dates_and_dates_that_are_names():
    frame = pd.DataFrame({"a": ["2026-13-01", "2026-01-02"] * 10, "b": ["2026-01-01", "2026-01-02"] * 10})
    assert [column.kind for column in ec.Space.from_data(frame, categories=["b"]).columns] == ["category", "category"]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("start", "soon", r"column start: expected dates such as 202\d-\d\d-\d\d, found 'soon'"),
        ("paid", "2024-02-31", r"column paid: expected dates such as 202\d-\d\d-\d\d, found '2024-02-31'"),
        ("paid", "2024-02-1\u0661", r"column paid: expected dates such as 202\d-\d\d-\d\d, found '2024-02-1\u0661'"),
        ("start", "today", "column start: expected dates such as .*, found 'today'"),
        ("start", "NaT", "column start: expected dates such as .*, found 'NaT'"),
        ("start", None, "column start: expected a value in every row, found 1 missing"),
    ],
)
def test_rows_without_a_date(space, column, value, message):
    frame = bookings(3)
    frame[column] = frame[column].astype(object)
    frame.loc[1, column] = value
    with pytest.raises(SpaceError, match=message):
        space.read(frame, "here")


def test_a_copy_of_dates_and_its_ledger(run):
    path, result = run
    frame = bookings(1000, 3)
    assert ec.metrics.fidelity(original(frame), result.copy.predict(frame)) > 0.9
    assert result.certificate.on_data.estimate > 0.9
    np.testing.assert_array_equal(ec.load(path).copy.predict(frame), result.copy.predict(frame))
    asked = query_table(path / LEDGER, space_of(path / LEDGER))
    assert str(asked["start"].dtype) == "datetime64[ns]"
    proof = ec.certify(result.copy, lambda rows: ["take"] * len(rows), result.space, n=100)
    (example, *_) = proof.differences.examples
    assert datetime.date.fromisoformat(example.row["start"]) > datetime.date(2023, 12, 31)
    assert ec.Certificate.from_json(json.loads(json.dumps(proof.as_json()))) == proof


def test_exported_files_take_days_and_seconds(run, tmp_path):
    _, result = run
    for name in ("copy.onnx", "copy.sql", "copy.c", "copy.skops", "copy.rules"):
        assert ec.export(result.copy, tmp_path / name).disagreements == 0
    assert re.search(r"(<=|>) 2025-01-\d\d", (tmp_path / "copy.rules").read_text())
    assert "start: whole days since 1970-01-01" in (tmp_path / "copy.c").read_text()
    session = onnxruntime.InferenceSession(tmp_path / "copy.onnx")
    types = {value.name: value.type for value in session.get_inputs()}
    assert types["start"] == types["booked"] == "tensor(int64)"
    assert types["paid"] == "tensor(double)"
    frame = bookings(50, 4)
    days = result.copy.space.read(frame, "here")
    inputs = {
        name: days[:, [j]].astype(np.int64 if types[name] == "tensor(int64)" else np.float64)
        for j, name in enumerate(result.copy.space.names)
    }
    np.testing.assert_array_equal(session.run(["label"], inputs)[0], result.copy.predict(frame))
    numbers = pd.DataFrame(days, columns=result.copy.space.names)
    np.testing.assert_array_equal(result.copy.predict(numbers), result.copy.predict(frame))
    nanoseconds = frame[["start"]].to_numpy().astype("int64")  # as nobody means it
    with pytest.raises(Exception, match="indices element out of data bounds"):
        session.run(["label"], {**inputs, "start": nanoseconds})
    with pytest.raises(SpaceError, match=r"column start: expected dates, or days since 1970-01-01, found 1\.\d+e\+18"):
        result.copy.predict(numbers.assign(start=nanoseconds))


def test_an_endpoint_is_asked_with_iso_dates_and_a_copy_served_takes_them(run, space):
    path, result = run
    seen = []

    def answer(rows):
        seen.extend(rows.to_dict("records"))
        return ["take"] * len(rows)

    with FaultyServer(answer, share=0) as server:
        remote = ec.open_original(server.url, protocol="instances")
        assert remote.answer(bookings(3)).tolist() == ["take"] * 3
    assert seen[0] == objects(bookings(3))[0]
    assert seen[0]["start"] == bookings(3)["start"][0].isoformat()
    assert datetime.date.fromisoformat(seen[0]["born"])
    frame = bookings(5, 5)
    with Process(path) as served:
        posted = httpx2.post(f"{served.url}/predict", json=objects(frame)).json()
        numbers = json.dumps(space.read(frame, "here").tolist()).replace("NaN", "null")
        counted = httpx2.post(f"{served.url}/predict", content=numbers, headers={"Content-Type": "application/json"})
    assert posted["predictions"] == counted.json()["predictions"] == result.copy.predict(frame).tolist()
