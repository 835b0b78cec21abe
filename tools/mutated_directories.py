"""Mutate a finished run's directory cleverly, with checksums that fit, and read it by every command that reads one.

`tools/damage.py` flips bits, which checksums find. Here somebody computed them anew: JSON of other types, numbers that
are infinite or none, huge or negative, values nested deep, keys twice, labels twice or of any length, weights and nodes
of trees, rows and SQL of the ledger, members of archives; pipes, endless devices, folders and sparse files in place of
files. Each trial runs in a process of its own, with limits on its memory, its time and its processor's.

Each command may answer as before, answer otherwise, in numbers that are finite (whoever writes a copy decides what it
answers), or refuse with an error of ours. What is bad is an exception of another kind (exit code 70), a hang, a process
that dies or takes too much memory, and an answer that is infinite or none.

    python tools/mutated_directories.py
    python tools/mutated_directories.py --trials 200 --seed 1
    python tools/mutated_directories.py --only 17       # one trial again, with all that it says
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import math
import os
import re
import resource
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ectype as ec
from ectype._common import manifest
from ectype.cli import main as command
from ectype.errors import EctypeError
from ectype.ledger import LEDGER
from ectype.ledger import _hash_chain as hash_chain
from ectype.serve._inference import InferenceModel

CLASSES = ["high", "low", "middle"]
SETTINGS: dict[str, Any] = {"budget": 90, "batch": 30, "certificate_n": 60, "preset": "fast", "seed": 3}
# What is copied: every kind of copy, with as little in it as goes.
KINDS: dict[str, dict[str, Any]] = {
    "network": {"to": "mlp", "layers": (6,)},
    "blend": {"to": "blend", "max_bytes": 150_000},
    "tree": {"to": "tree", "max_leaves": 8},
    "forest": {"to": "forest", "max_bytes": 40_000},
    "boosting": {"to": "boosting", "max_bytes": 20_000},
    "linear": {"to": "linear"},
    # scikit-learn's: the first three become copies of our own kinds, the others stay in an archive of skops.
    "skops forest": {"to": RandomForestClassifier(3, max_leaf_nodes=6, random_state=0)},
    "skops boosting": {"to": HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, random_state=0)},
    "skops linear": {"to": LogisticRegression()},
    "skops neighbours": {"to": KNeighborsClassifier(3)},
    "skops pipeline": {"to": make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0))},
}
# Of a trial: beyond what the parent has, in bytes; in seconds of processor and of the clock; the largest sparse file.
MEMORY, PROCESSOR, CLOCK, SPARSE = 3 * 2**29, 40, 120, 2**40
HUGE = "@@HUGE@@"
# What stands in JSON once it is written: numbers and values that Python would not write.
RAW = {
    f"{HUGE}nan": "NaN",
    f"{HUGE}inf": "-Infinity",
    f"{HUGE}1e999": "1e999",
    f"{HUGE}digits": "9" * 5000,
    f"{HUGE}deep": "[" * 100_000 + "]" * 100_000,
    f"{HUGE}objects": '{"a":' * 900 + "1" + "}" * 900,
    f"{HUGE}half": '"\\ud800"',
    f"{HUGE}twice": '{"a": 1, "a": 2}',
    f"{HUGE}many": "[" + "0," * 5_000_000 + "0]",
}
Rng = np.random.Generator


def rings(rows: pd.DataFrame) -> np.ndarray:
    """What is copied."""
    far = (rows["x"] ** 2 + rows["y"] ** 2).to_numpy() + (rows["city"] == "Bonn").to_numpy()
    return np.array(["low", "middle", "high"])[np.digitize(far, [1, 3])]


def space() -> ec.Space:
    """Its inputs."""
    rng = np.random.default_rng(0)
    named = {"x": rng.normal(size=300), "y": rng.normal(size=300), "city": rng.choice(["Bonn", "Nice", "Pisa"], 300)}
    return ec.Space.from_data(pd.DataFrame(named))


def made(folder: Path) -> dict[str, Path]:
    """A finished run of every kind."""
    inputs, found = space(), {}
    for kind, settings in KINDS.items():
        found[kind] = folder / kind.replace(" ", "-")
        original = ec.Original(rings, CLASSES, name="rings")
        ec.copy_classifier(original, inputs, out=found[kind], progress=False, **{**SETTINGS, **settings})
    return found


# --- what reads a directory -------------------------------------------------------------------------------------------


def said(*arguments: object) -> str:
    """What a command of ours prints; a failure of it is an error."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            command([str(argument) for argument in arguments])
        except SystemExit as ended:
            if ended.code == 70:
                raise RuntimeError(errors.getvalue()) from None
            if ended.code:
                raise EctypeError("command", "to go on", errors.getvalue()) from None
    return out.getvalue()


