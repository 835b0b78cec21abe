"""Protocols that send rows as plain JSON: TensorFlow Serving and Vertex AI, MLflow, and Seldon Core's first."""

from __future__ import annotations

import numpy as np

from understudy.original.protocols.answers import at, unflattened
from understudy.original.protocols.base import Wire
from understudy.original.protocols.rows import lists, objects
from understudy.types import Json, Table


class Instances(Wire):
    """TensorFlow Serving and Vertex AI.

    >>> Instances().question(np.array([[0.5, 1.0]]), "")
    {'instances': [[0.5, 1.0]]}
    """

    def question(self, rows: Table, ticket: str) -> Json:
        """Rows as lists, or as objects where columns have names."""
        return {"instances": lists(rows) if isinstance(rows, np.ndarray) else objects(rows)}

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The predictions."""
        return at(answer, "predictions")


class MLflow(Wire):
    """The scoring server of MLflow, and Databricks. Under a signature, it takes a gap in a boolean column for false.

    >>> MLflow().endpoint("/serving-endpoints/iris")
    '/serving-endpoints/iris/invocations'
    """

    def endpoint(self, path: str) -> str:
        """The path with /invocations at its end."""
        return path if path.endswith("/invocations") else path.rstrip("/") + "/invocations"

    def question(self, rows: Table, ticket: str) -> Json:
        """A data frame split into columns and data, or plain inputs."""
        if isinstance(rows, np.ndarray):
            return {"inputs": lists(rows)}
        return {"dataframe_split": {"columns": [str(name) for name in rows.columns], "data": lists(rows)}}

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The predictions."""
        return at(answer, "predictions")


class Seldon(Wire):
    """Seldon Core's first protocol."""

    def question(self, rows: Table, ticket: str) -> Json:
        """Rows as an ndarray, beside the names of their columns where they have some."""
        names = {} if isinstance(rows, np.ndarray) else {"names": [str(name) for name in rows.columns]}
        return {"data": {**names, "ndarray": lists(rows)}}

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The ndarray or the tensor."""
        data = at(answer, "data")
        if isinstance(data, dict) and "tensor" in data:
            return unflattened(at(data, "tensor.values"), at(data, "tensor.shape"), n)
        return at(data, "ndarray")
