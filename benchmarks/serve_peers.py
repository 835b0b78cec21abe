"""A served copy beside FastAPI with onnxruntime and beside MLServer, with the same model, under wrk.

    python benchmarks/serve_peers.py --folder DIR [--seconds S] [--rounds N] [--json]

Two copies of one original are made, a network and the default, and exported as ONNX for the others. Each server has one
process for requests. Single rows come on 64 connections; 1000 rows a request come on 4, as binary tensors to us, and as
JSON to the others, which read no binary tensors over REST. The servers take turns in every round, and the median of all
rounds is shown. wrk has to be installed; the others are, in virtual environments in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import ectype as ec

HOST, COLUMNS, BATCH = "127.0.0.1", 10, 1000
PACKAGES = {
    "fastapi": ["fastapi", "uvicorn[standard]", "onnxruntime", "numpy"],
    "mlserver": ["mlserver", "uvloop<0.22", "onnxruntime"],
}
FASTAPI = """
import os
import numpy as np
import onnxruntime
from fastapi import FastAPI
from pydantic import BaseModel

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(os.environ["MODEL"], options)
(source,) = session.get_inputs()
kind = np.float64 if "double" in source.type else np.float32
app = FastAPI()

class Rows(BaseModel):
    inputs: list[list[float]]

@app.post("/predict")
def predict(rows: Rows):
    return {"predictions": session.run(None, {source.name: np.asarray(rows.inputs, kind)})[0].tolist()}
"""
MLSERVER = """
import os
import numpy as np
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Copy(MLModel):
    async def load(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(os.environ["MODEL"], options)
        (self.source,) = self.session.get_inputs()
        self.kind = np.float64 if "double" in self.source.type else np.float32
        return True

    async def predict(self, payload):
        rows = NumpyCodec.decode_input(payload.inputs[0]).astype(self.kind)
        labels = self.session.run(None, {self.source.name: rows})[0]
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("predict", labels)])
"""


def original(rows: np.ndarray) -> np.ndarray:
    return (rows[:, 0] * rows[:, 1] + np.sin(2 * rows[:, 2]) > rows[:, 3]).astype(int)


def copies(folder: Path) -> None:
    """The two copies, as directories and as ONNX, unless they are there."""
    for name, family in (("network", "mlp"), ("default", "auto")):
        if (folder / f"{name}.onnx").exists():
            continue
        result = ec.copy_classifier(original, ec.Space.normal(COLUMNS), to=family, budget=1500, certificate_n=0)
        result.save(folder / name)
        ec.export(result.copy, folder / f"{name}.onnx")


def python_of(peer: str, folder: Path) -> Path:
    home = folder / peer
    done = home / "installed"
    if not done.exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", *PACKAGES[peer]], check=True)
        done.touch()
    return home / "bin" / "python"


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: list[str], url: str, **options: Any) -> Iterator[None]:
    """A server, from when it answers until the end of the block."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **options
    )
    try:
        for _ in range(600):
            with suppress(OSError), urllib.request.urlopen(url, timeout=5):
                break
            time.sleep(0.1)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def ours(name: str, work: Path, _: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "ectype", "serve", str(work / name), "--port", str(port)]
    with running(command, f"http://{HOST}:{port}/v2"):
        yield f"http://{HOST}:{port}/v2/models/{name}/infer"


@contextmanager
def fastapi(name: str, work: Path, folder: Path) -> Iterator[str]:
    port, python = free_port(), python_of("fastapi", folder)
    (work / "served_by_fastapi.py").write_text(FASTAPI)
    command = [str(python), "-m", "uvicorn", "served_by_fastapi:app", "--port", str(port), "--log-level", "error"]
    with running(command, f"http://{HOST}:{port}/openapi.json", cwd=work, env=_environment(name, work)):
        yield f"http://{HOST}:{port}/predict"


@contextmanager
def mlserver(name: str, work: Path, folder: Path) -> Iterator[str]:
    ports, python = [free_port() for _ in range(3)], python_of("mlserver", folder)
    home = work / f"mlserver-{name}"
    home.mkdir(exist_ok=True)
    (home / "served_by_mlserver.py").write_text(MLSERVER)
    (home / "model-settings.json").write_text(json.dumps({"name": name, "implementation": "served_by_mlserver.Copy"}))
    named = dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True))
    (home / "settings.json").write_text(json.dumps({"host": HOST, "debug": False, **named}))
    command = [str(python.parent / "mlserver"), "start", str(home)]
    with running(command, f"http://{HOST}:{ports[0]}/v2/models/{name}/ready", cwd=home, env=_environment(name, work)):
        yield f"http://{HOST}:{ports[0]}/v2/models/{name}/infer"


