"""The messages of the Open Inference Protocol V2 over gRPC, from public facts: for originals, and for our own server.

They are described here and made into classes when first needed, in a pool of their own: a process may hold another
library's classes of the same names.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"
# Each message with its fields: type, name and number. `*` is repeated, `{}` a map from strings, `?` one of several.
MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live 1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready 1",
    "ModelReadyRequest": "string name 1, string version 2",
    "ModelReadyResponse": "bool ready 1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "string name 1, string version 2, string* extensions 3",
    "ModelMetadataRequest": "string name 1, string version 2",
    "ModelMetadataResponse.TensorMetadata": "string name 1, string datatype 2, int64* shape 3",
    "ModelMetadataResponse": (
        "string name 1, string* versions 2, string platform 3, "
        "ModelMetadataResponse.TensorMetadata* inputs 4, ModelMetadataResponse.TensorMetadata* outputs 5"
    ),
    "InferParameter": (
        "bool? bool_param 1, int64? int64_param 2, string? string_param 3, double? double_param 4, "
        "uint64? uint64_param 5"
    ),
    "InferTensorContents": (
        "bool* bool_contents 1, int32* int_contents 2, int64* int64_contents 3, uint32* uint_contents 4, "
        "uint64* uint64_contents 5, float* fp32_contents 6, double* fp64_contents 7, bytes* bytes_contents 8"
    ),
    "ModelInferRequest.InferInputTensor": (
        "string name 1, string datatype 2, int64* shape 3, InferParameter{} parameters 4, "
        "InferTensorContents contents 5"
    ),
    "ModelInferRequest.InferRequestedOutputTensor": "string name 1, InferParameter{} parameters 2",
    "ModelInferRequest": (
        "string model_name 1, string model_version 2, string id 3, InferParameter{} parameters 4, "
        "ModelInferRequest.InferInputTensor* inputs 5, ModelInferRequest.InferRequestedOutputTensor* outputs 6, "
        "bytes* raw_input_contents 7"
    ),
    "ModelInferResponse.InferOutputTensor": (
        "string name 1, string datatype 2, int64* shape 3, InferParameter{} parameters 4, "
        "InferTensorContents contents 5"
    ),
    "ModelInferResponse": (
        "string model_name 1, string model_version 2, string id 3, InferParameter{} parameters 4, "
        "ModelInferResponse.InferOutputTensor* outputs 5, bytes* raw_output_contents 6"
    ),
}
FIELD = re.compile(r"([\w.]+?)(\*|\{\}|\?)? (\w+) (\d+)")
# Where the values of a datatype stand; FP16 has no place but among the raw contents.
CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


@cache
def message(name: str) -> Any:
    """The class of a message.

    >>> message("ServerLiveResponse")(live=True).SerializeToString()
    b'\\x08\\x01'
    """
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    file = FileDescriptorProto(name="ectype_v2.proto", package=PACKAGE, syntax="proto3")
    made = {name: file.message_type.add(name=name) for name in MESSAGES if "." not in name}
    for name in MESSAGES:
        if "." in name:
            outer, _, inner = name.partition(".")
            made[name] = made[outer].nested_type.add(name=inner)
    for name, fields in MESSAGES.items():
        for kind, mark, field, number in FIELD.findall(fields):
            _add(made[name], f".{PACKAGE}.{name}", kind, mark, field, int(number))
    pool = DescriptorPool()
    pool.Add(file)
    return pool


def _add(made: Any, path: str, kind: str, mark: str, field: str, number: int) -> None:
    """Add a field to the description of a message."""
    added = made.field.add(name=field, number=number, label=3 if mark in ("*", "{}") else 1)
    if mark == "{}":
        entry = made.nested_type.add(name="".join(part.title() for part in field.split("_")) + "Entry")
        entry.options.map_entry = True
        _add(entry, "", "string", "", "key", 1)
        _add(entry, "", kind, "", "value", 2)
        added.type, added.type_name = 11, f"{path}.{entry.name}"
    elif kind[0].islower():
        added.type = added.Type.Value(f"TYPE_{kind.upper()}")
    else:
        added.type, added.type_name = 11, f".{PACKAGE}.{kind}"
    if mark == "?":
        if not made.oneof_decl:
            made.oneof_decl.add(name="parameter_choice")
        added.oneof_index = 0
