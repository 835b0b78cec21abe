"""Every page of the site is followed: its files are saved, its commands typed, its code run, against real servers."""

import hashlib
import json
import pickle
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx2
import numpy as np
import onnx
import pandas as pd
import pytest
import skops.io
from pages import PAGES, RUN, Reader, blocks, commands, to_run
from sklearn.linear_model import LogisticRegression

import ectype as ec
from commands import run_code, run_command
from ectype.export._c_verification import compiler
from fault_server import FaultyServer
from optional_packages import needs
from server_process import Process

pytestmark = pytest.mark.usefixtures("small_lessons")
QUIETLY = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
SCORE = """
import csv, sys

for a, b in list(csv.reader(sys.stdin))[1:]:
    print("up" if float(a) > float(b) else "down")
"""
ENDPOINT = "http://127.0.0.1:8080"
# Pages that are followed elsewhere.
ELSEWHERE = {"tutorial.md": "test_readme.py"}
READ: dict[str, Callable[[Path], None]] = {}


def reads(page):
    """Say which page a function follows."""
    return lambda function: READ.setdefault(page, function)


@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page) and page not in ELSEWHERE])
def test_a_page_can_be_followed(page, tmp_path, monkeypatch):
    assert page in READ, (
        f"{page} has code that nobody runs: add a function here, or say above the block why it cannot be"
    )
    monkeypatch.setenv("BOX_TOKEN", "secret")
    monkeypatch.setenv("VENDOR_KEY", "secret")
    READ[page](tmp_path)


def test_no_page_is_followed_that_is_gone():
    assert {*READ, *ELSEWHERE} <= {page for page in PAGES if to_run(page)}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_run_or_say_why_not(page):
    """Only these languages are shown; what is code in another one, and is run, is run by a test that reads it."""
    shown = {"text", "json", "toml", "ini", "c", "sas", "mermaid", "{eval-rst}", "{toctree}"}
    others = {block.kind for block in blocks(page)} - {*RUN, *shown}
    assert others <= ({"py", "bash"} if page == "serving.md" else set())  # tests/serve/test_asgi.py


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
    catboost, lightgbm, xgboost = map(needs, ("catboost", "lightgbm", "xgboost"))
    lightgbm.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1).fit(X, y).booster_.save_model(folder / "model.txt")
    xgboost.XGBClassifier(n_estimators=60, n_jobs=1).fit(X, y).save_model(folder / "model.ubj")
    catboost.CatBoostClassifier(iterations=60, **QUIETLY).fit(X, y).save_model(str(folder / "model.cbm"))