def finite(document: str) -> str:
    """A JSON document, if all of its numbers are finite."""

    def refuse(constant: str) -> None:
        raise FloatingPointError(constant)

    json.loads(document, parse_constant=refuse)
    return document


def predict(run: Path) -> str:
    """Load the copy, and ask it."""
    result, rows = ec.load(run), frame()
    found = result.copy.predict_proba(rows)
    if not np.isfinite(found).all():
        raise FloatingPointError("probabilities")
    said = result.copy.predict(rows).tolist(), result.copy.outside(rows).tolist()
    return (
        f"{found.tobytes().hex()} {said} {result} {result.history} {result.eff} {finite(json.dumps(result.summary()))}"
    )


def serve(run: Path) -> str:
    """The answer of a server."""
    model = InferenceModel(ec.load(run).copy, "copy", "1", 1000)
    rows = frame()
    inputs = [
        {"name": "x", "datatype": "FP64", "shape": [len(rows), 1], "data": rows["x"].tolist()},
        {"name": "y", "datatype": "FP64", "shape": [len(rows), 1], "data": rows["y"].tolist()},
        {"name": "city", "datatype": "BYTES", "shape": [len(rows), 1], "data": rows["city"].tolist()},
    ]
    asked = {"inputs": inputs, "outputs": [{"name": "predict"}, {"name": "predict_proba"}]}
    json.dumps(model.metadata(), allow_nan=False)
    try:
        return finite(model.answer(model.question(json.dumps(asked).encode())).body.decode())
    except Exception as refusal:
        if type(refusal).__name__ != "Refusal":
            raise
        raise EctypeError("request", "an answer", refusal) from refusal


def certify(run: Path) -> str:
    """The copy beside its original, on fresh rows and on the answers of the run."""
    result = ec.load(run)
    return str(ec.certify(result.copy, ec.Original(rings, CLASSES, name="rings"), result.space, n=40))


def certify_answers(run: Path) -> str:
    """The copy beside answers that are there: of this run, which all taught it, and of a table."""
    table = run.parent / "answers.csv"
    frame().assign(label=rings(frame())).to_csv(table, index=False)
    return finite(said("certify", run, "--answers", run, "--answers", table, "--json"))


def remake_more(run: Path) -> str:
    """Another copy, from the answers of this run and of it again as one of others."""
    return finite(said("remake", run, "--out", run.parent / "more", "--to", "tree", "--answers", run, "--json"))


def go_on(run: Path) -> str:
    """The same command with more to ask."""
    original = ec.Original(rings, CLASSES, name="rings")
    kind = (run.parent / "kind").read_text()
    more = {**SETTINGS, **KINDS[kind], "budget": 120}
    return str(ec.copy_classifier(original, space(), out=run, progress=False, **more).queries)


READERS: dict[str, Callable[[Path], str]] = {
    "load and predict": predict,
    "serve": serve,
    "ledger": lambda run: finite(said("ledger", run, "--json")),
    "ledger verify": lambda run: said("ledger", "verify", run),
    "ledger --export": lambda run: said("ledger", run, "--export", run.parent / "queries.csv"),
    "ledger --salvage": lambda run: said("ledger", run, "--salvage", run.parent / "salvaged"),
    "card": lambda run: said("card", run, "--out", run.parent / "card.md"),
    "certify": certify,
    "certify --answers": certify_answers,
    "report": lambda run: said("report", run, "--out", run.parent / "report.html"),
    "remake": lambda run: finite(said("remake", run, "--out", run.parent / "new", "--to", "linear", "--json")),
    "remake --take": lambda run: said("remake", run, "--out", run.parent / "taken", "--take", 1),
    "go on": go_on,
    "export onnx": lambda run: said("export", run, run.parent / "copy.onnx"),
    "export c": lambda run: said("export", run, run.parent / "copy.c"),
    "export sql": lambda run: said("export", run, run.parent / "copy.sql"),
    "compact": lambda run: said("ledger", "compact", run),
}
# Those that take long, of which a trial runs one; those before run in every trial.
LONG = ["certify", "certify --answers", "report", "remake", "remake --take", "go on", "export onnx", "export c",
        "export sql", "compact"]  # fmt: skip


