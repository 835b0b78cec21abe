"""The folder that MLflow reads: its content, and the answers of the loader in it. compat/mlflow_export.py serves it."""

import json
import os

import numpy as np
import pandas as pd
import pytest
import yaml

import ectype as ec
from ectype.errors import DirectoryError
from ectype.export._mlflow import mlflow_answers
from ectype.export._mlflow_loader import _load_pyfunc
from make_copies import APART, fresh


@pytest.mark.parametrize("name", ["spirals", "loans", "odd"])
@pytest.mark.parametrize("family", ["tree", "plain"])
def test_the_folder_answers_what_the_copy_answers(copies, family, name, tmp_path):
    copy = copies(family, name)
    written = ec.export(copy, tmp_path / "model", "mlflow")
    assert (written.format, written.disagreements) == ("mlflow", 0)
    rows = fresh(copy, 500)
    np.testing.assert_array_equal(mlflow_answers(tmp_path / "model", rows), copy.predict(rows))
    found = _load_pyfunc(str(tmp_path / "model" / "model.onnx")).predict(rows)
    assert list(found) == ["label", *(f"probability_{label}" for label in copy.classes.tolist())]
    np.testing.assert_allclose(found.iloc[:, 1:], copy.predict_proba(rows), atol=APART[family])


def test_the_description_is_one_that_mlflow_reads(copies, tmp_path):
    ec.export(copies("tree", "loans"), tmp_path / "model", "mlflow")
    files = {os.path.join(at, name) for at, _, names in os.walk(tmp_path / "model") for name in names}
    assert {os.path.relpath(file, tmp_path / "model") for file in files} == {
        *("MLmodel", "model.onnx", "requirements.txt", "python_env.yaml", "code/ectype_copy.py")
    }
    about = yaml.safe_load((tmp_path / "model" / "MLmodel").read_text())
    flavor = about["flavors"]["python_function"]
    assert (flavor["loader_module"], flavor["code"], flavor["data"]) == ("ectype_copy", "code", "model.onnx")
    types = {column["name"]: column["type"] for column in json.loads(about["signature"]["inputs"])}
    assert types["age"] == "long"
    assert types["owner"] == "boolean"
    assert types["employer"] == "string"
    assert types["income"] == "double"
    assert "ectype" not in (tmp_path / "model" / "requirements.txt").read_text()


def test_rows_as_json_brings_them(copies, tmp_path):
    """None for every kind of gap, and columns in another order."""
    copy = copies("tree", "loans")
    ec.export(copy, tmp_path / "model", "mlflow")
    rows = fresh(copy, 200)
    sent = json.loads(rows[list(reversed(rows.columns))].to_json(orient="records"))
    np.testing.assert_array_equal(mlflow_answers(tmp_path / "model", pd.DataFrame(sent)), copy.predict(rows))


def test_rows_that_the_copy_refuses_are_refused(copies, tmp_path):
    copy = copies("tree", "loans")
    ec.export(copy, tmp_path / "model", "mlflow")
    rows = fresh(copy, 5)
    with pytest.raises(ValueError, match="column owner: a value in every row is needed"):
        mlflow_answers(tmp_path / "model", rows.assign(owner=[True, None, False, True, True]))
    with pytest.raises(TypeError, match="a data frame with the columns"):
        mlflow_answers(tmp_path / "model", rows.to_numpy())
    ec.export(copies("tree", "spirals"), tmp_path / "array", "mlflow")
    with pytest.raises(ValueError, match="finite numbers are needed"):
        mlflow_answers(tmp_path / "array", np.array([[0.0, np.nan]]))


def test_what_is_there_is_not_replaced(copies, tmp_path):
    (tmp_path / "model").mkdir()
    with pytest.raises(DirectoryError, match="the name of a new folder, found something of that name is there"):
        ec.export(copies("tree", "loans"), tmp_path / "model", "mlflow")
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(tmp_path / "model") == []
