"""What a training step and an answer cost, in our engine and in others, side by side in one run.

Steps: the paper's network 64-32-10 with batches of 32 and 2, 30 and 166 inputs, then larger batches and networks;
beside the program that JAX compiles for the same loop (jax_loop.py), scikit-learn, PyTorch and Keras (rivals.py), and
beside sgemm, what this core reaches in NumPy's product of two matrices. GFLOP/s counts the matrix products of a step,
forward and backward.
Answers: one row of 30 columns through a copy (an array, all checks included), through the engine alone, and through
onnxruntime with the exported file; and 100,000 rows through the engine and through onnxruntime, with the network alone.

Everyone has one thread, on one core, and is charged its seconds of work. All take turns, round by round: a figure is
the median of its rounds, a ratio the median of the ratios within rounds.

    python benchmarks/engine.py [--json] [--quick] [--rounds 7] [--peers jax sklearn torch keras]

Peers are optional, and skipped where they are not installed: pip install 'ectype[bench]'.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

# Libraries size their thread pools when they load, so none may load before the process is pinned.
from rivals import N_C, PEERS, Run, Shape, ours

OURS, LIMIT, ONNX = "ectype", "sgemm", "onnxruntime"
SHAPES = (
    *(Shape(d) for d in (2, 30, 166)),
    Shape(30, batch=128),
    Shape(30, (256, 256), 256, steps=20),
    Shape(30, (512, 512), 256, steps=20),
)
QUICK = SHAPES[:3]
SGEMM = 1024
TURN = 0.25  # seconds of work, of which a call should be a small part; an epoch may take longer
WIDTHS = (2, 30, 166)
ROWS = 100_000

say = partial(print, file=sys.stderr, flush=True)
Turns = dict[Any, Callable[[], float]]
"""Microseconds of work for a step, a product or a call, by what it is."""


def work(run: Callable[[], object]) -> float:
    """Seconds of work, which other processes on the same core do not add to."""
    start = time.process_time()
    run()
    return time.process_time() - start


def turn(run: Run, seconds: float, each: int = 1) -> Callable[[], float]:
    """A turn of about so many seconds, after a warm-up; a unit of it has `each` steps or calls."""
    run(1)
    units = max(1, min(round(seconds / max(work(lambda: run(1)), 1e-6)), 1_000_000))
    return lambda: 1e6 * work(lambda: run(units)) / (units * each)


def many(call: Callable[[], object]) -> Run:
    def run(times: int) -> None:
        for _ in range(times):
            call()

    return run


def take_turns(groups: list[Turns], rounds: int) -> dict[Any, list[float]]:
    """Every turn in every round; what is compared follows each other."""
    found: dict[Any, list[float]] = {key: [] for turns in groups for key in turns}
    for i in range(rounds):
        say(f"round {i + 1} of {rounds}")
        for turns in groups:
            for key, one in turns.items():
                found[key].append(one())
    return found


def ratio(found: dict[Any, list[float]], key: Any, to: Any) -> float:
    return median(a / b for a, b in zip(found[key], found[to], strict=True))


# --- steps ------------------------------------------------------------------------------------------------------------


def of_steps(shape: Shape, peers: list[str], seconds: float) -> Turns:
    """Every installed engine, built and warmed up, and sgemm."""
    import numpy as np

    a, b = np.random.default_rng(0).normal(size=(2, SGEMM, SGEMM)).astype(np.float32)
    turns: Turns = {(shape, LIMIT): turn(many(lambda: a @ b), seconds)}
    for name in (OURS, *peers):
        try:
            run = ours(shape) if name == OURS else PEERS[name][0](shape)
        except ModuleNotFoundError:
            continue
        say(f"d = {shape.d}, {shape.hidden}, batches of {shape.batch}: warming up {name}")
        turns[shape, name] = turn(run, seconds, shape.steps)
    return turns


def steps_of(found: dict[Any, list[float]], shape: Shape, name: str) -> dict[str, Any]:
    """A row of the table of steps."""
    about = {"d": shape.d, "hidden": list(shape.hidden), "batch": shape.batch, "engine": name}
    key, limit = (shape, name), (shape, LIMIT)
    if key not in found:
        return {**about, "us": None, "note": f"not installed: pip install {PEERS[name][1]}"}
    us, unit = median(found[key]), shape.flops / (2 * SGEMM**3)
    return {
        **about,
        "us": round(us, 2),
        "gflops": round(shape.flops / us / 1e3, 3),
        "of_sgemm": round(ratio(found, limit, key) * unit, 4),
        "times_ours": round(ratio(found, key, (shape, OURS)), 3),
    }


# --- answers ----------------------------------------------------------------------------------------------------------


def session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def one_row(seconds: float) -> Turns:
    """A row through a copy, through the engine under it, and through the file it is exported to."""
    import numpy as np

    import ectype as ec
    from ectype.export._onnx import feeds

    d = 30
    made = ec.copy_classifier(lambda X: X.sum(axis=1) > 0, ec.Space.normal(d), preset="fast", budget=500, seed=0)
    row = np.random.default_rng(0).normal(size=(1, d))
    with TemporaryDirectory() as folder:
        ec.export(made.copy, Path(folder) / "copy.onnx")
        onnx = session((Path(folder) / "copy.onnx").read_bytes())
    encoded, fed = made.copy.encode(row), feeds(made.copy.space, row)
    calls = {
        "copy.predict_proba": lambda: made.copy.predict_proba(row),
        "engine": lambda: made.copy.model.probabilities(encoded),
        ONNX: lambda: onnx.run(None, fed),
    }
    return {("row", name): turn(many(call), seconds) for name, call in calls.items()}


def bulk(d: int, rows: int, seconds: float) -> Turns:
    """Many rows, by the network alone."""
    import numpy as np

    from ectype._kernel import NetworkInference

    shape = Shape(d)
    X = np.random.default_rng(0).normal(size=(rows, d)).astype(np.float32)
    answers, onnx = NetworkInference(shape.widths, shape.theta()), session(plain_graph(shape))
    if not np.allclose(answers(X), onnx.run(None, {"x": X})[0], atol=1e-5):
        raise AssertionError("both should answer alike")
    calls = {OURS: lambda: answers(X), ONNX: lambda: onnx.run(None, {"x": X})}
    return {("bulk", d, name): turn(many(call), seconds) for name, call in calls.items()}


def plain_graph(shape: Shape) -> bytes:
    """The network as an ONNX model, from floats to probabilities."""
    from onnx import TensorProto

    from ectype.algorithm.mlp import MLP
    from ectype.export._onnx_graph import OnnxGraph

    graph, value = OnnxGraph({"x": (TensorProto.FLOAT, shape.d)}), "x"
    *hidden, (weights, biases) = MLP(shape.d, shape.hidden, N_C).layers(shape.theta())
    for w, b in hidden:
        value = graph("Relu", graph("Gemm", value, w, b))
    value = graph("Softmax", graph("Gemm", value, weights, biases), axis=1)
    model: bytes = graph.model([("p", value, TensorProto.FLOAT, ["rows", N_C])], {}).SerializeToString()
    return model


def answers_of(found: dict[Any, list[float]], rows: int) -> dict[str, list[dict[str, Any]]]:
    """Microseconds for one row, and rows a second for many."""
    single = [
        {"through": key[1], "us": round(median(us), 2), "times_onnxruntime": round(ratio(found, ("row", ONNX), key), 2)}
        for key, us in found.items()
        if key[0] == "row"
    ]
    bulks = [
        {
            "d": d,
            "rows_per_s": round(1e6 * rows / median(found["bulk", d, OURS])),
            "onnxruntime_rows_per_s": round(1e6 * rows / median(found["bulk", d, ONNX])),
            "times_onnxruntime": round(ratio(found, ("bulk", d, ONNX), ("bulk", d, OURS)), 2),
        }
        for d in WIDTHS
    ]
    return {"row": single, "bulk": bulks}


# --- all of it --------------------------------------------------------------------------------------------------------


def measure(peers: list[str], rounds: int, quick: bool) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    seconds, rows, shapes = (TURN / 10, ROWS // 10, QUICK) if quick else (TURN, ROWS, SHAPES)
    with threadpool_limits(1):
        groups = [of_steps(shape, peers, seconds) for shape in shapes]
        groups += [one_row(seconds), *(bulk(d, rows, seconds) for d in WIDTHS)]
        found = take_turns(groups, rounds)
    products = [us for key, all_ in found.items() if key[1] == LIMIT for us in all_]
    return {
        "steps": [steps_of(found, shape, name) for shape in shapes for name in (OURS, *peers)],
        **answers_of(found, rows),
        "sgemm_gflops": round(2 * SGEMM**3 / median(products) / 1e3, 2),
    }


def table(result: dict[str, Any]) -> str:
    heads = f"{'ec/step':>9}  {'GFLOP/s':>8}  {'of sgemm':>8}  {'times ours':>10}"
    lines = [f"{'d':>4}  {'layers':<8}  {'batch':>5}  {'engine':<10}  {heads}"]
    for row in result["steps"]:
        layers = "-".join(map(str, row["hidden"]))
        head = f"{row['d']:>4}  {layers:<8}  {row['batch']:>5}  {row['engine']:<10}  "
        if row["us"] is None:
            lines.append(head + row["note"])
            continue
        numbers = f"{row['ec']:>9.1f}  {row['gflops']:>8.2f}  {row['of_sgemm']:>8.1%}  {row['times_ours']:>10.1f}"
        lines.append(head + numbers)
    lines += [f"sgemm on one core: {result['sgemm_gflops']:.1f} GFLOP/s", ""]
    lines += [f"{'one row through':<20}{'ec':>8}  onnxruntime takes"]
    lines += [f"{row['through']:<20}{row['ec']:>8.1f}{row['times_onnxruntime']:>11.2f} times" for row in result["row"]]
    lines += ["", f"{'d':>4}  {'rows/s':>12}  {'onnxruntime':>12}  {'times':>6}"]
    for row in result["bulk"]:
        speeds = f"{row['rows_per_s']:>12,}  {row['onnxruntime_rows_per_s']:>12,}"
        lines.append(f"{row['d']:>4}  {speeds}  {row['times_onnxruntime']:>6.2f}")
    return "\n".join(lines)


def pin() -> None:
    """Keep to one core, where moving would disturb some engines more than others: to the one others use least."""

    def free(core: int) -> float:
        os.sched_setaffinity(0, {core})
        cpu, end = time.process_time(), time.perf_counter() + 0.1
        while time.perf_counter() < end:
            pass
        return time.process_time() - cpu

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(sorted(os.sched_getaffinity(0)), key=free)})


@contextmanager
def quiet() -> Iterator[None]:
    """Send what anything writes to stdout, libraries in C included, to stderr."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure training steps and answers, in our engine and in others.")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    parser.add_argument("--quick", action="store_true", help="a rough figure: fewer networks, shorter turns")
    parser.add_argument("--rounds", type=int, help="turns of every engine (default 7, quick 3)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="whose steps to measure")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    pin()
    os.environ["NPROC"] = "1"  # limits the threads of JAX where a process cannot be pinned
    with quiet():
        result = measure(options.peers, options.rounds or (3 if options.quick else 7), options.quick)
    print(json.dumps(result) if options.json else table(result))


if __name__ == "__main__":
    main()