def stocked(folder):
    """Models of all kinds, rows and answers, by the names that the pages have for them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    model = LogisticRegression().fit(X, diagonal(X))
    (folder / "mymodels.py").write_text("def classifier(rows):\n    return rows[:, 0] > rows[:, 1]\n")
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    skops.io.dump(model, folder / "model.skops")
    onnx.save(above(), folder / "model.onnx")
    (folder / "score.py").write_text(SCORE)
    pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"]).assign(
        decision=lambda frame: np.where(frame["a"] > frame["b"], "yes", "no")
    ).to_csv(folder / "answers.csv", index=False)
    pd.DataFrame(rng.normal(size=(300, 2)), columns=["x0", "x1"]).to_csv(folder / "rows.csv", index=False)
    return X, model


@reads("originals.md")
def originals(folder):
    X, _ = stocked(folder)
    boosted(X, diagonal(X), folder)
    (folder / "template.json").write_text(next(block.text for block in blocks("originals.md") if block.kind == "json"))
    digest = hashlib.sha256((folder / "model.pkl").read_bytes()).hexdigest()
    with FaultyServer(lambda rows: diagonal(rows).tolist(), share=0) as server:
        Reader(folder, {ENDPOINT: server.url, "SHA256": digest}).follow("originals.md")
    copies = sorted(path.name for path in folder.glob("copy-*"))
    assert len(copies) == 16
    assert ec.load(folder / "copy-scores").settings["scores"] is True
    assert ec.load(folder / "copy-rows").certificate.on_data.n == 150
    for name in copies:
        assert ec.load(folder / name).certificate.estimate > 0.9, name
    assert len(pd.read_csv(folder / "queries.csv")) == 300 + 2000 + 46


@pytest.mark.parametrize("text", [block.text for block in blocks("spaces.md") if block.kind == "json"])
def test_spaces_in_json(text, rng):
    space = ec.Space.from_json(text)
    assert len(space.present(space.sample(100, rng))) == 100
    assert space.keeps_rules(space.sample(100, rng)).all()
    assert json.loads(space.to_json())["columns"]


@reads("spaces.md")
def spaces(folder):
    rng = np.random.default_rng(0)
    start = rng.integers(2000, 2010, 200)
    frame = pd.DataFrame({"id": range(200), "start": start, "end": start + rng.integers(0, 9, 200)})
    frame.assign(grade=rng.choice(list("ABCD"), 200)).to_csv(folder / "rows.csv", index=False)
    Reader(folder).follow("spaces.md")
    assert ec.Space.load(folder / "space.json").names == ("start", "end", "grade")


@reads("reference/export.md")
def exports(folder):
    stocked(folder)
    said = Reader(folder).follow("reference/export.md")
    assert any(text.startswith("[ True False] [[") for text in said)
    assert (folder / "copy.rules").read_text().startswith("if ")
    (folder / "main.c").write_text(next(block.text for block in blocks("reference/export.md") if block.kind == "c"))
    made = [*compiler(), "-std=c99", "-Werror", "-pedantic", "main.c", "copy.c", "-lm", "-o", "program"]
    subprocess.run(made, cwd=folder, check=True)
    assert subprocess.run([folder / "program"], capture_output=True, text=True).stdout.startswith("True ")


@reads("serving.md")
def serving(folder):
    stocked(folder)
    copy, *serves = commands("serving.md")
    assert run_command(*shlex.split(copy)[1:], cwd=folder).returncode == 0
    question, answer = (block.text for block in blocks("serving.md") if block.kind == "json")
    (code,) = (block.text for block in to_run("serving.md") if block.kind == "python")
    with FaultyServer(lambda rows: (diagonal(rows) > 0).tolist(), share=0) as original:
        for command in serves:
            arguments = command.replace("http://127.0.0.1:9000", original.url)
            with Process(*shlex.split(arguments)[2:], cwd=folder) as server:
                posted = httpx2.post(server.model + "/infer", json=json.loads(question)).json()
                assert posted == json.loads(answer)
                out = run_code(code.replace(ENDPOINT, server.url), cwd=folder)
                assert (out.stdout, out.stderr) == ("[ True False]\n", "")
                if "--traffic" in command:
                    states = (httpx2.get(server.url + "/shadow").json()["keep"]["rows"] for _ in range(10_000))
                    assert next(rows for rows in states if rows == 4)
    assert (folder / "differ.csv").read_text().startswith("x0,x1,original,copy")
    assert run_command("ledger", "traffic", cwd=folder).returncode == 0


@reads("certificates.md")
def certificates(folder):
    stocked(folder)
    said = Reader(folder).follow("certificates.md")
    assert "where they differ" in said[1]
    assert said[2].startswith("Bound(estimate=")


@reads("reference/families.md")
def families(folder):
    Reader(folder).follow("reference/families.md")
    fair = ec.load(folder / "fair")
    assert fair.copy.space.names == ("income",)
    assert (folder / "fair" / "copy.safetensors").stat().st_size <= 20_000
    poor, rich = ec.load(folder / "rising").copy.predict_proba(pd.DataFrame({"income": [1, 8], "sex": "m"}))[:, 1]
    assert rich > poor
    assert (folder / "rising" / "frontier.svg").is_file()


@reads("index.md")
def index(folder):
    assert Reader(folder).follow("index.md")[0].endswith("['inside' 'outside']\n")


@reads("runs.md")
def runs(folder):
    stocked(folder)
    ec.copy_classifier(ec.Original(diagonal, name="mine"), ec.Space.normal(2), budget=300, out=folder / "my-copy")
    Reader(folder).follow("runs.md")
    assert ec.load(folder / "my-tree").family == "tree"
    assert (folder / "smaller" / "run.json").is_file()


@reads("howto/endpoint.md")
def endpoint(folder):
    with FaultyServer(lambda rows: diagonal(rows).tolist(), share=0) as vendor:
        Reader(folder, {ENDPOINT: vendor.url}).follow("howto/endpoint.md")
        assert {seen.headers["X-Api-Key"] for seen in vendor.log} == {"secret"}
        assert max(len(seen.rows) for seen in vendor.log[-10:]) == 20
    assert len(pd.read_csv(folder / "trial.csv")) >= 120
    assert ec.load(folder / "vendor-copy").certificate.estimate > 0.95


PMML = """<?xml version="1.0"?>
<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>
  <DataDictionary>
    <DataField name="a" optype="continuous" dataType="double"/>
    <DataField name="b" optype="continuous" dataType="double"/>
    <DataField name="decision" optype="categorical" dataType="string"><Value value="down"/><Value value="up"/>
    </DataField>
  </DataDictionary>
  <RegressionModel functionName="classification" normalizationMethod="logit">
    <MiningSchema>
      <MiningField name="a"/><MiningField name="b"/><MiningField name="decision" usageType="target"/>
    </MiningSchema>
    <RegressionTable targetCategory="up" intercept="0">
      <NumericPredictor name="a" coefficient="3"/><NumericPredictor name="b" coefficient="-3"/>
    </RegressionTable>
    <RegressionTable targetCategory="down" intercept="0"/>
  </RegressionModel>
