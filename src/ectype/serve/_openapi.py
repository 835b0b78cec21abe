"""The description of the service by OpenAPI 3.1: every path of one model, what it takes, and all that it may answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

from ectype._version import __version__
from ectype.cascades import ANSWERED_BY
from ectype.serve._row_envelopes import LISTS, SPLIT
from ectype.serve._v2 import WHO
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.serve._inference import InferenceModel

REASONS = {
    400: "The request cannot be read, or its rows are none of the model's.",
    401: "The token is missing or wrong.",
    408: "The request took too long.",
    411: "The body has no length.",
    413: "Too many bytes or rows.",
    415: "A type or compression of the body that is not read.",
    431: "The headers are too long.",
    500: "A fault of the server's.",
    503: "Too many clients at once, or an original that is out.",
}
OF_ALL, OF_BODIES = (400, 408, 431, 500, 503), (411, 413, 415)
SUMMARIES = {"shadow": "The parallel run.", "cascade": "What the copy answers alone, and who answered so far."}
TEXT: Json = {"type": "string"}
FLAG: Json = {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 0}
CELL: Json = {"type": ["string", "number", "boolean", "null"]}
SIZE: Json = {
    "name": "Inference-Header-Content-Length",
    "in": "header",
    "description": "How many bytes of the body are JSON; those of binary tensors follow.",
    "schema": COUNT,
}
SCORES_TOO: Json = {"name": "scores", "in": "query", "schema": {"type": "string", "enum": ["true", "false"]}}


def description(model: InferenceModel, summaries: Iterable[str], guarded: bool) -> Json:
    """The whole description, of one model under its name and version, with summaries of what else there is."""
    paths = {**_server(summaries), **_of_v2(model), **_of_v1(model)}
    found: Json = {
        "openapi": "3.1.0",
        "info": {"title": f"ectype: {model.name}", "version": __version__},
        "paths": {path: _operation(*about, guarded) for path, about in paths.items()},
        "components": {"schemas": _schemas(model)},
    }
    if guarded:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


Path = tuple[str, str, Json]


def _server(summaries: Iterable[str]) -> dict[str, Path]:
    rows = {"application/json": _ref("Rows"), "text/csv": TEXT}
    answers = {"application/json": _ref("Predictions"), "text/csv": TEXT}
    paths: dict[str, Path] = {
        "/": ("get", "Whether the server is up, by V1.", _probe(_object(status=TEXT))),
        "/v2": ("get", "The server's name and version.", _answers(_ref("Server"))),
        "/v2/health/live": ("get", "Whether the server is up.", _probe(_object(live=FLAG))),
        "/v2/health/ready": ("get", "Whether the server answers.", _probe(_ref("Ready"))),
        "/predict": ("post", "Labels for plain rows.", _asks(rows, answers, [SCORES_TOO])),
        "/v1/models": ("get", "The model's name.", _answers(_object(models={"type": "array", "items": TEXT}))),
        "/metrics": ("get", "Metrics for Prometheus.", _answers(TEXT, "text/plain", "application/openmetrics-text")),
        "/openapi.json": ("get", "This description.", _answers({"type": "object"})),
    }
    return {**paths, **{f"/{name}": ("get", SUMMARIES[name], _answers({"type": "object"})) for name in summaries}}


def _of_v2(model: InferenceModel) -> dict[str, Path]:
    bodies = {"application/json": _ref("InferRequest")}
    answers = {"application/json": _ref("InferResponse"), "application/octet-stream": {}}
    paths: dict[str, Path] = {}
    for start in _starts(model, "v2"):
        paths[start] = ("get", "The model's inputs and outputs.", _answers(_ref("Model")))
        paths[f"{start}/ready"] = ("get", "Whether the model answers.", _probe(_ref("Ready")))
        paths[f"{start}/infer"] = ("post", "Predictions, by V2.", _asks(bodies, answers, [SIZE]))
    return paths


def _of_v1(model: InferenceModel) -> dict[str, Path]:
    bodies, answers = {"application/json": _ref("Instances")}, {"application/json": _ref("Predictions")}
    paths: dict[str, Path] = {}
    for start in _starts(model, "v1"):
        paths[start] = ("get", "Whether the model answers.", _probe(_ref("Ready")))
        paths[f"{start}:predict"] = ("post", "Labels for instances, by V1.", _asks(bodies, answers, []))
    return paths


def _starts(model: InferenceModel, protocol: str) -> list[str]:
    start = f"/{protocol}/models/{quote(model.name, safe='')}"
    return [start, f"{start}/versions/{quote(model.version, safe='')}"]


def _operation(method: str, about: str, said: Json, guarded: bool) -> Json:
    said = dict(said)
    probe = said.pop("probe", False)
    statuses = [*OF_ALL, *(OF_BODIES if method == "post" else ()), *((401,) if guarded and not probe else ())]
    responses = {"200": said.pop("ok")}
    for status in sorted(statuses):
        content = {"application/json": {"schema": _ref("Error")}}
        if probe and status == 503:
            content = {"application/json": {"schema": {"anyOf": [_ref("Error"), _ref("Ready")]}}}
        responses[str(status)] = {"description": REASONS[status], "content": content}
    open_to_all: Json = {"security": []} if guarded and probe else {}
    return {method: {"summary": about, **said, "responses": responses, **open_to_all}}


def _answers(schema: Json, *kinds: str) -> Json:
    content = {kind: {"schema": schema} for kind in kinds or ("application/json",)}
    return {"ok": {"description": "The answer.", "content": content}}


def _probe(schema: Json) -> Json:
    return {**_answers(schema), "probe": True}


def _asks(bodies: dict[str, Json], answers: dict[str, Json], parameters: list[Json]) -> Json:
    content = {kind: {"schema": schema} for kind, schema in bodies.items()}
    answered = {kind: {"schema": schema} for kind, schema in answers.items()}
    return {
        "parameters": parameters,
        "requestBody": {"required": True, "content": content},
        "ok": {"description": "The answer.", "content": answered},
    }


def _schemas(model: InferenceModel) -> Json:
    """The messages of V2, which are the same for all models, and the plain rows of this one."""
    names, d = model.copy.space.names, model.copy.space.d
    label = {"enum": model.copy.classes.tolist()}
    listed = {"type": "array", "items": CELL, "minItems": d, "maxItems": d}
    rows = {"type": "array", "minItems": 1, "maxItems": model.most_rows}
    lists = [_object(**{name: _ref("List")}) for name in LISTS]
    others = [_object(inputs=_ref("Columns")), _object(**{SPLIT: _ref("Split")}), _ref("Split")]
    answers = {
        "predictions": _list(label),
        "classes": _list(label),
        "scores": _list(_list({"type": "number"})),
        WHO: _list({"type": "string", "enum": ANSWERED_BY.tolist()}),
    }
    return {
        **json.loads(files("ectype.serve").joinpath("openapi.json").read_text("utf-8")),
        "Row": _object(**dict.fromkeys(names, CELL)),
        "List": {"anyOf": [{**rows, "items": listed}, {**rows, "items": _ref("Row")}]},
        "Columns": _object(**{name: {**rows, "items": CELL} for name in names}),
        "Split": _object(columns=_list(TEXT), data={**rows, "items": _list(CELL)}),
        "Rows": {"anyOf": [_ref("List"), _ref("Row"), _ref("Columns"), *lists, *others]},
        "Instances": _object(instances=_ref("List")),
        "Predictions": {"type": "object", "required": ["predictions"], "properties": answers},
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(**properties: Json) -> Json:
    return {"type": "object", "required": list(properties), "properties": properties}