def frame() -> pd.DataFrame:
    """Rows to ask about."""
    return pd.DataFrame({"x": np.linspace(-3, 3, 40), "y": np.linspace(2, -2, 40), "city": ["Bonn", "Pisa"] * 20})


# --- mutations --------------------------------------------------------------------------------------------------------


def pick(rng: Rng, among: Any) -> Any:
    """One of several."""
    listed = list(among)
    return listed[int(rng.integers(len(listed)))]


def nasty(rng: Rng, value: object) -> object:
    """What may stand in place of a JSON value."""
    swaps: list[object] = [
        None, True, False, 0, -1, 1, 7, 2**31, -(2**63) - 1, 2**64, 10**300, 0.5, -0.0, 1e308, -1e308, 5e-324, "", "x",
        "x" * 10**6, "\x1b[31m", "a\0b", "nan", "<U200000000", "../../etc/passwd", [], [[]], {}, [1, "a", None],
        {"a": {}}, *RAW,
    ]  # fmt: skip
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        swaps += [-value, value + 1, float(value) * 1e6 if abs(value) < 1e300 else 0, str(value), [value]] * 2
    if isinstance(value, str):
        swaps += [value * 2, value[:-1], value + "\u202e", [value], {value: value}] * 2
    if isinstance(value, list):
        swaps += [value * 2, value[::-1], value[1:], [*value, None], value * 1000, {"0": value}] * 3
    if isinstance(value, dict):
        swaps += [dict(list(value.items())[1:]), {**value, "more": 1}, list(value.values()), list(value)] * 3
    return pick(rng, swaps)


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with every key of it."""
    waiting = [document]
    while waiting:
        part = waiting.pop()
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, value in list(items):
            yield part, key
            waiting.append(value)


def mutate_json(rng: Rng, text: str) -> tuple[str, str]:
    """A document with another value somewhere, and what was done."""
    document = json.loads(text)
    inside, key = pick(rng, places({"": document}))
    holder = {"": document} if isinstance(inside, dict) and "" in inside else None
    inside = holder or inside
    value = nasty(rng, inside[key])
    if rng.random() < 0.1 and isinstance(inside, dict) and key != "":
        value, before = None, inside.pop(key)
        done = f"without {key!r} (was {shown(before)})"
    else:
        done = f"{key!r}: {shown(inside[key])} -> {shown(value)}"
        inside[key] = value
    written = json.dumps(holder[""] if holder else document)
    for name, raw in RAW.items():
        written = written.replace(json.dumps(name), raw)
    return written, done


def shown(value: object) -> str:
    """A value in a few characters."""
    text = repr(value)
    return text if len(text) < 50 else f"{text[:40]}... of {len(text)} characters"


def in_json(name: str) -> Callable[[Rng, Path], str]:
    """Mutate a JSON file of a run."""

    def mutate(rng: Rng, run: Path) -> str:
        lines = (run / name).read_text().splitlines() if name.endswith("l") else [(run / name).read_text()]
        at = int(rng.integers(len(lines)))
        lines[at], done = mutate_json(rng, lines[at])
        (run / name).write_text("\n".join(lines) + "\n")
        return done

    return mutate


def in_classes(rng: Rng, run: Path) -> str:
    """Mutate the labels of the copy."""
    about = json.loads((run / "copy.json").read_text())
    values = about["classes"]["values"]
    changes: dict[str, tuple[str, Any]] = {
        "twice the same": (about["classes"]["type"], [values[0], *values[:-1]]),
        "of numbers": ("<f8", [0.0, 1.0, 2.0]),
        "of two types": (about["classes"]["type"], [1, "a", "b"]),
        "of texts of 200,000,000": ("<U200000000", values),
        "in another order": (about["classes"]["type"], values[::-1]),
        "cut off": ("<U1", values),
        "of objects": ("O", [{}, {}, {}]),
        "of dates": ("<M8[s]", [1, 2, 3]),
        "of records": ("f8,f8", values),
        "of long texts": ("<U100000", [f"{value}{'x' * 99990}" for value in values]),
        "too many": (about["classes"]["type"], [f"{at:07}" for at in range(100_000)]),
    }
    about["classes"]["type"], about["classes"]["values"] = changes[done := pick(rng, changes)]
    (run / "copy.json").write_text(json.dumps(about))
    return done


def in_weights(rng: Rng, run: Path) -> str:
    """Mutate an array of the copy."""
    file = run / "copy.safetensors"
    arrays = {name: array.copy() for name, array in load_arrays(file.read_bytes()).items()}
    name = pick(rng, arrays)
    array = arrays[name]
    if name.endswith("skops"):
        content, done = mutate_skops(rng, array.tobytes())
        arrays[name] = np.frombuffer(content, np.uint8)
        file.write_bytes(save_arrays(arrays))
        return done
    numbers = [np.nan, np.inf, -np.inf, 1e308, 3e38, -3e38, 1e-320, 0.0, -1.0]
    places = [-1, -2, 0, 1, len(array) - 1, len(array), 2**31 - 1, -(2**31)]
    value = pick(rng, numbers if array.dtype.kind == "f" else places)
    with np.errstate(all="ignore"):
        changes: dict[str, Callable[[], np.ndarray]] = {
            f"one {value}": lambda: changed(rng, array, np.array(value).astype(array.dtype)),
            f"all {value}": lambda: np.full_like(array, np.array(value).astype(array.dtype)),
            "another number": lambda: changed(rng, array, pick(rng, array.ravel()) if array.size else 0),
            "a step further": lambda: (array + 1).astype(array.dtype),
            "of float64": lambda: array.astype(np.float64),
            "of int64": lambda: np.nan_to_num(array).astype(np.int64),
            "of float16": lambda: array.astype(np.float16),
            "of booleans": lambda: array.astype(bool),
            "one shorter": lambda: array[:-1],
            "one longer": lambda: np.concatenate([array, array[-1:]]),
            "one dimension more": lambda: array[None],
            "flat": lambda: array.ravel(),
            "turned": lambda: np.ascontiguousarray(array.T),
            "empty": lambda: array[:0],
            "in reverse": lambda: np.ascontiguousarray(array[::-1]),
            "shuffled": lambda: rng.permutation(array.ravel()).reshape(array.shape),
            "a million times as large": lambda: (array * 1e6).astype(array.dtype),
        }
        done = pick(rng, [*changes, "gone", "twice", "renamed", "header", "chain"])
        if done in changes:
            arrays[name] = np.ascontiguousarray(changes[done]())
        elif done == "gone":
            del arrays[name]
        elif done == "twice":
            arrays[f"{name}.2"] = array
        elif done == "renamed":
            arrays[f"0.{name}"] = arrays.pop(name)
        elif done == "chain":
            arrays = as_chain(arrays)
    content = save_arrays(arrays)
    file.write_bytes(mutate_header(rng, content) if done == "header" else content)
    return f"{name} {done}"


def changed(rng: Rng, array: np.ndarray, value: object) -> np.ndarray:
    """The same with another value in one place."""
    found = array.copy()
    if found.size:
        found.ravel()[int(rng.integers(found.size))] = value
    return found


def as_chain(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Trees as one chain of 60,001 nodes with 20,000 roots."""
    if "roots" not in arrays:
        return arrays
    n, m = 60_001, 30_000
    feature = np.where(np.arange(n) < m, 0, -1).astype(np.int32)
    left = np.where(np.arange(n) < m, np.arange(n) + 1, 0).astype(np.int32)
    right = np.where(np.arange(n) < m, m + np.minimum(np.arange(n), m - 1) + 1, 0).astype(np.int32)
    values = np.full((n, arrays["values"].shape[1]), 0.5)
    more = {"feature": feature, "left": left, "right": right, "values": values, "threshold": np.ones(n, np.float32)}
    return {**arrays, **more, "roots": np.arange(20_000, dtype=np.int32), "outputs": np.zeros(20_000, np.int32)}


