"""Copy what model servers of other people serve: MLServer, MLflow, BentoML and LitServe, as installed from PyPI.

Each server gets a virtual environment of its own, in which two scikit-learn classifiers are trained and saved in the
server's own format: one of iris measurements as an array, and a pipeline on a data frame of numbers, booleans, words
and missing values. The server then answers on a free port of 127.0.0.1, `ectype copy` copies it, and every answer
in the ledger is compared with what the saved model itself says to the same row.
docs/background/compatibility.md has the outcome.

    python compat/servers.py [SERVER ...] [--folder DIR] [--with REQUIREMENT] [--request-rows N] [--json]

What `--folder` names is kept, logs of the servers among it, and its virtual environments are used again. `--with` names
what else has to be installed there, such as "pandas<3".
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

BUDGET, CERTIFICATE = 600, 300
# Seconds: of an installation, of a server until it is ready, of any other command.
INSTALLING, STARTING, RUNNING = 1200, 180, 600
TAIL = 30
HOST = "127.0.0.1"


class Server(NamedTuple):
    """A server: what to install and to hold back, how it is asked, what it calls ready, and what to ask it for."""

    packages: tuple[str, ...]
    pins: tuple[str, ...]
    protocol: str
    ready: str
    path: str
    cases: tuple[str, ...]


SERVERS = {
    "mlserver": Server(
        packages=("mlserver", "mlserver-sklearn"),
        pins=("uvloop<0.22",),  # MLServer 1.7.1 lets any in, but its workers end at once with 0.23.0
        protocol="v2",
        ready="/v2/models/model/ready",
        path="/v2/models/model",
        cases=("array", "scores", "frame", "grpc"),
    ),
    "mlflow": Server(
        packages=("mlflow",), pins=(), protocol="mlflow", ready="/ping", path="", cases=("array", "frame")
    ),
    "bentoml": Server(
        packages=("bentoml",),
        pins=("scikit-learn", "pandas"),
        protocol="bentoml",
        ready="/readyz",
        path="/predict",
        cases=("array", "frame"),
    ),
    "litserve": Server(
        packages=("litserve",),
        pins=("scikit-learn", "pandas"),
        protocol="litserve",
        ready="/health",
        path="/predict",
        cases=("array", "frame"),
    ),
}
# The services that these two are told to serve, as their documents write them; ROWS is the type of what they take.
SERVICES = {
    "bentoml": """
import bentoml, joblib, numpy as np, pandas as pd

@bentoml.service
class Classifier:
    def __init__(self):
        self.model = joblib.load("served/model.joblib")

    @bentoml.api
    def predict(self, rows: ROWS) -> list:
        return self.model.predict(rows).tolist()
""",
    "litserve": """
import sys
import joblib, litserve, numpy as np, pandas as pd

class Classifier(litserve.LitAPI):
    def setup(self, device):
        self.model = joblib.load("served/model.joblib")

    def decode_request(self, request):
        return ROWS([request["input"]])

    def predict(self, rows):
        return self.model.predict(rows)[0]

    def encode_response(self, output):
        return {"output": output.item() if hasattr(output, "item") else output}

if __name__ == "__main__":
    server = litserve.LitServer(Classifier(), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False)
