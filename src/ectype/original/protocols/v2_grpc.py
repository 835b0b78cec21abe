"""The Open Inference Protocol V2 over gRPC: the same questions and answers as its JSON, in other messages."""

from __future__ import annotations

import math
import re
import struct
from typing import Any

import numpy as np

from ectype.errors import OriginalError, SettingError
from ectype.original.protocols.json_outputs import WRONG_COUNT, MalformedAnswer, Output, check_outputs
from ectype.original.protocols.v2 import V2
from ectype.original.protocols.v2_messages import CONTENTS, message
from ectype.types import Json, Table

# Raw contents are little-endian, as the protocol says.
_RAW = {
    "BOOL": "?",
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}


class GrpcV2(V2):
    """V2 over gRPC, of the model that a path names.

    >>> GrpcV2("/iris/versions/2").model
    ('iris', '2')
    """

    def __init__(self, path: str, output: str | None = None, given: str | None = None):
        super().__init__(output, given)
        match = re.fullmatch(r"(?:/v2/models)?/([^/]+)(?:/versions/([^/]+))?/?", path)
        if match is None:
            raise SettingError("original", "grpc://HOST:PORT/MODEL[/versions/V]", f"the path {path!r}")
        self.model = match[1], match[2] or ""

    def endpoint(self, path: str) -> str:
        """The path as it is: no server sees it."""
        return path

    def encode(self, rows: Table, ticket: str) -> bytes:
        """The request as one message."""
        question: Json = self.question(rows, ticket)
        name, version = self.model
        asked = message("ModelInferRequest")(
            model_name=name,
            model_version=version,
            id=ticket,
            parameters=_parameters(question),
            inputs=[_tensor(tensor) for tensor in question["inputs"]],
            outputs=question.get("outputs", []),
        )
        encoded: bytes = asked.SerializeToString()
        return encoded

    def decode(self, body: bytes, n: int, ticket: str) -> list[Output]:
        """The outputs in an answer."""
        from google.protobuf.message import DecodeError

        try:
            answer = message("ModelInferResponse").FromString(body)
        except DecodeError as error:
            raise MalformedAnswer("not a message", str(error)) from None
        raw = list(answer.raw_output_contents)
        if raw and len(raw) != len(answer.outputs):
            raise MalformedAnswer(WRONG_COUNT, f"{len(raw)} raw contents of {len(answer.outputs)} outputs")
        outputs = [_output(tensor, raw[at] if raw else None) for at, tensor in enumerate(answer.outputs)]
        return check_outputs(self.outputs({"id": answer.id, "outputs": outputs}, n, ticket), n, self.scored)


def _tensor(tensor: Json) -> Json:
    """An input as a message takes it."""
    kind, where = tensor["datatype"], f"column {tensor['name']}"
    data = [_value(where, kind, value) for value in tensor["data"]]
    described = {"name": tensor["name"], "datatype": kind, "shape": tensor["shape"]}
    return {**described, "parameters": _parameters(tensor), "contents": {CONTENTS[kind]: data}}


def _value(where: str, kind: str, value: object) -> object:
    if value is None and not kind.startswith("FP"):
        hint = "gRPC has no way to say it: describe the column without gaps"
        raise OriginalError(where, f"a value in every row of {kind}", "a missing value", hint)
    if isinstance(value, str):
        return value.encode()
    return math.nan if value is None else value


def _parameters(told: Json) -> Json:
    return {name: {"string_param": value} for name, value in told.get("parameters", {}).items()}


def _output(tensor: Any, raw: bytes | None) -> Json:
    """An output as the JSON of the protocol has it."""
    kind = str(tensor.datatype)
    try:
        if raw is not None:
            data = _words(raw) if kind == "BYTES" else np.frombuffer(raw, _RAW[kind]).tolist()
        else:
            data = list(getattr(tensor.contents, CONTENTS[kind]))
        data = [value.decode() if isinstance(value, bytes) else value for value in data]
    except (KeyError, ValueError, struct.error) as error:  # ValueError: also what is no UTF-8
        raise MalformedAnswer("not an answer", f"the output {tensor.name} of {kind}: {error}", again=False) from None
    return {"name": tensor.name, "shape": list(tensor.shape), "data": data}


def _words(raw: bytes) -> list[bytes]:
    """Words, each behind its length."""
    found, at = [], 0
    while at < len(raw):
        (size,) = struct.unpack_from("<I", raw, at)
        if at + 4 + size > len(raw):
            raise ValueError("a word that is cut short")
        found.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return found