def mutate_header(rng: Rng, content: bytes) -> bytes:
    """A file of arrays whose header says something else."""
    (size,) = struct.unpack("<Q", content[:8])
    text, _ = mutate_json(rng, content[8 : 8 + size].decode())
    header = text.encode()[: 10**7]
    return struct.pack("<Q", pick(rng, [len(header), len(header), 2**63, 0])) + header + content[8 + size :]


def mutate_skops(rng: Rng, content: bytes) -> tuple[bytes, str]:
    """An archive of skops with another member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    name = pick(rng, parts)
    done = pick(rng, ["json", "zeros", "numbers", "dtype", "gone", "shape"])
    arrays = [part for part in parts if part.endswith(".npy")]
    if done == "json" or not arrays:
        name, done = "schema.json", "json"
        text, what = mutate_json(rng, parts[name].decode())
        parts[name], done = text.encode(), f"schema.json {what}"
    elif done == "zeros":
        parts[name] = bytes(2**30)
    elif done == "gone":
        del parts[name]
    else:
        name = pick(rng, arrays)
        array = np.load(io.BytesIO(parts[name]), allow_pickle=False)
        out = io.BytesIO()
        if done == "numbers" and array.dtype.names:
            field = pick(rng, array.dtype.names)
            array[field] = np.array(pick(rng, [np.nan, np.inf, 0, 1, 250])).astype(array.dtype[field])
            done = f"{field} {array[field][0]}"
        elif done == "numbers" and array.dtype.kind in "fiu":
            with np.errstate(all="ignore"):
                array = np.full_like(array, np.array(pick(rng, [np.nan, np.inf, -1.0, 1e308, 0])).astype(array.dtype))
        np.save(out, array, allow_pickle=False)
        content = out.getvalue()
        if done == "dtype":
            content = re.sub(rb"'descr': '[^']*'", b"'descr': '<U200000000'", content)
        elif done == "shape":
            content = re.sub(rb"'shape': \([^)]*\)", b"'shape': (99999999999,)", content)
        parts[name] = content
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, inner in parts.items():
            archive.writestr(part, inner)
    return out.getvalue(), f"skops {name} {done}"


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
OBJECTS = {
    "a view": ["CREATE VIEW more AS SELECT 1"],
    "a trigger": ["CREATE TRIGGER more AFTER INSERT ON labels BEGIN DELETE FROM answers; END"],
    "an index": ["CREATE INDEX more ON requests (n)"],
    "a table": ["CREATE TABLE more (x)"],
    "a column": ["ALTER TABLE labels ADD COLUMN more"],
    "a computed column": ["ALTER TABLE labels ADD COLUMN more AS (code + 1)"],
    "an endless view": ["DROP TABLE {0}", f"CREATE VIEW {{0}} AS {ENDLESS} i, i, i, i, i FROM n"],
    "an endless view of one": ["DROP TABLE {0}", f"CREATE VIEW {{0}} AS {ENDLESS} i AS {{1}} FROM n"],
    "without a table": ["DROP TABLE {0}"],
    "an empty table": ["DELETE FROM {0}"],
    "statistics": ["ANALYZE"],
}


def in_tables(rng: Rng, run: Path) -> str:
    """Mutate what SQL there is in the ledger."""
    done, table = pick(rng, OBJECTS), pick(rng, [*hash_chain.TABLES, "chain"])
    with contextlib.closing(sqlite3.connect(run / LEDGER)) as connection, connection:
        for statement in OBJECTS[done]:
            connection.execute(statement.format(table, hash_chain.TABLES.get(table, "batch")))
    return f"{done} ({table})"


def in_rows(rng: Rng, run: Path) -> str:
    """Mutate a value in a row of the ledger, and have its chain fit."""
    with contextlib.closing(sqlite3.connect(run / LEDGER)) as connection, connection:
        table = pick(rng, [name for name in hash_chain.TABLES if count(connection, name)])
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        column, key = pick(rng, columns), hash_chain.TABLES[table]
        at = pick(rng, [key for (key,) in connection.execute(f"SELECT {key} FROM {table}")])
        (value,) = connection.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (at,)).fetchone()
        new, done = mutate_value(rng, value)
        with contextlib.suppress(sqlite3.IntegrityError, OverflowError):
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (new, at))
        if rng.random() < 0.1:
            connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (at,))
            done = "gone"
        rechain(connection)
    return f"{table} {column} {str(at)[:20]}: {done}"


def count(connection: sqlite3.Connection, table: str) -> int:
    """The rows of a table."""
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def mutate_value(rng: Rng, value: Any) -> tuple[Any, str]:
    """Another value for a column."""
    if isinstance(value, bytes):
        size = max(1, len(value) // 8)
        changes: dict[str, Any] = {
            "NaN": np.full(size, np.nan).tobytes()[: len(value)],
            "infinite": np.full(size, np.inf).tobytes()[: len(value)],
            "float32 NaN": np.full(2 * size, np.nan, np.float32).tobytes()[: len(value)],
            "huge": np.full(size, 1e300).tobytes()[: len(value)],
            "ones": b"\xff" * len(value),
            "codes of 7": np.full(2 * size, 7, np.int32).tobytes()[: len(value)],
            "cut": value[:-3],
            "half": value[: len(value) // 2],
            "twice": value * 2,
            "empty": b"",
            "a text": "text",
            "a number": 7,
            "100 MB": bytes(10**8),
        }
        done = pick(rng, changes)
        return changes[done], done
    if isinstance(value, str) and rng.random() < 0.8:
        with contextlib.suppress(ValueError):
            return mutate_json(rng, value)
    new = pick(rng, [None, "", "x", "x" * 10**6, b"blob", -1, 0, 2**62, -(2**62), 1e308, -1.5, math.inf, "-7", 3])
    return new, f"{shown(value)} -> {shown(new)}"


def rechain(connection: sqlite3.Connection) -> None:
    """A chain of one batch that fits the rows."""
    entries = []
    for table, key in hash_chain.TABLES.items():
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY {key}"):
            entries.append((table, row[0], hash_chain.digest_of(row)))
    text = json.dumps(entries, separators=(",", ":"), default=str)
    connection.execute("DELETE FROM chain")
    connection.execute("INSERT INTO chain VALUES (1, ?, ?)", (text, hash_chain._link("", text)))


FILES = ["run.json", "copy.json", "copy.safetensors", "space.json", "history.jsonl", LEDGER]
BESIDE = [
    *FILES,
    f"{LEDGER}-wal",
    f"{LEDGER}-shm",
    f"{LEDGER}-head",
    f"{LEDGER}-journal",
    "frontier.csv",
]


def in_files(rng: Rng, run: Path) -> str:
    """Something else in place of a file."""
    name = pick(rng, BESIDE)
    file = run / name
    content = file.read_bytes() if file.is_file() else b"x"
    done = pick(
        rng, ["pipe", "endless", "device", "folder", "sparse", "empty", "gone", "loop", "socket", "link", "tail"]
    )
    if done in ("sparse", "tail"):
        file.write_bytes(content)
        os.truncate(file, SPARSE if done == "sparse" else len(content) + 10**6)
        return f"{name}: {done}"
    file.unlink(missing_ok=True)
    if done == "pipe":
        os.mkfifo(file)
    elif done in ("endless", "device"):
        file.symlink_to("/dev/zero" if done == "endless" else "/dev/tty")
    elif done == "folder":
        file.mkdir()
    elif done == "empty":
        file.write_bytes(b"")
    elif done == "loop":
        file.symlink_to(file)
    elif done == "socket":
        os.mknod(file, 0o140600)
    elif done == "link":
        (run.parent / "elsewhere").write_bytes(content)
        file.symlink_to(run.parent / "elsewhere")
    return f"{name}: {done}"


def in_frontier(rng: Rng, run: Path) -> str:
    """A frontier that was written by somebody else."""
    table = {
        "a family": "family,size\ntree,8 leaves\n",
        "no size": "family\ntree\n",
        "empty": "",
        "NUL": "\0,\0\n\0,\0\n",
        "wide": "family,size\n" + "a," * 10**6,
        "another": "family,size\n../x,1e999\n",
        "binary": "\udcff\udc80",
    }
    done = pick(rng, table)
    (run / "frontier.csv").write_bytes(table[done].encode(errors="surrogateescape"))
    return done


MUTATIONS: dict[str, Callable[[Rng, Path], str]] = {
    "run.json": in_json("run.json"),
    "copy.json": in_json("copy.json"),
    "labels of the copy": in_classes,
    "arrays of the copy": in_weights,
    "space.json": in_json("space.json"),
    "history.jsonl": in_json("history.jsonl"),
    "ledger: rows": in_rows,
    "ledger: tables": in_tables,
    "frontier.csv": in_frontier,
    "no regular file": in_files,
}
# How likely each is, in proportion.
OFTEN = [5, 2, 1, 5, 3, 1, 5, 2, 0.3, 3]


def sealed(run: Path, others: bool) -> None:
    """Compute all checksums anew, of run.json and of the others if they changed, as far as there is something left."""
    with contextlib.suppress(Exception):
        about = json.loads((run / "copy.json").read_text())
        about["sha256"] = hashlib.sha256((run / "copy.safetensors").read_bytes()).hexdigest()
        text = (run / "copy.json").read_text()
        (run / "copy.json").write_text(re.sub(r'"sha256": "[0-9a-f]{64}"', f'"sha256": "{about["sha256"]}"', text))
    try:
        content = json.loads((run / "run.json").read_text())
        for name in FILES[1:5] if others else ():
            content["files"][name] = manifest.file_entry(name, (run / name).read_bytes())
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(run / LEDGER)) as connection:
            content["ledger"] = vars(hash_chain.final_anchor(connection)) if others else content["ledger"]
        for part in (manifest.CHECKSUMS, manifest.SIGNATURE):
            content.pop(part, None)
        (run / "run.json").write_text(json.dumps(manifest.seal(content)))
    except Exception:
        return


# --- trials -----------------------------------------------------------------------------------------------------------


def mutated(rng: Rng, run: Path) -> tuple[str, str]:
    """Mutate a run; gives the kind of mutation, and what was done."""
    kind = str(rng.choice(list(MUTATIONS), p=np.array(OFTEN) / sum(OFTEN)))
    if kind == "no regular file":  # which no checksum can be computed of
        return kind, MUTATIONS[kind](rng, run)
    done = MUTATIONS[kind](rng, run)
    sealed(run, others=kind != "run.json")
    return kind, done


def copied(run: Path, work: Path) -> None:
    """A copy of a run to mutate, beside what kind it is."""
    shutil.copytree(run, work / "run")
    (work / "kind").write_text(run.name.replace("-", " "))


def outcome(read: Callable[[Path], str], run: Path) -> tuple[str, str]:
    """What comes of reading a directory, and what was said."""
    try:
        found = read(run)
    except EctypeError as error:
        return "refused", str(error)[:300]
    except FloatingPointError as error:
        return "NOT FINITE", str(error)
    except MemoryError:
        return "OUT OF MEMORY", traceback.format_exc()
    except BaseException:
        return "CRASHED", traceback.format_exc()
    return "answered", hashlib.sha256(found.encode(errors="replace")).hexdigest()


def trial(number: int, seed: int, run: Path, work: Path, whole: bool, write: Callable[[dict[str, str]], None]) -> None:
    """One trial, in a process of its own: what was done is written first, then what came of each command."""
    rng = np.random.default_rng([seed, number])
    copied(run, work)
    kind, done = mutated(rng, work / "run")
    write({"kind": kind, "done": done})
    limit()
    long = LONG if whole else [pick(rng, LONG)]
    for name in [name for name in READERS if name in long or name not in LONG]:
        write({"at": name})
        found, what = outcome(READERS[name], work / "run")
        write({"name": name, "found": found, "what": what})


def limit() -> None:
    """Limit the memory and the processor's time of this process."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR + 1))