""",
}
# A gap in words comes as None where a request is one row, and the pipeline was trained on NaN.
TYPES = {
    "bentoml": ("np.ndarray", "pd.DataFrame"),
    "litserve": ("np.array", "(lambda rows: pd.DataFrame(rows).fillna(np.nan))"),
}
# What is said beside the usual, by case; the scores are those of the array's model.
OPTIONS = {"scores": ["--output", "predict_proba", "--decode", "argmax", "--classes", "0,1,2"]}
NAMED = {"bentoml": ["--input", "rows"]}
SHOWN = ("scikit-learn", "pandas", "numpy")


class Failure(Exception):
    """A step that did not work, with what it said."""


# --- inside a server's virtual environment ----------------------------------------------------------------------------


def train(server: str, model: str, folder: Path) -> None:
    """Train a classifier and save it as this server wants it; the rows of the frame go into data.csv."""
    rows, fitted = _frame(folder) if model == "frame" else _array()
    target = folder / "served"
    shutil.rmtree(target, ignore_errors=True)
    if server == "mlflow":
        import mlflow.sklearn
        from mlflow.models import infer_signature

        signature = infer_signature(rows, fitted.predict(rows))
        mlflow.sklearn.save_model(fitted, str(target), signature=signature, serialization_format="cloudpickle")
        return
    import joblib

    target.mkdir()
    joblib.dump(fitted, target / "model.joblib")
    if server in SERVICES:
        (folder / "service.py").write_text(SERVICES[server].replace("ROWS", TYPES[server][model == "frame"]))
        return
    about = {
        "name": "model",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": "./model.joblib", "version": "1"},
    }
    (target / "model-settings.json").write_text(json.dumps(about))


def _array() -> tuple[Any, Any]:
    """Iris as an array; the labels are whole numbers."""
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    rows, labels = load_iris(return_X_y=True)
    return rows, RandomForestClassifier(20, random_state=0).fit(rows, labels)


def _frame(folder: Path) -> tuple[Any, Any]:
    """A data frame of floats, whole numbers, booleans and words, with gaps; the labels are words."""
    import numpy as np
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng, n = np.random.default_rng(0), 1500
    age, income, visits = rng.integers(18, 90, n), rng.lognormal(3, 0.6, n), rng.integers(0, 12, n).astype(float)
    member, plan, city = rng.random(n) < 0.4, rng.choice(["free", "plus", "pro"], n), rng.choice(["Bonn", "Nice"], n)
    columns = {"age": age, "income": income, "visits": visits, "member": member, "plan": plan, "city": city}
    score = 0.05 * age + 0.1 * income - 0.4 * visits + 2.0 * member + 1.5 * (plan == "pro") - (city == "Nice")
    frame = pd.DataFrame(columns)
    for name, worth in (("income", 3.0), ("visits", -3.0), ("plan", -3.0)):
        gone = rng.random(n) < 0.15
        frame.loc[gone, name] = None
        score = score + worth * gone  # labels hang on gaps, so that a server which reads them otherwise is found out
    labels = np.select([score < 2.5, score < 5.0], ["refuse", "review"], "accept")
    frame.to_csv(folder / "data.csv", index=False)
    rows = read(folder / "data.csv")
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    parts = ColumnTransformer(
        [("numbers", numbers, ["age", "income", "visits"]), ("words", words, ["plan", "city"])],
        remainder="passthrough",
    )
    return rows, make_pipeline(parts, GradientBoostingClassifier(n_estimators=40, random_state=0)).fit(rows, labels)


def compare(server: str, model: str, folder: Path) -> dict[str, Any]:
    """What the saved model itself says to the rows of asked.csv, against the answers that stand beside them."""
    asked = read(folder / "asked.csv")
    asked = asked[asked["label"].notna()]
    if server == "mlflow":
        import mlflow.sklearn

        fitted = mlflow.sklearn.load_model(str(folder / "served"))
    else:
        import joblib

        fitted = joblib.load(folder / "served" / "model.joblib")
    rows = asked[list(fitted.feature_names_in_)] if model == "frame" else asked[["x0", "x1", "x2", "x3"]].to_numpy()
    alike = fitted.predict(rows) == asked["label"].to_numpy()
    return {"answered": len(asked), "alike": int(alike.sum()), "unlike": asked[~alike].head(3).to_dict("records")}


def read(path: Path) -> Any:
    """A CSV file whose numbers are read as they were written, to the last bit."""
    import pandas as pd

    return pd.read_csv(path, float_precision="round_trip")


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The versions of these packages, as far as they are installed here."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def inside(arguments: Sequence[str]) -> None:
    """What this file does where a server is installed: train, compare or versions."""
    step, server, model, folder = arguments
    if step == "train":
        train(server, model, Path(folder))
    elif step == "compare":
        print(json.dumps(compare(server, model, Path(folder))))
    else:
        print(json.dumps(versions([*SERVERS[server].packages, *SHOWN])))


# --- outside ----------------------------------------------------------------------------------------------------------


def environment(server: str, folder: Path, more: Sequence[str]) -> Path:
    """The interpreter of the server's virtual environment, made and filled unless it is there with the same inside."""
    home = folder / server / "venv"
    python, done = home / "bin" / "python", home / "installed"
    wanted = [*SERVERS[server].packages, *SERVERS[server].pins, *more]
    if not done.exists() or done.read_text() != "\n".join(wanted):
        print(f"installing {', '.join(wanted)} ...", file=sys.stderr)
        run([sys.executable, "-m", "venv", "--clear", str(home)])
        run([str(python), "-m", "pip", "install", "--quiet", *wanted], seconds=INSTALLING)
        done.write_text("\n".join(wanted))
    return python


