"""The process that runs a model file, and how it is spoken to: messages of JSON and raw arrays over its pipes.

It is started by this file's path and imports nothing of ectype, so it starts quickly and finds what it needs
wherever ectype itself was imported from.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import select
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# More than labels or scores of any sensible request; a model that blows up must not fill the memory of who asks it.
MOST_BYTES = 2**30
_SIZE = struct.Struct("<Q")
# The address space of the process: this much, and for a model this many times its bytes on top.
MOST_MEMORY, TIMES_MODEL = 4 * 2**30, 4
# What it may write to a file: its last words.
MOST_SAID = 2**20

Ask = Callable[[dict[str, np.ndarray]], list[np.ndarray]]


def send(stream: BinaryIO, head: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
    """Write one message. Strings travel as JSON, everything else as it lies in memory."""
    bodies = [_body(array) for array in arrays]
    kinds = ["str" if array.dtype.kind in "OU" else array.dtype.str for array in arrays]
    shapes = [list(array.shape) for array in arrays]
    sizes = [len(body) for body in bodies]
    described = json.dumps({**head, "arrays": list(zip(kinds, shapes, sizes, strict=True))}).encode()
    stream.write(_SIZE.pack(len(described)))
    stream.write(described)
    for body in bodies:
        stream.write(body)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Read one message; EOFError if the other side went away before its end."""
    head = json.loads(_exactly(stream, _SIZE.unpack(_exactly(stream, _SIZE.size))[0]))
    return head, [_array(_exactly(stream, size), kind, shape) for kind, shape, size in head.pop("arrays")]


def _body(array: np.ndarray) -> bytes | memoryview:
    if array.dtype.kind in "OU":
        return json.dumps(array.ravel().tolist()).encode()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _array(body: bytes, kind: str, shape: list[int]) -> np.ndarray:
    if kind == "str":
        return np.array(json.loads(body), dtype=object).reshape(shape)
    return np.frombuffer(body, np.dtype(kind)).reshape(shape)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the other process went away")
    return data


def _end_with_parent() -> None:
    """End once nobody holds the other end of stdin, even in the middle of a computation that would never end."""
    parent = select.poll()
    parent.register(0, 0)  # asks for nothing but the hang-up, which is always reported
    parent.poll()
    os._exit(0)


def limit(model_bytes: int, virtual: bool = False) -> None:
    """Bound what this process may take: memory, and what it may write. Time is bounded by whoever asks it.

    A virtual machine reserves far more addresses than it uses, and bounds its heap by itself.
    """
    import resource

    bounds = {resource.RLIMIT_FSIZE: MOST_SAID, resource.RLIMIT_CORE: 0}
    if not virtual:
        bounds[resource.RLIMIT_AS] = MOST_MEMORY + TIMES_MODEL * model_bytes
    for kind, most in bounds.items():
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some
            resource.setrlimit(kind, (allowed, allowed))


def _session(model: bytes) -> InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is in the exception
    # A checked ONNX model may begin like onnxruntime's own format, and would then be read as that, unchecked.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _loaded(model: bytes, setting: dict[str, Any]) -> tuple[dict[str, Any], Ask]:
    """A model's description and its predict function: of another library, by the file that loads it, or of ONNX."""
    if "loader" in setting:
        found: tuple[dict[str, Any], Ask] = runpy.run_path(setting["loader"])["load"](model, setting)
        return found
    session = _session(model)
    return {}, lambda feeds: [_outputs(session, setting["output"], feeds, setting["batch"])]


def _outputs(session: InferenceSession, output: str, feeds: dict[str, np.ndarray], batch: int | None) -> np.ndarray:
    """The output for all rows; a model for a fixed number of them gets that many, the last of them several times."""
    if batch is None:
        return session.run([output], feeds)[0]
    n, found = len(next(iter(feeds.values()))), []
    for start in range(0, n, batch):
        places = np.minimum(np.arange(start, start + batch), n - 1)
        part = np.atleast_1d(session.run([output], {name: values[places] for name, values in feeds.items()})[0])
        if len(part) != batch:
            raise ValueError(f"outputs for {len(part)} rows where {batch} were given")
        found.append(part)
    return np.concatenate(found)[:n]


def _answer(ask: Ask, feeds: dict[str, np.ndarray], answers: BinaryIO) -> None:
    try:
        outputs = ask(feeds)
        size = sum(array.nbytes for array in outputs)
        if size > MOST_BYTES:
            raise ValueError(f"outputs of {size} bytes")
    except Exception as error:  # whatever it is, it is told, and the next rows may fare better
        return send(answers, {"error": f"{type(error).__name__}: {error}"})
    return send(answers, {}, outputs)


def main() -> None:
    """Read a model, then answer requests until there are no more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Answers go out by a descriptor of their own: a library that prints would garble them.
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    setting, (model,) = receive(requests)
    limit(model.nbytes, virtual=setting.get("library") == "pypmml")
    try:
        about, ask = _loaded(model.tobytes(), setting)
    except Exception as error:
        return send(answers, {"error": f"{type(error).__name__}: {error}"})
    send(answers, about)
    while True:
        head, inputs = receive(requests)
        _answer(ask, dict(zip(head["inputs"], inputs, strict=True)), answers)


if __name__ == "__main__":
    with contextlib.suppress(EOFError, BrokenPipeError):  # who asks went away: nobody is left to tell
        main()
