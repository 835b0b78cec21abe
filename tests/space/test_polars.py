"""Data frames of Polars, wherever those of pandas are taken; and Parquet, wherever CSV is."""

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype.errors import SettingError
from ectype.original.stored_answers import read_table
from ectype.space import as_pandas
from optional_packages import needs
from problems import loans

pl = needs("polars")
ORIGINAL = "def decide(rows):\n    return (rows['income'] > 30000) & (rows['region'] != 'west')\n"


def decide(rows):
    return (rows["income"] > 30000) & (rows["region"] != "west")


@pytest.fixture(scope="module")
def table():
    """One table, as pandas and as Polars have it."""
    frame = loans(600, 0)[0].drop(columns="grade").assign(since=pd.to_datetime("2026-01-01"))
    values = {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame}
    return frame, pl.DataFrame(values, strict=False)


def test_a_space_a_copy_and_a_certificate_of_polars_frames(table, monkeypatch):
    frame, polars = table
    for kind in (pl.DataFrame, pl.Series):  # which take PyArrow
        monkeypatch.setattr(kind, "to_pandas", None)
        monkeypatch.setattr(kind, "to_arrow", None)
    plain, space = ec.Space.from_data(frame.astype({"since": "datetime64[us]"})), ec.Space.from_data(polars.lazy())
    assert space.columns == plain.columns
    result = ec.copy_classifier(decide, space, budget=300, certificate_n=100, to="tree", rows=polars)
    assert result.certificate.on_data.n == 100
    np.testing.assert_array_equal(result.copy.predict(polars), result.copy.predict(frame))
    assert result.copy.score(polars, decide(frame)) > 0.9
    proof = ec.certify(result.copy, decide, space, n=100, data=polars)
    assert proof.on_data == ec.certify(result.copy, decide, space, n=100, data=frame).on_data
    numbers = pl.DataFrame({"a": [0.5, 1.0, 2.0] * 9, "b": [1, 2, 3] * 9})
    fitted = ec.SinglePassCopy(lambda rows: rows["a"] > 1, budget=100, preset="fast", random_state=0).fit(numbers)
    assert fitted.predict(numbers).shape == (27,)


def test_types_that_only_polars_has():
    day = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    polars = pl.DataFrame(
        {
            "flag": [True, None],
            "city": pl.Series(["Bonn", None], dtype=pl.Categorical),
            "grade": pl.Series(["A", "B"], dtype=pl.Enum(["B", "A"])),
            "price": pl.Series(["1.50", None]).cast(pl.Decimal(10, 2)),
            "small": pl.Series([1, None], dtype=pl.UInt8),
            "at": pl.Series([day, None]).dt.convert_time_zone("Europe/Madrid"),
        }
    )
    found = as_pandas(polars)
    assert found["at"].dtype == "datetime64[us, Europe/Madrid]"
    assert found["at"][0] == pd.Timestamp(day)
    assert found.isna().sum().tolist() == [1, 1, 0, 1, 1, 1]
    assert found.iloc[0, :5].tolist() == [True, "Bonn", "A", 1.5, 1.0]


def test_parquet_wherever_csv_is(table, tmp_path):
    frame, _ = table
    (tmp_path / "mine.py").write_text(ORIGINAL)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.assign(label=decide(frame)).to_parquet(tmp_path / "answers.parquet")
    for command in (
        "space rows.parquet --out space.json",
        "copy mine:decide --space space.json --rows rows.parquet --out run --budget 200 --certificate-n 100 --to tree",
        "certify run mine:decide --n 100 --data rows.parquet",
        "copy answers.parquet --out from-answers --budget 300 --certificate-n 200 --to tree",
    ):
        out = run_command(*command.split(), cwd=tmp_path)
        assert out.returncode == 0, out.stderr
    assert ec.load(tmp_path / "from-answers").certificate.estimate > 0.9
    assert {column.name: column.kind for column in ec.Space.load(tmp_path / "space.json").columns}["since"] == "date"


def test_parquet_that_cannot_be_read(tmp_path, monkeypatch):
    (tmp_path / "rows.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(SettingError, match=r"rows\.parquet: expected a Parquet file"):
        read_table(str(tmp_path / "rows.parquet"))
    with pytest.raises(SettingError, match=r"none\.parquet: expected a Parquet file, found no such file"):
        read_table(str(tmp_path / "none.parquet"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingError, match=r'pyarrow, .* install it: pip install "ectype\[parquet\]"'):
        read_table(str(tmp_path / "rows.parquet"))
