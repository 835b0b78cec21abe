"""A copy served as people serve it, by `ectype serve` or another server, for tests."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from ectype.types import Json


class Process:
    """The command on a free port, in a process of its own; `options` come after the directory.

    It is stopped at the end of a `with`, where it has to have ended well.
    """

    def __init__(self, *options: str | Path, cwd: Path | None = None):
        port = [] if "--port" in options else ["--port", "0"]
        arguments = [sys.executable, "-m", "ectype", "serve", *map(str, options), *port, "--json"]
        self._process = subprocess.Popen(arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_until_ready(self) -> Json:
        """What it says once it can be asked."""
        about = json.loads(self._process.stdout.readline())
        self.port, self.model, self.pid = about["port"], about["url"], about["pid"]
        self.grpc_port = about.get("grpc_port")
        self.url = self.model.partition("/v2")[0]
        said = self._process.stderr.readline()
        if said.startswith("the original is "):  # which the run remembers
            said = self._process.stderr.readline()
        assert said == f"ectype: serving {self.model}\n"
        if self.grpc_port is not None:
            assert self._process.stderr.readline() == f"ectype: serving gRPC at 127.0.0.1:{self.grpc_port}\n"
        return about

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def ended(self) -> tuple[int, str, str]:
        """Its exit code, and what else it wrote."""
        if self._process.stdout.closed:
            return self._process.returncode, "", ""
        out, errors = self._process.communicate(timeout=30)
        return self._process.returncode, out, errors

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Process:
        self.wait_until_ready()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._process.terminate()
        code, _, errors = self.ended()
        assert kind is not None or code in (0, 130), errors


class Foreign:
    """Another ASGI server, by the command that our documents give for it, on a free port."""

    def __init__(self, command: str, cwd: Path):
        program, *options = shlex.split(command.replace("8080", "0"))
        arguments = [str(Path(sys.executable).parent / program), *options]
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        self._process = subprocess.Popen(arguments, cwd=cwd, text=True, start_new_session=True, **streams)

    def __enter__(self) -> Foreign:
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := re.search(r"unning on (http://127\.0\.0\.1:(\d+)) ", line):
                self.url, self.port = found[1], int(found[2])
                return self
        raise AssertionError("".join(said))

    def stop(self) -> tuple[int, str]:
        """Stop it by SIGTERM: its exit code, and what it wrote until then."""
        self._process.terminate()
        errors = self._process.communicate(timeout=30)[1]
        return self._process.returncode, errors

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # its workers too
            self._process.communicate()