</PMML>"""


@reads("howto/pmml.md")
def from_elsewhere(folder):
    needs("pypmml")
    if shutil.which("java") is None:
        pytest.skip("no java is installed here")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
    rows.to_csv(folder / "rows.csv", index=False)
    ec.Space.from_data(rows).save(folder / "space.json")
    (folder / "model.pmml").write_text(PMML)
    (folder / "score.py").write_text(SCORE)
    scored = ec.Space.from_data(rows).sample(3000, rng)  # as SAS would score what the page draws
    pd.DataFrame(scored, columns=["a", "b"]).assign(
        decision=lambda frame: np.where(frame["a"] > frame["b"], "up", "down")
    ).to_csv(folder / "answers.csv", index=False)
    Reader(folder).follow("howto/pmml.md")
    assert list(pd.read_csv(folder / "to_score.csv")) == ["a", "b"]
    for name in ("copy-pmml", "copy-scored", "copy-program"):
        assert ec.load(folder / name).certificate.estimate > 0.95, name
    assert (folder / "copy.onnx").is_file()


@reads("howto/small.md")
def small(folder):
    said = Reader(folder).follow("howto/small.md")
    assert "its copy: " in said[-1]
    assert ec.load(folder / "network").family == "mlp"
    assert (folder / "network" / "copy.safetensors").stat().st_size <= 60_000


@reads("howto/cascade.md")
def cascaded(folder):
    said = Reader(folder).follow("howto/cascade.md")
    assert "The copy answers alone where its margin is at least" in said[1]
    assert "['grant'" in said[1] or "['refuse'" in said[1]
    nothing, some = said[2].splitlines()
    assert "rows without a difference are the fewest that can show it" in nothing
    assert 0 <= float(some) <= 1


@reads("howto/without-a-column.md")
def without_a_column(folder):
    said = Reader(folder).follow("howto/without-a-column.md")
    assert said[-1].startswith("('income', 'years')")
    women, men = (float(line.split()[-1]) for line in said[-1].splitlines() if line[:2] in ("f ", "m "))
    assert abs(women - men) < 0.05


@reads("howto/auditor.md")
def auditor(folder):
    Reader(folder).follow("howto/auditor.md")
    rules = (folder / "rules.txt").read_text()
    assert 2 <= rules.count("\nif ") + rules.startswith("if ") <= 12
    assert "sex" not in rules
    assert (folder / "readable" / "card.md").is_file()
    assert (folder / "signed-card.md").is_file()


@reads("howto/refresh.md")
def refreshed(folder):
    said = Reader(folder).follow("howto/refresh.md")
    assert said[1].startswith("unchanged: 300 rows asked again, 0 answers differ")
    assert said[2].startswith("changed: ")
    assert "True became False" in said[2]
    assert ec.load(folder / "my-copy-2").refreshed["verdict"] == "changed"
    apart = ec.load(folder / "with-traffic").refreshed["on_answers"]
    assert apart["before"]["estimate"] < apart["after"]["estimate"]
    assert json.loads((folder / "refresh.json").read_text())["verdict"] == "unchanged"


@reads("howto/answers.md")
def _(folder):
    said = Reader(folder).follow("howto/answers.md")
    assert any("answers were given and cost nothing" in one for one in said)
    assert ec.load(folder / "third").given["left_out"]["values"] > 1
    assert ec.load(folder / "better").remade["answers"]["used"] > 0


@reads("howto/many.md")
def many(folder):
    said = Reader(folder).follow("howto/many.md")
    assert "1 of 3 need attention" in said[0]
    assert "exit code 3" in said[0]
    assert "exit code 3" in said[2]
    assert (folder / "fleet/north/copy-1/report.html").is_file()
    states = [line.split()[:2] for line in said[-1].splitlines()]
    assert states == [["west", "failed"], ["north", "done"], ["south", "done"]]
