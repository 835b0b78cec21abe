"""The Open Inference Protocol V2 over HTTP: what a request asks, and the answer, in JSON or with tensors as bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ectype.cascades import ANSWERED_BY, BY_COPY
from ectype.serve._binary_tensors import Tail, pack_values
from ectype.serve._http_types import JSON_HEADERS, HttpResponse, Refusal, quote_value
from ectype.serve._tensors import Tensor, read_tensor
from ectype.space import wire_type_of_labels
from ectype.types import Json

# The outputs that may be asked for; the last says who answered each row, which is the copy but in a cascade.
LABELS, SCORES, WHO = "predict", "predict_proba", "answered_by"
OUTPUTS = (LABELS, SCORES, WHO)
# The header that says how much of a body is JSON; behind it are bytes of tensors.
SIZE_HEADER = "inference-header-content-length"


class RequestedOutput(NamedTuple):
    """An output that is asked for, as JSON or as bytes behind it."""

    name: str = LABELS
    binary: bool = False


class InferRequest(NamedTuple):
    """A request that was read: its id, its tensors, and the outputs that are wanted."""

    id: str | None
    tensors: list[Tensor]
    wanted: tuple[RequestedOutput, ...] = (RequestedOutput(),)


def read_request(body: bytes, json_size: int | None = None) -> InferRequest:
    """Parse a body; with `json_size`, so many bytes are JSON, and binary tensors follow."""
    if json_size is None:
        return parse_request(load_json(body), None)
    if json_size > len(body):
        raise Refusal("Inference-Header-Content-Length", f"at most the body's {len(body)} bytes", json_size)
    tail = Tail(memoryview(body)[json_size:])
    found = parse_request(load_json(body[:json_size]), tail)
    tail.end()
    return found


def load_json(body: bytes) -> object:
    """A body's JSON, in whose objects every name is there once: of two values, two readers take different ones."""
    try:
        # In UTF-16 and UTF-32, one of the first two bytes of JSON is 0, or a mark.
        plain = min(body[:2], default=0) > 0 and max(body[:2]) < 128
        return _decode(body.decode("utf-8" if plain else json.detect_encoding(body), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise Refusal("body", "JSON", f"{type(error).__name__}: {str(error)[:100]}") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise Refusal("body", "every name once in an object", f"{quote_value(twice)} more than once")
    return found


_decode = json.JSONDecoder(object_pairs_hook=_object).decode


def parse_request(content: object, tail: Tail | None) -> InferRequest:
    """Parse a request in JSON, whose tensors may be in a binary tail."""
    if not isinstance(content, dict):
        raise Refusal("body", "an object", quote_value(content))
    identity, inputs = content.get("id"), content.get("inputs")
    if identity is not None and not isinstance(identity, str):
        raise Refusal("id", "a string", quote_value(identity))
    wanted = _wanted(content.get("outputs"), _flag(content.get("parameters"), "binary_data_output", False, "request"))
    if not isinstance(inputs, list) or not inputs:
        raise Refusal("inputs", "a list of tensors", quote_value(inputs))
    return InferRequest(
        identity, [read_tensor(tensor, f"inputs[{k}]", tail) for k, tensor in enumerate(inputs)], wanted
    )


def _wanted(outputs: object, binary: bool) -> tuple[RequestedOutput, ...]:
    if outputs is None or outputs == []:
        return (RequestedOutput(LABELS, binary),)
    if not isinstance(outputs, list):
        raise Refusal("outputs", "a list", quote_value(outputs))
    found: dict[str, RequestedOutput] = {}  # each once, in their order
    for output in outputs:
        name, parameters = (
            (output.get("name"), output.get("parameters")) if isinstance(output, dict) else (output, None)
        )
        if not isinstance(name, str) or name not in OUTPUTS:
            raise Refusal("outputs", f"the names {LABELS}, {SCORES} or {WHO}", quote_value(name))
        found[name] = RequestedOutput(name, _flag(parameters, "binary_data", binary, f"output {name}"))
        if isinstance(parameters, dict) and parameters.get("classification"):
            raise Refusal(f"output {name}: parameters", "no classification", "one", f"ask for {LABELS} instead")
    return tuple(found.values())


def _flag(parameters: object, name: str, default: bool, where: str) -> bool:
    """A parameter that is true or false."""
    if parameters is None:
        return default
    if not isinstance(parameters, dict):
        raise Refusal(f"{where}: parameters", "an object", quote_value(parameters))
    found = parameters.get(name, default)
    if not isinstance(found, bool):
        raise Refusal(f"{where}: {name}", "true or false", quote_value(found))
    return found


class InferResponseWriter:
    """Writes the answers of one model; what is the same in all of them is made once."""

    def __init__(self, name: str, version: str, classes: np.ndarray):
        self._kind, self._classes = wire_type_of_labels(classes).v2, classes
        self._marks: Json = {"parameters": {"content_type": "str"}} if self._kind == "BYTES" else {}
        self.words = [_compact(label) for label in classes.tolist()]
        self._start = _compact({"model_name": name, "model_version": version})[:-1]
        self._labels = _compact({"name": LABELS, "datatype": self._kind, **self._marks})[:-1]

    def __call__(
        self, asked: InferRequest, codes: np.ndarray, probabilities: np.ndarray, by: np.ndarray | None = None
    ) -> HttpResponse:
        """The answer to a request; `by` has the codes of who answered, in a cascade."""
        if any(wanted.binary or wanted.name == WHO for wanted in asked.wanted):
            return self._with_bytes(asked, codes, probabilities, by)
        parts = [
            self._labels_of(codes) if wanted.name == LABELS else _compact(_scores(probabilities))
            for wanted in asked.wanted
        ]
        return HttpResponse(200, f"{self._opening(asked.id, by)}{','.join(parts)}]}}".encode(), JSON_HEADERS)

    def _opening(self, identity: str | None, by: np.ndarray | None) -> str:
        echoed = "" if identity is None else f',"id":{json.dumps(identity)}'
        routed = "" if by is None else f',"parameters":{_compact(count_answered_by(by))}'
        return f'{self._start}{echoed}{routed},"outputs":['

    def _labels_of(self, codes: np.ndarray) -> str:
        data = ",".join([self.words[code] for code in codes.tolist()])
        return f'{self._labels},"shape":[{len(codes)}],"data":[{data}]}}'

    def _with_bytes(
        self, asked: InferRequest, codes: np.ndarray, probabilities: np.ndarray, by: np.ndarray | None
    ) -> HttpResponse:
        """The answer with tensors as bytes behind it, where that is wanted."""
        outputs: dict[str, Callable[[], tuple[Json, np.ndarray]]] = {
            LABELS: lambda: (self._described(codes), self._classes[codes]),
            SCORES: lambda: (_described(probabilities), probabilities.astype(np.float64)),
            WHO: lambda: (_described_who(len(codes)), answered_by(by, len(codes))),
        }
        parts, tails = [], []
        for wanted in asked.wanted:
            about, values = outputs[wanted.name]()
            if wanted.binary:
                tails.append(pack_values(values, about["datatype"]))
                about["parameters"] = {**about.get("parameters", {}), "binary_data_size": len(tails[-1])}
            else:
                about["data"] = values.ravel().tolist()
            parts.append(_compact(about))
        start = f"{self._opening(asked.id, by)}{','.join(parts)}]}}".encode()
        if not tails:
            return HttpResponse(200, start, JSON_HEADERS)
        headers = {"content-type": "application/octet-stream", SIZE_HEADER: str(len(start))}
        return HttpResponse(200, b"".join([start, *tails]), headers)

    def _described(self, codes: np.ndarray) -> Json:
        return {"name": LABELS, "datatype": self._kind, **self._marks, "shape": [len(codes)]}


def answered_by(by: np.ndarray | None, n: int) -> np.ndarray:
    """The words for who answered each of n rows."""
    return ANSWERED_BY[np.full(n, BY_COPY) if by is None else by]


def count_answered_by(by: np.ndarray) -> Json:
    """The number of rows by who answered them.

    >>> count_answered_by(np.array([0, 1, 0]))
    {'copy': 2, 'original': 1, 'outage': 0}
    """
    return dict(zip(ANSWERED_BY.tolist(), np.bincount(by, minlength=len(ANSWERED_BY)).tolist(), strict=True))


def _described_who(n: int) -> Json:
    return {"name": WHO, "datatype": "BYTES", "shape": [n], "parameters": {"content_type": "str"}}


def _described(probabilities: np.ndarray) -> Json:
    return {"name": SCORES, "datatype": "FP64", "shape": list(probabilities.shape)}


def _scores(probabilities: np.ndarray) -> Json:
    return {**_described(probabilities), "data": probabilities.astype(np.float64).ravel().tolist()}


def _compact(content: object) -> str:
    return json.dumps(content, separators=(",", ":"))