def run(command: Sequence[str], seconds: float = RUNNING, cwd: Path | None = None) -> str:
    """What a command prints; a failure, with the end of what it said, if it does not work."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=cwd, env=surroundings())
    except subprocess.TimeoutExpired:
        raise Failure(f"{shown(command)}: not done within {seconds} s") from None
    if done.returncode:
        raise Failure(f"{shown(command)}: exit code {done.returncode}\n{tail(done.stderr or done.stdout)}")
    return done.stdout


def shown(command: Sequence[str]) -> str:
    """A command without the folders of its files."""
    return " ".join(part if "://" in part else Path(part).name or part for part in command)


def tail(text: str) -> str:
    """The last lines of a text."""
    return "\n".join(text.strip().splitlines()[-TAIL:])


def surroundings(python: Path | None = None) -> dict[str, str]:
    """The environment of a command: what belongs to a virtual environment first, and nothing that reports home."""
    found = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    if python is not None:
        found["PATH"] = f"{python.parent}{os.pathsep}{found.get('PATH', os.defpath)}"
    return {**found, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "NO_PROXY": HOST, "no_proxy": HOST}


def free_ports(n: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens at; all of them are taken before the first is given back."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


def start_command(server: str, python: Path, folder: Path, ports: Sequence[int]) -> list[str]:
    """How the server is started; MLServer reads its ports from a file."""
    served, beside = folder / "served", python.parent
    if server == "bentoml":
        return [str(beside / "bentoml"), "serve", "service:Classifier", "--host", HOST, "--port", str(ports[0])]
    if server == "litserve":
        return [str(python), "service.py", str(ports[0])]
    if server == "mlflow":
        options = ["--env-manager", "local", "--host", HOST, "--port", str(ports[0])]
        return [str(beside / "mlflow"), "models", "serve", "--model-uri", str(served), *options]
    named = dict(zip(("http_port", "grpc_port", "metrics_port"), ports, strict=True))
    (served / "settings.json").write_text(json.dumps({"host": HOST, "debug": False, **named}))
    return [str(beside / "mlserver"), "start", str(served)]


@contextlib.contextmanager
def serving(server: str, model: str, python: Path, folder: Path) -> Iterator[str]:
    """The address of the model while its server runs; the server and whatever it started end with the block."""
    ports, about = free_ports(3), SERVERS[server]
    command, url = start_command(server, python, folder, ports), f"http://{HOST}:{ports[0]}"
    log = folder / "server.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=surroundings(python),
            start_new_session=True,
        )
        try:
            wait(url + about.ready, process)
            yield f"grpc://{HOST}:{ports[1]}/model" if model == "grpc" else url + about.path
        except Failure as error:
            raise Failure(f"{error}\n--- the end of {log.name}:\n{tail(log.read_text(errors='replace'))}") from None
        finally:
            end(process)


def wait(url: str, process: subprocess.Popen[Any], seconds: float = STARTING) -> None:
    """Ask until the answer is 200."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failure(f"the server ended with exit code {process.returncode}")
        with contextlib.suppress(OSError), direct.open(url, timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.25)
    raise Failure(f"the server was not ready within {seconds} s")


def end(process: subprocess.Popen[Any], seconds: float = 15) -> None:
    """End a process and all that it started, which are in a group of their own."""
    for signalled, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, seconds)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signalled)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        if process.poll() is not None and not _group_lives(process.pid, 2.0 if signalled == signal.SIGTERM else 0.0):
            return


