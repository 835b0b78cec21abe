"""Ask a served copy with clients that others wrote: tritonclient, KServe's, MLServer's, open-inference's, and curl.

Two copies are made, of arrays and of data frames, and `ectype serve` serves each, by HTTP and gRPC. Each client
gets a virtual environment of its own, asks in every way that it has (asking.py), and its labels are compared with the
copy's. docs/background/compatibility.md has the outcome.

    python compat/clients.py [tritonclient] [kserve] [mlserver] [open-inference] [curl] [--folder DIR] [--json]

What `--folder` names is kept, and its virtual environments are used again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from servers import HOST, INSTALLING, Failure, end, run, surroundings

import ectype as ec

# What to install for each client. MLServer 1.7.1 lets in uvloop 0.22 and pandas 3, with which it fails by itself.
PACKAGES: dict[str, tuple[str, ...]] = {
    "tritonclient": ("tritonclient[all]",),
    "kserve": ("kserve",),
    "mlserver": ("mlserver", "uvloop<0.22", "httpx", "pandas<3"),
    "open-inference": ("open-inference-openapi", "open-inference-grpc", "protobuf"),
    "curl": (),
}
TOKEN = "a token for curl"
ROWS = 25


def copies(folder: Path) -> dict[str, Any]:
    """Two copies in the folder, and what clients are told of them."""
    import numpy as np
    import pandas as pd

    rng, n = np.random.default_rng(0), 1200
    rows = rng.normal(size=(n, 4))
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(3, 0.6, n).round(2),
            "member": rng.random(n) < 0.4,
            "plan": rng.choice(["free", "plus", "pro"], n),
        }
    )

    def of_array(X: Any) -> Any:
        return np.where(X[:, 0] * X[:, 1] > X[:, 2], "above", "below")

    def of_frame(X: Any) -> Any:
        score = 0.05 * X["age"] + 0.1 * X["income"] + 2.0 * X["member"] + 1.5 * (X["plan"] == "pro")
        return np.where(score > 6, "accept", "refuse")

    array = ec.copy_classifier(of_array, ec.Space.from_data(rows), preset="fast", budget=500, certificate_n=0)
    table = ec.copy_classifier(of_frame, ec.Space.from_data(frame), preset="fast", budget=500, certificate_n=0)
    array.save(folder / "numbers")
    table.save(folder / "people")
    rows, frame = rows[:ROWS], frame[:ROWS]
    types = {"age": "INT64", "income": "FP64", "member": "BOOL", "plan": "BYTES"}
    columns = {name: {"datatype": types[name], "values": frame[name].tolist()} for name in frame}
    return {
        "array": {
            "name": "numbers",
            "rows": rows.tolist(),
            "labels": array.copy.predict(rows).tolist(),
            "scores": array.copy.predict_proba(rows).tolist(),
        },
        "frame": {"name": "people", "columns": columns, "labels": table.copy.predict(frame).tolist()},
    }


@contextlib.contextmanager
def served(*options: str) -> Iterator[dict[str, Any]]:
    """What `ectype serve` says of itself, while it serves."""
    command = [sys.executable, "-m", "ectype", "serve", *options, "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "SERVED_TOKEN": TOKEN},
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        end(process)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine alone, and its key."""
    pair = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", f"subjectAltName=DNS:localhost,IP:{HOST}", "-days", "2", "-nodes"]
    run(["openssl", "req", "-x509", "-newkey", "rsa:2048", *names, "-out", str(pair[0]), "-keyout", str(pair[1])])
    return pair


def environment(client: str, folder: Path, packages: Sequence[str]) -> Path:
    """The interpreter of the client's virtual environment, made and filled unless it is there."""
    if not packages:
        return Path(sys.executable)
    home = folder / client / "venv"
    python, done = home / "bin" / "python", home / "installed"
    if not done.exists() or done.read_text() != "\n".join(packages):
        print(f"installing {', '.join(packages)} ...", file=sys.stderr)
        run([sys.executable, "-m", "venv", "--clear", str(home)])
        run([str(python), "-m", "pip", "install", "--quiet", *packages], seconds=INSTALLING)
        done.write_text("\n".join(packages))
    return python


def check(client: str, folder: Path, about: Path) -> list[dict[str, str]]:
    """Every case of one client: rows of the table."""
    try:
        python = environment(client, folder, PACKAGES[client])
        asking = str(Path(__file__).with_name("asking.py"))
        command = [str(python), asking, client, str(about)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=surroundings(python))
        if done.returncode:
            raise Failure(done.stderr.strip()[-2000:])
        found = json.loads(done.stdout.splitlines()[-1])
    except Failure as error:
        return [{"client": client, "version": "-", "case": "-", "outcome": f"failed: {error}"}]
    return [
        {"client": client, "version": found["version"], "case": case, "outcome": outcome}
        for case, outcome in found["cases"].items()
    ]


def asked(clients: Sequence[str], folder: Path) -> list[dict[str, str]]:
    """Serve, and let each client ask."""
    with contextlib.ExitStack() as stack:
        copied = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ectype-clients-")))
        about = copies(copied)
        cert, key = certificate(copied)
        numbers, people = (
            stack.enter_context(served(str(copied / name), "--grpc-port", "0")) for name in ("numbers", "people")
        )
        tls = ["--tls-cert", str(cert), "--tls-key", str(key), "--auth-env", "SERVED_TOKEN"]
        secret = stack.enter_context(served(str(copied / "numbers"), *tls))
        of = {
            key: {"http": f"http://{HOST}:{found['port']}", "grpc": f"grpc://{HOST}:{found['grpc_port']}"}
            for key, found in (("array", numbers), ("frame", people))
        }
        more = {"of": of, "http_frame": of["frame"]["http"], "https": f"https://{HOST}:{secret['port']}"}
        path = copied / "about.json"
        path.write_text(json.dumps({**about, **more, "certificate": str(cert), "token": TOKEN}))
        return [row for client in clients for row in check(client, folder, path)]


def table(rows: Sequence[dict[str, str]]) -> str:
    """The rows as lines of text."""
    names = ("client", "version", "case", "outcome")
    lines = [names, *([row[name] for name in names] for row in rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]) for line in lines
    )


def main() -> int:
    """Check the clients that are named, or all; 0 only if everything holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(PACKAGES)}; all, if none is named")
    parser.add_argument("--folder", type=Path, help="keep the virtual environments here, and use those that are here")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    options = parser.parse_args()
    unknown = [name for name in options.clients if name not in PACKAGES]
    if unknown:
        parser.error(f"clients among {', '.join(PACKAGES)} were expected, found {', '.join(unknown)}")
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ectype-compat-")))
        rows = asked(list(dict.fromkeys(options.clients or PACKAGES)), folder.resolve())
    print(json.dumps(rows) if options.json else table(rows))
    return 0 if all(row["outcome"] == "ok" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
