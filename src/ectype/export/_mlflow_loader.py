"""Answers with the copy in model.onnx. MLflow imports this file from the model's folder; it needs onnxruntime only."""

import json

import numpy as np
import onnxruntime
import pandas as pd

TYPES = {"tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(bool)": np.bool_, "tensor(string)": object}


class Copy:
    """A copy, as MLflow asks it: rows in, a label and the probability of every class out."""

    def __init__(self, path: str):
        self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self._inputs = {value.name: TYPES[value.type] for value in self._session.get_inputs()}
        about = self._session.get_modelmeta().custom_metadata_map
        self._classes, self._is_frame, self._gaps = (json.loads(about[name]) for name in ("classes", "frame", "gaps"))

    def predict(self, data: object, params: object = None) -> pd.DataFrame:
        """A data frame of labels and probabilities, from one of columns, or an array."""
        feeds = self._columns(data) if isinstance(data, pd.DataFrame) and self._is_frame else self._matrix(data)
        label, probabilities = self._session.run(None, feeds)
        said = {f"probability_{name}": probabilities[:, k].astype(float) for k, name in enumerate(self._classes)}
        return pd.DataFrame({"label": label, **said})

    def _columns(self, frame: pd.DataFrame) -> dict[str, np.ndarray]:
        """Every column by its name; words as they are, since the graph knows what NaN and None become."""
        for name in self._inputs:
            if name not in self._gaps and frame[name].isna().any():
                raise ValueError(f"column {name}: a value in every row is needed, and some have none")
        return {
            name: frame[name].to_numpy(dtype=object).astype(kind).reshape(-1, 1) for name, kind in self._inputs.items()
        }

    def _matrix(self, data: object) -> dict[str, np.ndarray]:
        if self._is_frame:
            raise TypeError(f"a data frame with the columns {list(self._inputs)} is needed, not {type(data).__name__}")
        rows = np.asarray(data, np.float64)
        if not self._gaps and not np.isfinite(rows).all():
            raise ValueError("finite numbers are needed")
        return dict.fromkeys(self._inputs, rows)


def _load_pyfunc(path: str) -> Copy:
    """What MLflow calls, with the path of model.onnx."""
    return Copy(path)
