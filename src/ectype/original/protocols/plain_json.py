"""Protocols of plain JSON: TensorFlow Serving and Vertex AI, MLflow, Azure ML, and Seldon Core's first."""

from __future__ import annotations

import numpy as np

from ectype.original.protocols.base import HttpProtocol
from ectype.original.protocols.json_outputs import at, unflatten
from ectype.original.protocols.json_rows import lists, names, objects
from ectype.types import Json, Table


class Instances(HttpProtocol):
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


class MLflow(HttpProtocol):
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
        return {"dataframe_split": {"columns": names(rows), "data": lists(rows)}}

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The predictions."""
        return at(answer, "predictions")


class AzureML(HttpProtocol):
    """Azure ML's online endpoints of MLflow models, which answer with the predictions alone.

    >>> AzureML().question(np.array([[0.5, 1.0]]), "")
    {'input_data': [[0.5, 1.0]]}
    """

    def question(self, rows: Table, ticket: str) -> Json:
        """A data frame split into columns, index and data, or plain inputs."""
        if isinstance(rows, np.ndarray):
            return {"input_data": lists(rows)}
        split = {"columns": names(rows), "index": list(range(len(rows))), "data": lists(rows)}
        return {"input_data": split}

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The predictions."""
        return answer


class Seldon(HttpProtocol):
    """Seldon Core's first protocol."""

    def question(self, rows: Table, ticket: str) -> Json:
        """Rows as an ndarray, beside the names of their columns where they have some."""
        named = {} if isinstance(rows, np.ndarray) else {"names": names(rows)}
        return {"data": {**named, "ndarray": lists(rows)}}

    def outputs(self, answer: object, n: int, ticket: str) -> object:
        """The ndarray or the tensor."""
        data = at(answer, "data")
        if isinstance(data, dict) and "tensor" in data:
            return unflatten(at(data, "tensor.values"), at(data, "tensor.shape"), n)
        return at(data, "ndarray")
