"""A copy as a model of MLflow: a folder with the ONNX file, a page of Python that asks it, and no pickle.

MLflow's own ONNX flavor would need no page of ours, but hands over columns in a shape and type of its own (in pandas 3
no array at all for words), and cannot return a probability for every class.
"""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ectype.export import _mlflow_loader as mlflow_loader
from ectype.export._onnx import input_types, onnx_model
from ectype.models.copy_classifier import CopyClassifier
from ectype.space import wire_type_of_labels
from ectype.types import Table

MODEL, LOADER = "model.onnx", "ectype_copy"
# What MLflow calls the types of columns.
TYPES = {"DOUBLE": "double", "INT64": "long", "UINT64": "long", "BOOL": "boolean", "STRING": "string"}
OLDEST = "2.9"


def write_mlflow(copy: CopyClassifier, folder: Path) -> None:
    """Fill a folder."""
    (folder / "code").mkdir()
    (folder / MODEL).write_bytes(onnx_model(copy).SerializeToString())
    source = Path(mlflow_loader.__file__).read_text(encoding="utf-8")
    (folder / "code" / f"{LOADER}.py").write_text(source, encoding="utf-8")
    needs = [f"mlflow>={OLDEST}", *(f"{name}>={version(name)}" for name in ("numpy", "onnxruntime", "pandas"))]
    (folder / "requirements.txt").write_text("\n".join(needs) + "\n")
    (folder / "python_env.yaml").write_text(
        f"python: {platform.python_version()}\nbuild_dependencies:\n- pip\ndependencies:\n- -r requirements.txt\n"
    )
    (folder / "MLmodel").write_text(_description(copy), encoding="utf-8")


def mlflow_answers(folder: Path, rows: Table) -> np.ndarray:
    """The answers of a model's folder, by the page of Python in it."""
    page, names = folder / "code" / f"{LOADER}.py", dict[str, Any]()
    exec(compile(page.read_bytes(), str(page), "exec"), names)  # imported, it would leave bytecode in the folder
    return names["_load_pyfunc"](str(folder / MODEL)).predict(rows)["label"].to_numpy(dtype=object)


def _description(copy: CopyClassifier) -> str:
    """The file MLmodel: YAML, of which JSON is a part."""
    flavor = {
        "loader_module": LOADER,
        "code": "code",
        "data": MODEL,
        "env": {"virtualenv": "python_env.yaml"},
        "python_version": platform.python_version(),
    }
    about = {
        "flavors": {"python_function": flavor},
        "mlflow_version": OLDEST + ".0",
        "model_uuid": uuid4().hex,
        "signature": {"inputs": json.dumps(_inputs(copy)), "outputs": json.dumps(_outputs(copy)), "params": None},
        "utc_time_created": f"{datetime.now(UTC).replace(tzinfo=None)}",
    }
    return json.dumps(about, indent=2) + "\n"


def _inputs(copy: CopyClassifier) -> list[dict[str, object]]:
    if not copy.space.frame:
        return [{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, copy.space.d]}}]
    return [{"type": TYPES[kind], "name": name, "required": True} for name, kind in input_types(copy.space).items()]


def _outputs(copy: CopyClassifier) -> list[dict[str, object]]:
    said = [f"probability_{label}" for label in copy.classes.tolist()]
    label: list[dict[str, object]] = [
        {"type": TYPES[wire_type_of_labels(copy.classes).onnx], "name": "label", "required": True}
    ]
    return [*label, *({"type": "double", "name": name, "required": True} for name in said)]
