"""Serve exported copies with MLflow, as installed from PyPI: `ectype export DIR FOLDER --format mlflow`.

MLflow gets a virtual environment of its own, without ectype. A copy on a data frame with gaps, and one on an array,
are exported; `mlflow models serve` answers over HTTP, and `mlflow.pyfunc.load_model` in a process. Every answer is
compared with the copy's. docs/background/compatibility.md has the outcome.

    python compat/mlflow_export.py [--folder DIR] [--with REQUIREMENT] [--rows N]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import servers

MIXED = {
    "columns": [
        {"name": "age", "kind": "integer", "low": 18, "high": 90},
        {"name": "income", "kind": "float", "quantiles": [9000, 21000, 30000, 43000, 160000], "missing": 0.1},
        {"name": "visits", "kind": "integer", "values": [0, 1, 2, 3, 5], "missing": 0.1},
        {"name": "owner", "kind": "boolean"},
        {"name": "region", "kind": "category", "levels": ["north", "south", "east", "west"], "missing": 0.1},
        {"name": "grade", "kind": "ordered", "levels": ["D", "C", "B", "A"]},
    ]
}
INSIDE = """
import json, sys
import mlflow.pyfunc, numpy as np, pandas as pd
model, rows = mlflow.pyfunc.load_model(sys.argv[1]), json.load(open(sys.argv[2]))
data = pd.DataFrame(**rows["dataframe_split"]) if "dataframe_split" in rows else np.array(rows["inputs"])
print(json.dumps(model.predict(data)["label"].tolist()))
"""


def original(rows: Any) -> Any:
    """Labels that hang on gaps, so that a server which reads them otherwise is found out."""
    import numpy as np

    score = rows["income"].fillna(60000) / 20000 + 0.02 * (rows["age"] - 40) - 0.4 * rows["visits"].fillna(4)
    score += rows["region"].map({"north": 0.5, "south": 0.0, "east": 0.2, "west": -1.0}).astype(float).fillna(1.5)
    score += rows["grade"].astype(str).map({"D": -1.0, "C": 0.0, "B": 0.5, "A": 1.0}) + 0.5 * rows["owner"]
    return np.where(score > 2.5, "grant", np.where(score > 1.5, "ask", "refuse"))


def copies() -> dict[str, Any]:
    """A copy on a data frame, and one on an array."""
    import ectype as ec

    frame = ec.copy_classifier(
        original, ec.Space.from_json(json.dumps(MIXED)), budget=600, certificate_n=0, to="boosting"
    )
    array = ec.copy_classifier(
        lambda rows: rows[:, 0] * rows[:, 1] > 0, ec.Space.normal(2), budget=300, certificate_n=0
    )
    return {"frame": frame.copy, "array": array.copy}


def asked(rows: Any) -> dict[str, Any]:
    """Rows in the JSON that MLflow's server takes."""
    return (
        {"dataframe_split": json.loads(rows.to_json(orient="split"))}
        if hasattr(rows, "iloc")
        else {"inputs": rows.tolist()}
    )


def posted(url: str, body: dict[str, Any]) -> list[Any]:
    """The labels that a server answers."""
    request = urllib.request.Request(
        f"{url}/invocations", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=servers.RUNNING) as answer:
        return [row["label"] for row in json.load(answer)["predictions"]]


def check(name: str, copy: Any, python: Path, folder: Path, n: int) -> tuple[int, int]:
    """On how many rows the server, and a model that is loaded, answer otherwise than the copy."""
    import numpy as np

    import ectype as ec

    room = folder / name
    room.mkdir(parents=True)
    ec.export(copy, room / "served", "mlflow")
    rows = copy.space.present(copy.space.sample(n, np.random.default_rng(1)))
    expected, body = copy.predict(rows).tolist(), asked(rows)
    (room / "rows.json").write_text(json.dumps(body))
    with servers.serving("mlflow", python, room) as url:
        over_http = posted(url.removesuffix("/"), body)
    (room / "inside.py").write_text(INSIDE)
    loaded = json.loads(
        servers.run([str(python), str(room / "inside.py"), str(room / "served"), str(room / "rows.json")])
    )
    return tuple(sum(a != b for a, b in zip(found, expected, strict=True)) for found in (over_http, loaded))  # type: ignore[return-value]


def main() -> int:
    """Print the versions, and a row for each model; exit code 0 if all answers are the copy's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--with", dest="more", action="append", default=[])
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        python = servers.environment("mlflow", folder, ["onnxruntime", *options.more])
        versions = "import json, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in %r}))"
        names = ("mlflow", "onnxruntime", "pandas", "numpy")
        print(json.dumps(json.loads(servers.run([str(python), "-c", versions % (names,)]))))
        with tempfile.TemporaryDirectory(dir=folder) as rooms:
            print(f"{'model':<6} {'rows':>5} {'served differ':>14} {'loaded differ':>14}")
            for name, copy in copies().items():
                served, loaded = check(name, copy, python, Path(rooms), options.rows)
                print(f"{name:<6} {options.rows:>5} {served:>14} {loaded:>14}")
                wrong += served + loaded
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
