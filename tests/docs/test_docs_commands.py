"""The commands and the JSON in docs/ are run, against real files, a real program and a real server."""

import hashlib
import json
import os
import pickle
import re
import shlex
import subprocess
import sys
from pathlib import Path

import catboost
import httpx2
import lightgbm
import numpy as np
import onnx
import pandas as pd
import pytest
import skops.io
import xgboost
from sklearn.linear_model import LogisticRegression

import understudy as us
from commands import run_code, run_command
from faulty import FaultyServer
from serving import Process
from understudy.export.compiling import compiler

QUIETLY = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
DOCS = Path(__file__).parents[2] / "docs"
SCORE = """
import csv, sys

for a, b in list(csv.reader(sys.stdin))[1:]:
    print("up" if float(a) > float(b) else "down")
"""


def blocks(name, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", (DOCS / name).read_text(), flags=re.M | re.S)


def commands(name):
    return [line for block in blocks(name, "sh") for line in block.strip().splitlines()]


def ran(command, folder):
    program, *arguments = shlex.split(command)
    assert program == "understudy"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOX_TOKEN", "secret")
        patch.setenv("VENDOR_KEY", "secret")
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        out = run_command(*arguments, cwd=folder)
    assert out.returncode == 0, f"{command}\n{out.stderr}"
    return out.stdout


def diagonal(rows):
    return (np.asarray(rows, float)[:, 0] > np.asarray(rows, float)[:, 1]).astype(int)


def above():
    """x0 > x1 as an ONNX model."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Greater", ["s", "zero"], ["above"]),
        helper.make_node("Cast", ["above"], ["column"], to=TensorProto.INT64),
        helper.make_node("Squeeze", ["column", "axis"], ["label"]),
    ]
    graph = helper.make_graph(
        nodes,
        "above",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"])],
        [
            helper.make_tensor("w", TensorProto.FLOAT, [2, 1], [1.0, -1.0]),
            helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]),
            helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def boosted(X, y, folder):
    """Models of other libraries, saved by them."""
    lightgbm.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1).fit(X, y).booster_.save_model(folder / "model.txt")
    xgboost.XGBClassifier(n_estimators=60, n_jobs=1).fit(X, y).save_model(folder / "model.ubj")
    catboost.CatBoostClassifier(iterations=60, **QUIETLY).fit(X, y).save_model(str(folder / "model.cbm"))


@pytest.fixture
def folder(tmp_path, rng):
    X = rng.normal(size=(400, 2))
    model = LogisticRegression().fit(X, diagonal(X))
    (tmp_path / "mymodels.py").write_text("def classifier(rows):\n    return rows[:, 0] > rows[:, 1]\n")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    skops.io.dump(model, tmp_path / "model.skops")
    onnx.save(above(), tmp_path / "model.onnx")
    boosted(X, diagonal(X), tmp_path)
    (tmp_path / "score.py").write_text(SCORE)
    (tmp_path / "template.json").write_text(blocks("originals.md", "json")[0])
    pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"]).assign(
        decision=lambda frame: np.where(frame["a"] > frame["b"], "yes", "no")
    ).to_csv(tmp_path / "answers.csv", index=False)
    pd.DataFrame(rng.normal(size=(300, 2)), columns=["x0", "x1"]).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def test_originals(folder):
    digest = hashlib.sha256((folder / "model.pkl").read_bytes()).hexdigest()
    with FaultyServer(lambda rows: diagonal(rows).tolist(), share=0) as server:
        for command in commands("originals.md"):
            ran(command.replace("http://127.0.0.1:8080", server.url).replace("SHA256", digest), folder)
    copies = sorted(path.name for path in folder.glob("copy-*"))
    assert len(copies) == 15
    assert us.load(folder / "copy-scores").settings["scores"] is True
    assert us.load(folder / "copy-rows").certificate.on_data.n == 150
    for name in copies:
        assert us.load(folder / name).certificate.estimate > 0.9, name
    assert len(pd.read_csv(folder / "queries.csv")) == 300 + 2000 + 46


@pytest.mark.parametrize("text", blocks("spaces.md", "json"))
def test_spaces_in_json(text, rng):
    space = us.Space.from_json(text)
    assert len(space.present(space.sample(100, rng))) == 100
    assert space.keeps_rules(space.sample(100, rng)).all()
    assert json.loads(space.to_json())["columns"]


def test_exports(folder):
    for command in commands("export.md"):
        ran(command, folder)
    (single, frame) = blocks("export.md", "python")
    assert run_code(single, cwd=folder).stdout.startswith("[ True False] [[")
    start = "import onnxruntime, pandas as pd\nframe = pd.read_csv('answers.csv').drop(columns='decision')\n"
    assert run_code(start + frame, cwd=folder).returncode == 0
    assert (folder / "copy.rules").read_text().startswith("if ")
    (folder / "main.c").write_text(blocks("export.md", "c")[0])
    made = [*compiler(), "-std=c99", "-Werror", "-pedantic", "main.c", "copy.c", "-lm", "-o", "program"]
    subprocess.run(made, cwd=folder, check=True)
    assert subprocess.run([folder / "program"], capture_output=True, text=True).stdout.startswith("True ")


def test_serving(folder):
    copy, *serves = commands("serving.md")
    ran(copy, folder)
    (question, answer), (code,) = blocks("serving.md", "json"), blocks("serving.md", "python")
    with FaultyServer(lambda rows: (diagonal(rows) > 0).tolist(), share=0) as original:
        for command in serves:
            arguments = command.replace("http://127.0.0.1:9000", original.url)
            with Process(*shlex.split(arguments)[2:], cwd=folder) as server:
                posted = httpx2.post(server.model + "/infer", json=json.loads(question)).json()
                assert posted == json.loads(answer)
                out = run_code(code.replace("http://127.0.0.1:8080", server.url), cwd=folder)
                assert (out.stdout, out.stderr) == ("[ True False]\n", "")
    assert (folder / "differ.csv").read_text().startswith("x0,x1,original,copy")


def test_certificates(folder):
    found = [ran(command, folder) for command in commands("certificates.md") if command.startswith("understudy")]
    assert "where they differ" in found[1]
    (code,) = blocks("certificates.md", "python")
    assert run_code(code, cwd=folder).stdout.startswith("Bound(estimate=")


def test_a_space_from_rows(tmp_path, rng):
    start = rng.integers(2000, 2010, 200)
    frame = pd.DataFrame({"id": range(200), "start": start, "end": start + rng.integers(0, 9, 200)})
    frame.assign(grade=rng.choice(list("ABCD"), 200)).to_csv(tmp_path / "rows.csv", index=False)
    for command in commands("spaces.md"):
        ran(command, tmp_path)
    assert us.Space.load(tmp_path / "space.json").names == ("start", "end", "grade")


def test_families(tmp_path):
    columns = [
        {"name": "income", "kind": "float", "low": 0, "high": 9},
        {"name": "sex", "kind": "category", "levels": ["f", "m"]},
    ]
    (tmp_path / "loans.json").write_text(json.dumps({"columns": columns}))
    (tmp_path / "loans.py").write_text("def decide(rows):\n    return rows['income'] + (rows['sex'] == 'f') > 5\n")
    for command in commands("families.md"):
        if not command.startswith("python"):
            ran(command, tmp_path)
    fair = us.load(tmp_path / "fair")
    assert fair.copy.space.names == ("income",)
    assert (tmp_path / "fair" / "copy.safetensors").stat().st_size <= 20_000
    poor, rich = us.load(tmp_path / "rising").copy.predict_proba(pd.DataFrame({"income": [1, 8], "sex": "m"}))[:, 1]
    assert rich > poor
    assert (tmp_path / "rising" / "frontier.svg").is_file()


def test_refresh(tmp_path):
    (tmp_path / "mymodels.py").write_text(
        "def classifier(rows):\n    return rows[:, 0] > rows[:, 1]\n\n\n"
        "def retrained(rows):\n    return rows[:, 0] > rows[:, 1] + 0.3\n"
    )
    said = [ran(command, tmp_path) for command in commands("refresh.md") if command.startswith("understudy ")]
    assert said[1].startswith("unchanged: 300 rows asked again, 0 answers differ")
    assert said[2].startswith("changed: ")
    assert "True became False" in said[2]
    assert us.load(tmp_path / "my-copy-2").certificate.estimate > 0.95
