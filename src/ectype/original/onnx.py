"""Originals that are ONNX models: checked here, then run by a process of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Unpack

from ectype._common.extras import require_extra
from ectype._legacy.names import ONNX_GAP
from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.decode import check_decoding, with_decoding
from ectype.original.model_worker_client import ModelProcess
from ectype.original.onnx_inputs import feed_of, inputs_of
from ectype.original.onnx_signature import Value, describe_values
from ectype.original.options import LabelReader
from ectype.original.sklearn_files import read_file
from ectype.original.subprocess_io import brief, patience
from ectype.types import Classes

if TYPE_CHECKING:
    import onnx

DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
"""The operators of the ONNX standard. Others may do anything."""

GAP = "ectype.gap"
"""The key under which a file may say which word stands for a gap; those that ectype exports do."""


def open_onnx(
    spec: str,
    classes: Classes = None,
    *,
    output: str | None = None,
    timeout: float = 60.0,
    **reading: Unpack[LabelReader],
) -> Original:
    """The classifier in an ONNX file, of one matrix of numbers or of one input for each column of a data frame.

    Refused are files that refer to others, operators outside the standard, and functions of the model's own. What is
    left is still a stranger's program for onnxruntime, so it runs in a process of its own: one that crashes, takes more
    memory than 4 GiB and four times the model's bytes, or longer than `timeout` seconds for a request, is an error, and
    the next request gets a fresh process.
    """
    seconds = patience(timeout)
    kind = check_decoding(reading.get("decode"))
    file = read_file(spec)
    require_extra(file.name, "onnx", "onnx", "onnxruntime")
    model = _checked(file.content, file.name)
    graph = model.graph
    inputs = inputs_of(graph, file.name)
    feed, d, names = feed_of(
        inputs, file.name, next((p.value for p in model.metadata_props if p.key in (GAP, ONNX_GAP)), None)
    )
    chosen = _choose([Value.of(value) for value in graph.output], output, kind)
    process = ModelProcess(file.name, file.content, {"output": chosen.name, "batch": inputs[0].batch}, seconds)
    original = Original(
        lambda rows: process.ask(feed(rows))[0], d=d, names=names, name=file.name, fingerprint=file.sha256
    )
    original.failures = process.failures
    return with_decoding(original, classes, **reading)


# --- what is in the file ----------------------------------------------------------------------------------------------


def _checked(content: bytes, name: str) -> onnx.ModelProto:
    """The model in a file, if it is one, with all of it in there and known."""
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise SettingError(name, "an ONNX model", f"something else: {brief(str(error))}") from error
    _refuse_foreign(model, name)
    try:
        onnx.checker.check_model(content)
    except Exception as error:
        hint = "see how it was exported, and that its opset is not newer than the installed onnx"
        raise SettingError(name, "a valid ONNX model", brief(str(error)), hint) from error
    return model


def _refuse_foreign(model: onnx.ModelProto, name: str) -> None:
    from onnx import NodeProto, OperatorSetIdProto, TensorProto

    if model.functions:
        found = "functions of its own: " + ", ".join(function.name for function in model.functions)
        raise SettingError(name, "operators of the ONNX standard", brief(found), "export it with functions inlined")
    for part in _messages(model):
        if isinstance(part, TensorProto) and (part.external_data or part.data_location == TensorProto.EXTERNAL):
            found, hint = f"tensor {part.name!r} kept in another", "export it with all weights in one file"
            raise SettingError(name, "a model in a single file", found, hint)
        if isinstance(part, (NodeProto, OperatorSetIdProto)) and part.domain not in DOMAINS:
            known = " and ".join(filter(None, DOMAINS))
            raise SettingError(name, f"operators of the domains {known}", f"the domain {part.domain!r}")


def _messages(root: onnx.ModelProto) -> Iterator[object]:
    """A protobuf message and all below it: a reference to a file may hide in any attribute or subgraph."""
    waiting = [root]
    while waiting:
        message = waiting.pop()
        yield message
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                waiting.extend([value] if hasattr(value, "ListFields") else value)


# --- outputs ----------------------------------------------------------------------------------------------------------


def _choose(outputs: list[Value], output: str | None, decode: str) -> Value:
    """The output to read: the one that was named, or the only one that can be read in this way."""
    chosen = _only(outputs, decode) if output is None else next((v for v in outputs if v.name == output), None)
    if chosen is None:
        raise SettingError("output", f"one of {describe_values(outputs)}", repr(output))
    if not chosen.readable:
        others = describe_values(value for value in outputs if value is not chosen)
        raise SettingError("output", "a tensor", str(chosen), f"name another with --output: {others}")
    if decode == "label" and chosen.scores:
        raise SettingError("decode", "argmax or threshold for scores", f"{decode!r} for the output {chosen}")
    if decode != "label" and not chosen.numeric:
        raise SettingError("decode", "'label' for strings", f"{decode!r} for the output {chosen}")
    return chosen


def _only(outputs: list[Value], decode: str) -> Value:
    fitting = [value for value in outputs if value.readable and value.scores == (decode != "label")]
    candidates = fitting if len(fitting) == 1 else outputs
    if len(candidates) != 1:
        what = "labels" if decode == "label" else "scores"
        hint = "name one with --output, and say --decode argmax or threshold if it gives scores"
        raise SettingError("output", f"one output of {what}", f"the outputs {describe_values(outputs)}", hint)
    return candidates[0]