def forked(work: Callable[[Callable[[dict[str, str]], None]], None]) -> tuple[list[dict[str, str]], int | None]:
    """Run something in a process that is forked from this one; gives what it wrote, and its status, None if it hung."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.close(reading)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            work(lambda line: (os.write(writing, json.dumps(line).encode() + b"\n"), None)[1])
            os._exit(0)
        except BaseException:
            os.write(writing, json.dumps({"tool": traceback.format_exc()}).encode() + b"\n")
            os._exit(99)
    os.close(writing)
    os.set_blocking(reading, False)
    ends, content, status = time.monotonic() + CLOCK, b"", None
    while status is None and time.monotonic() < ends:
        with contextlib.suppress(BlockingIOError):
            content += os.read(reading, 2**20)
        found, code = os.waitpid(child, os.WNOHANG)
        status = code if found else None
        time.sleep(0.002)
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with contextlib.suppress(BlockingIOError):
        while more := os.read(reading, 2**20):
            content += more
    os.close(reading)
    return [json.loads(line) for line in content.splitlines()], status


def results(lines: list[dict[str, str]], status: int | None) -> Iterator[tuple[str, str, str]]:
    """Of each command: its name, what came of it, and what was said; a process that ended early died of the last."""
    for line in lines:
        if "tool" in line:
            raise RuntimeError(line["tool"])
        if "name" in line:
            yield line["name"], line["found"], line["what"]
    if status != 0:
        at = next((line["at"] for line in reversed(lines) if "at" in line), "the mutation itself")
        how = "HUNG" if status is None or os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "DIED"
        yield at, how, f"status {status}"


def main() -> None:
    """Print what came of the mutations, by kind; exit code 1 if any of it was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), help="kinds of copies")
    parser.add_argument("--all", action="store_true", help="print what came of every trial")
    parser.add_argument("--only", type=int, help="one trial, by its number")
    options = parser.parse_args()
    for kind in set(KINDS) - set(options.kinds):
        del KINDS[kind]
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # trials wait for no disk
    counts, bad = Counter[tuple[str, str]](), 0
    with tempfile.TemporaryDirectory(dir=memory, prefix="mutated-") as name:
        folder = Path(name)
        runs = made(folder / "made")
        expected = {kind: _whole(run, folder) for kind, run in runs.items()}
        for number in [options.only] if options.only is not None else range(options.trials):
            kind = list(runs)[number % len(runs)]
            (work := folder / "work").mkdir()
            one = options.only is not None
            lines, status = forked(partial(trial, number, options.seed, runs[kind], work, one))
            about = next((line for line in lines if "kind" in line), {"kind": "?", "done": "?"})
            for reader, found, what in results(lines, status):
                same = found == "answered" and what == expected[kind].get(reader)
                found = "the same" if same else "another answer" if found == "answered" else found
                counts[about["kind"], found] += 1
                if found.isupper():
                    bad += 1
                    print(
                        f"{number} ({kind}) {about['kind']}: {about['done']}: {reader}: {found}: {_last(what)}",
                        flush=True,
                    )
                if options.all or one:
                    print(f"{number} ({kind}) {about['kind']}: {about['done']}: {reader}: {found}: {what}")
            shutil.rmtree(work)
    _print_table(counts)
    print(f"{options.trials if options.only is None else 1} directories, {sum(counts.values())} commands, {bad} bad")
    sys.exit(bool(bad))