def _group_lives(group: int, seconds: float) -> bool:
    """Whether processes of a group are left after so long."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        if time.monotonic() >= deadline:
            return True
        time.sleep(0.1)


def check(server: str, model: str, folder: Path, more: Sequence[str] = (), request_rows: int = 100) -> dict[str, Any]:
    """Train, serve, copy and compare one model: a row of the table."""
    print(f"{server}, {model} ...", file=sys.stderr)
    row: dict[str, Any] = {"server": server, "model": model, "protocol": SERVERS[server].protocol}
    try:
        python = environment(server, folder, more)
        room = folder / server / model
        room.mkdir(parents=True, exist_ok=True)

        def there(step: str) -> str:
            return run([str(python), __file__, "inside", step, server, model, str(room)], cwd=room)

        found = json.loads(there("versions"))
        row |= {"version": found[SERVERS[server].packages[0]], "python": found["python"], "packages": found}
        there("train")
        with serving(server, model, python, room) as url:
            row |= copied(url, server, model, room, request_rows)
        row |= json.loads(there("compare"))
        same = row["alike"] == row["answered"] == row["asked"]
        row["outcome"] = "ok" if same else f"{row['asked'] - row['alike']} rows differ"
        if row["unlike"]:
            row["why"] = "answered otherwise than the model itself: " + "; ".join(map(str, row["unlike"]))
    except Failure as error:
        row |= {"outcome": "failed", "why": str(error)}
    return row


def copied(url: str, server: str, model: str, room: Path, request_rows: int) -> dict[str, Any]:
    """Copy what is served, by the command, and write its ledger to asked.csv."""
    ectype = [sys.executable, "-m", "ectype"]
    space, out = "uniform:0:8:4", room / "copy"
    shutil.rmtree(out, ignore_errors=True)
    if model == "frame":
        space = str(room / "space.json")
        run([*ectype, "space", str(room / "data.csv"), "--out", space, "--json"], cwd=room)
    sizes = ["--budget", str(BUDGET), "--certificate-n", str(CERTIFICATE)]
    if server != "litserve":  # which takes one row at a time
        sizes += ["--request-rows", str(request_rows)]
    asking = [
        "copy",
        url,
        "--protocol",
        SERVERS[server].protocol,
        "--space",
        space,
        "--out",
        str(out),
        *sizes,
        *OPTIONS.get(model, []),
        *NAMED.get(server, []),
        "--json",
    ]
    found = json.loads(run([*ectype, *asking], cwd=room))
    export = ["ledger", str(out), "--export", str(room / "asked.csv"), "--json"]
    ledger = json.loads(run([*ectype, *export], cwd=room))
    return {"asked": ledger["asked"], "lower": found["certificate"]["lower"], "failures": ledger["failures"]}


COLUMNS = ("server", "version", "python", "model", "protocol", "asked", "alike", "lower", "outcome")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as lines of text, a dash where there is nothing."""
    shown = [COLUMNS, *([_text(row.get(name)) for name in COLUMNS] for row in rows)]
    widths = [max(len(line[j]) for line in shown) for j in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in shown
    )


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def main() -> int:
    """Check the servers that are named, or all; 0 only if everything holds."""
    if sys.argv[1:2] == ["inside"]:
        inside(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"of {', '.join(SERVERS)}; all, if none is named")
    parser.add_argument("--folder", type=Path, help="keep everything here, and use what is here again")
    parser.add_argument("--with", dest="more", action="append", default=[], help="what else to install there")
    parser.add_argument("--request-rows", type=int, default=100, help="the most rows of one request")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    asked = parser.parse_args()
    unknown = [name for name in asked.servers if name not in SERVERS]
    if unknown:
        parser.error(f"servers among {', '.join(SERVERS)} were expected, found {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that servers end with this, too
    with contextlib.ExitStack() as stack:
        folder = asked.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ectype-compat-")))
        named = dict.fromkeys(asked.servers or SERVERS)
        cases = [(server, model) for server in named for model in SERVERS[server].cases]
        rows = [check(*case, folder.resolve(), asked.more, asked.request_rows) for case in cases]
    print(json.dumps(rows) if asked.json else report(rows))
    return 0 if all(row["outcome"] == "ok" for row in rows) else 1


def report(rows: Sequence[dict[str, Any]]) -> str:
    """The table, the versions beside each server, and why something does not hold."""
    lines = [table(rows), ""]
    for server, found in {row["server"]: row["packages"] for row in rows if "packages" in row}.items():
        lines.append(f"{server}: " + ", ".join(f"{name} {version}" for name, version in found.items()))
    lines += [f"\n{row['server']}, {row['model']}: {row['why']}" for row in rows if "why" in row]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
