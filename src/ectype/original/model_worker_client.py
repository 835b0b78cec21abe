"""The process that runs a model file, seen from here: started when needed, given up when late."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import Counter
from typing import IO, Any, BinaryIO, cast

import numpy as np

from ectype._common.portable import require_module
from ectype.errors import OriginalError, OutageError
from ectype.original import model_worker
from ectype.original.subprocess_io import brief, ending
from ectype.types import Json

# Importing onnxruntime and loading a model takes its time once, whatever a request may take.
STARTING_SECONDS = 60.0
# A process whose pipe is closed is about to end; how it ended is known only then.
_ENDING_SECONDS = 5.0

Message = tuple[dict[str, Any], list[np.ndarray]]


class ModelProcess:
    """A process that runs a model: started when first asked, afresh after it ended, and gone with this object.

    `setting` is what the process is told of it, `library` what runs it there, in words. `failures` counts the requests
    that came to nothing.
    """

    def __init__(self, name: str, model: bytes, setting: Json, seconds: float, library: str = "onnxruntime"):
        # A file of others may ask for any memory: it runs where that can be bounded.
        require_module(
            "resource", f"{library}, which runs a model in a process with bounds", "serve the model over HTTP"
        )
        self._name, self._model, self._seconds = name, np.frombuffer(model, np.uint8), seconds
        self._setting, self._library, self._about = setting, library, dict[str, Any]()
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.Lock()
        self.failures: Counter[str] = Counter()

    def start(self) -> Json:
        """Load the model, unless it is loaded; gives its description."""
        with self._one_at_a_time:
            self._running()
            return self._about

    def ask(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        """The model's outputs for these inputs."""
        with self._one_at_a_time:
            process = self._running()
            request = {"inputs": list(inputs)}, list(inputs.values())
            head, arrays = self._exchange(process, request, self._seconds, OriginalError)
        if "error" in head:
            self.failures["error"] += 1
            hint = "check that the space has the columns and values it takes"
            raise OriginalError(self._name, "outputs for every row", brief(head["error"]), hint)
        return arrays

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        process = self._process = self._started()
        seconds = max(STARTING_SECONDS, self._seconds)
        head, _ = self._exchange(process, (self._setting, [self._model]), seconds, OutageError)
        if "error" in head:
            self._stop()
            hint = f"save it for an older version of {self._library}, or update that"
            raise OutageError(self._name, f"a model that {self._library} can load", brief(head["error"]), hint)
        self._about = head
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        said = tempfile.TemporaryFile()  # noqa: SIM115 - its last words; closed when the process is
        # -P: what lies beside the child's file, or where the user happens to be, must not be imported instead.
        command = [sys.executable, "-P", model_worker.__file__]
        try:
            # A session of its own: Ctrl-C in a terminal is for whoever asks, and reaches this one as the end of stdin.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
        except OSError as error:
            said.close()
            raise OutageError(self._name, "a process to run it in", str(error)) from error
        self._said, self._end = said, weakref.finalize(self, _end, process, said)
        return process

    def _stop(self) -> None:
        if self._process is not None:
            self._end()
            self._process = None

    def _exchange(
        self, process: subprocess.Popen[bytes], request: Message, seconds: float, failure: type[OriginalError]
    ) -> Message:
        """Send a message and read the answer; without one in time, the process is ended."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        answer = None
        try:
            with contextlib.suppress(OSError, EOFError):  # it went away
                model_worker.send(cast(BinaryIO, process.stdin), *request)
                answer = model_worker.receive(cast(BinaryIO, process.stdout))
        except BaseException:  # in the middle of a message, whose rest would be taken for the next answer
            self._stop()
            raise
        finally:
            timer.cancel()
            timer.join()
        if answer is None:
            raise self._failed(process, failure, seconds if late.is_set() else None)
        if late.is_set():  # answered at the last moment, and killed all the same
            self._stop()
        return answer

    def _failed(
        self, process: subprocess.Popen[bytes], failure: type[OriginalError], seconds: float | None
    ) -> OriginalError:
        if seconds is not None:
            self._stop()
            self.failures["timeout"] += 1
            return failure(self._name, f"an answer within {seconds:g} s", "none", "raise the limit with --timeout")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING_SECONDS)
        found = f"the end of the process that runs it, by {ending(process.poll())}{self._last_words()}"
        self._stop()
        self.failures["crash"] += 1
        return failure(self._name, "outputs for every row", found, "the model is damaged, or too large for the memory")

    def _last_words(self) -> str:
        self._said.seek(0)
        words = self._said.read().decode(errors="replace").strip()
        return f": {brief(words)}" if words else ""


def _end(process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
    process.kill()
    with contextlib.suppress(OSError), process:  # OSError: what it did not read any more
        pass
    said.close()