def _whole(run: Path, folder: Path) -> dict[str, str]:
    """What every command answers of a run as it is; some that measure time never answer the same twice."""
    (work := folder / "work").mkdir()

    def read(write: Callable[[dict[str, str]], None]) -> None:
        copied(run, work)
        limit()
        for name, reader in READERS.items():
            found, what = outcome(reader, work / "run")
            write({"name": name, "found": found, "what": what})

    lines, status = forked(read)
    found = {name: what for name, _, what in results(lines, status)}
    for name, how, what in results(lines, status):
        if how != "answered" and name not in ("ledger --salvage", "remake --take"):
            print(f"{run.name}: {name}: {how}: {what}", flush=True)
    shutil.rmtree(work)
    return found


def _last(what: str) -> str:
    lines = [line.strip() for line in what.splitlines() if line.strip() and "this is a bug" not in line]
    return " | ".join(line for line in [*[part for part in lines if "ectype/" in part][-1:], *lines[-1:]])[:400]


def _print_table(counts: Counter[tuple[str, str]]) -> None:
    heads = ["the same", "another answer", "refused", *sorted({found for _, found in counts if found.isupper()})]
    print(f"{'':<20}" + "".join(f"{head:>16}" for head in heads))
    for kind in MUTATIONS:
        if any(there == kind for there, _ in counts):
            print(f"{kind:<20}" + "".join(f"{counts[kind, head]:>16}" for head in heads))


if __name__ == "__main__":
    main()