def _environment(name: str, work: Path) -> dict[str, str]:
    return {**os.environ, "MODEL": str(work / f"{name}.onnx"), "OMP_NUM_THREADS": "1"}


SERVERS = {"ectype": ours, "fastapi": fastapi, "mlserver": mlserver}


def script(server: str, rows: np.ndarray, work: Path) -> Path:
    """What wrk sends to a server: a body in a file, and a script that sends it."""
    headers = {"Content-Type": "application/json"}
    tensor: dict[str, Any] = {"name": "inputs", "shape": list(rows.shape), "datatype": "FP64"}
    body = json.dumps({"inputs": [{**tensor, "data": rows.ravel().tolist()}]}).encode()
    if server == "fastapi":
        body = json.dumps({"inputs": rows.tolist()}).encode()
    elif server == "ectype" and len(rows) > 1:
        asked = {"inputs": [{**tensor, "parameters": {"binary_data_size": rows.nbytes}}]}
        start = json.dumps({**asked, "parameters": {"binary_data_output": True}}).encode()
        body = start + rows.astype("<f8").tobytes()
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(start))}
    path = work / f"{server}-{len(rows)}"
    path.write_bytes(body)
    lines = [f'wrk.method = "POST"\nwrk.body = io.open("{path}", "rb"):read("*a")']
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    found = path.with_suffix(".lua")
    found.write_text("\n".join(lines))
    return found


def under_wrk(url: str, path: Path, connections: int, seconds: float) -> dict[str, float]:
    """Requests a second, the 99th percentile in milliseconds, and answers that were not 200."""
    load = ["-t1", f"-c{connections}", f"-d{seconds:g}s", "--timeout", "20s", "--latency", "-s", str(path)]
    said = subprocess.run(["wrk", *load, url], capture_output=True, text=True, check=True).stdout
    per_second, p99 = re.search(r"Requests/sec:\s*([\d.]+)", said), re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    assert per_second
    assert p99
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    unit = {"us": 1e-3, "ms": 1.0, "s": 1e3}[p99[2]]
    failed = sum(int(n) for n in re.findall(r"(?:connect|read|write|timeout) (\d+)", said))
    return {
        "per_second": float(per_second[1]),
        "p99_ms": float(p99[1]) * unit,
        "errors": (int(wrong[1]) if wrong else 0) + failed,
    }


def compared(model: str, work: Path, folder: Path, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Every server with one model, in turns."""
    rng = np.random.default_rng(0)
    with ExitStack() as stack:
        urls = {server: stack.enter_context(start(model, work, folder)) for server, start in SERVERS.items()}
        table = []
        for rows, connections in ((1, 64), (BATCH, 4)):
            scripts = {server: script(server, rng.normal(size=(rows, COLUMNS)), work) for server in urls}
            found: dict[str, list[dict[str, float]]] = {server: [] for server in urls}
            for turn in range(rounds + 1):
                for server, url in urls.items():
                    one = under_wrk(url, scripts[server], connections, seconds if turn else 1)
                    if turn:  # the first warms up
                        found[server].append(one)
            for server, several in found.items():
                middle = {key: statistics.median(one[key] for one in several) for key in ("per_second", "p99_ms")}
                errors = sum(one["errors"] for one in several)
                about = {"model": model, "rows": rows, "connections": connections, "server": server}
                table.append({**about, **middle, "errors": errors})
        return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for the virtual environments of the others")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        parser.error("wrk was expected, found none: apt-get install wrk")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that servers end with this, too
    folder = options.folder.resolve()
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    for peer in PACKAGES:
        python_of(peer, folder)
    copies(work)
    rows = [
        row
        for model in ("network", "default")
        for row in compared(model, work, folder, options.seconds, options.rounds)
    ]
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'model':9}{'rows':>6}{'connections':>13}  {'server':12}{'per_second':>11}{'p99_ms':>9}{'errors':>8}")
    for row in rows:
        line = "{model:9}{rows:>6}{connections:>13}  {server:12}{per_second:>11.0f}{p99_ms:>9.2f}{errors:>8}"
        print(line.format(**row))


if __name__ == "__main__":
    main()
