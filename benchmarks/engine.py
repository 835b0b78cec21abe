"""What one training step costs, in our engine and in three others, side by side in one run.

The step is the paper's: layers 64-32-10 with ReLU, softmax over two classes, batches of 32, Adam at 5e-4, the mean of
rho^2 as loss; for 2, 30 and 166 inputs. Ours includes the memory term and the risk before and after the round.
scikit-learn has no squared loss for classifiers: it takes its log loss, over the single output it has for two classes.
Every engine gets one thread, on one core. Engines take turns, round by round, and a figure is the median of its rounds.
GFLOP/s counts the matrix products of a step, forward and backward; the limit is what one core reaches in sgemm.

    python benchmarks/engine.py [--json] [--quick] [--rounds 7] [--engines understudy,sklearn,torch,keras]

The others are optional: pip install 'understudy[bench]'.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # libraries size their thread pools when they load, so none may load before the process is pinned
    import numpy as np

WIDTHS = (2, 30, 166)
HIDDEN = (64, 32, 10)
N_C = 2
BATCH = 32
RATE = 5e-4
POINTS = 3200  # full batches only, and about as many points as the paper's sample sets
SGEMM = 1024

Run = Callable[[], object]
Times = dict[tuple[int, str], list[float]]


class Engine(NamedTuple):
    build: Callable[[np.ndarray, np.ndarray, int], Run]
    epochs: int  # per measurement: the faster the engine, the more it takes to rise above the clock and the call
    package: str


def understudy(X: np.ndarray, y: np.ndarray, epochs: int) -> Run:
    import numpy as np

    from understudy.hypothesis.mlp import MLP
    from understudy.samples import Samples
    from understudy.training import Trainer, plain

    network = MLP(X.shape[1], HIDDEN, N_C)
    theta = network.initial(np.random.default_rng(0))
    train = Trainer(network, plain(epochs), batch=BATCH, rate=RATE)
    return lambda: train(theta, Samples(X, y), 0.1, 1)


def sklearn(X: np.ndarray, y: np.ndarray, epochs: int) -> Run:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    # Patience as long as the training: it always runs all its epochs, then warns that it did.
    length = {"max_iter": epochs, "n_iter_no_change": epochs, "tol": 0.0}
    model = MLPClassifier(HIDDEN, alpha=0.0, batch_size=BATCH, learning_rate_init=RATE, random_state=0, **length)

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)

    return run


def torch(X: np.ndarray, y: np.ndarray, epochs: int) -> Run:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    layers: list[Any] = [nn.Linear(X.shape[1], HIDDEN[0])]
    for a, b in zip(HIDDEN, (*HIDDEN[1:], N_C), strict=True):
        layers += [nn.ReLU(), nn.Linear(a, b)]
    model = nn.Sequential(*layers, nn.Softmax(dim=1))
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    loss = nn.MSELoss()
    inputs, targets = torch.from_numpy(X), torch.from_numpy(one_hot(y))

    def run() -> None:
        for _ in range(steps(epochs)):
            rows = torch.randint(POINTS, (BATCH,))
            adam.zero_grad()
            loss(model(inputs[rows]), targets[rows]).backward()
            adam.step()

    return run


def keras(X: np.ndarray, y: np.ndarray, epochs: int) -> Run:
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    threading = import_module("tensorflow").config.threading
    if threading.get_intra_op_parallelism_threads() != 1:  # fixed once the first model is built
        threading.set_intra_op_parallelism_threads(1)
        threading.set_inter_op_parallelism_threads(1)
    import keras

    dense = [keras.layers.Dense(width, activation="relu") for width in HIDDEN]
    out = keras.layers.Dense(N_C, activation="softmax")
    model = keras.Sequential([keras.Input((X.shape[1],)), *dense, out])
    model.compile(keras.optimizers.Adam(RATE), loss="mse")
    targets = one_hot(y)
    return lambda: model.fit(X, targets, batch_size=BATCH, epochs=epochs, verbose=0)


ENGINES = {
    "understudy": Engine(understudy, 60, "understudy"),
    "sklearn": Engine(sklearn, 6, "scikit-learn"),
    "torch": Engine(torch, 6, "torch"),
    "keras": Engine(keras, 6, "keras tensorflow-cpu"),
}


def problem(d: int) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    rng = np.random.default_rng(d)
    X = rng.normal(size=(POINTS, d)).astype(np.float32)
    return X, (X.sum(axis=1) > 0).astype(np.int32)


def one_hot(y: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.eye(N_C, dtype=np.float32)[y]


def steps(epochs: int) -> int:
    return epochs * -(-POINTS // BATCH)


def flops(d: int) -> int:
    """Forward and backward, two operations per product; the first layer needs no gradient of its input."""
    others = sum(a * b for a, b in zip(HIDDEN, (*HIDDEN[1:], N_C), strict=True))
    return 2 * BATCH * (2 * d * HIDDEN[0] + 3 * others)


def seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def sgemm() -> Run:
    import numpy as np

    a, b = np.random.default_rng(0).normal(size=(2, SGEMM, SGEMM)).astype(np.float32)
    return lambda: a @ b


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def isolate(cache: str) -> None:
    """One core and an empty compilation cache, for whatever is imported from here on."""
    if hasattr(os, "sched_setaffinity"):  # one core for all: moves between cores would disturb each engine differently
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["NPROC"] = "1"  # where there is no affinity, this is what limits the threads of JAX
    os.environ["JAX_COMPILATION_CACHE_DIR"] = cache


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


def prepare(engines: list[str], shrink: int) -> tuple[dict[tuple[int, str], tuple[Run, int]], float | None]:
    """Every installed engine, built and warmed up for every width; and what our first compilation took."""
    runs, compile_s = {}, None
    for name in engines:
        engine = ENGINES[name]
        epochs = max(1, engine.epochs // shrink)
        for d in WIDTHS:
            try:
                run = engine.build(*problem(d), epochs)
            except ModuleNotFoundError:
                say(f"{name} is not installed")
                break
            if name == "understudy":
                import_module("jax").devices()  # starting JAX is not compiling
            first = seconds(run)
            say(f"warmed up {name}, d = {d}")
            if name == "understudy" and compile_s is None:
                compile_s = first - seconds(run)
            runs[d, name] = run, steps(epochs)
    return runs, compile_s


def take_turns(runs: dict[tuple[int, str], tuple[Run, int]], rounds: int) -> tuple[Times, float]:
    """Microseconds per step of every engine in every round, and the best rate of sgemm among them."""
    from threadpoolctl import threadpool_limits

    times: Times = {key: [] for key in runs}
    product, fastest = sgemm(), float("inf")
    with threadpool_limits(1):
        for i in range(rounds):
            say(f"round {i + 1} of {rounds}")
            fastest = min(fastest, *(seconds(product) for _ in range(5)))
            for d, name in sorted(runs, key=lambda key: key[0]):
                run, count = runs[d, name]
                times[d, name].append(1e6 * seconds(run) / count)
    return times, 2e-9 * SGEMM**3 / fastest


def measure(engines: list[str], rounds: int, shrink: int) -> dict[str, Any]:
    runs, compile_s = prepare(engines, shrink)
    times, rate = take_turns(runs, rounds)
    return {
        "steps": [row(d, name, times.get((d, name))) for d in WIDTHS for name in engines],
        "compile_s": None if compile_s is None else round(compile_s, 3),
        "sgemm_gflops": round(rate, 2),
    }


def row(d: int, name: str, times: list[float] | None) -> dict[str, Any]:
    if times is None:
        note = f"not installed: pip install {ENGINES[name].package}"
        return {"d": d, "engine": name, "us": None, "gflops": None, "note": note}
    us = median(times)
    return {"d": d, "engine": name, "us": round(us, 2), "gflops": round(flops(d) / us / 1e3, 4)}


def table(result: dict[str, Any]) -> str:
    ours = {row["d"]: row["us"] for row in result["steps"] if row["engine"] == "understudy"}
    lines = [f"{'d':>4}  {'engine':<10}  {'us/step':>9}  {'GFLOP/s':>8}  {'of sgemm':>8}  {'times ours':>10}"]
    for row in result["steps"]:
        head = f"{row['d']:>4}  {row['engine']:<10}  "
        if row["us"] is None:
            lines.append(head + row["note"])
            continue
        share = row["gflops"] / result["sgemm_gflops"]
        times = f"{row['us'] / ours[row['d']]:.1f}" if ours else "-"
        lines.append(head + f"{row['us']:>9.1f}  {row['gflops']:>8.2f}  {share:>8.1%}  {times:>10}")
    if ours:
        lines.append(f"\nour first compilation   {result['compile_s']:.2f} s")
    return "\n".join([*lines, f"sgemm, one core   {result['sgemm_gflops']:.1f} GFLOP/s"])


def chosen(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no engine {unknown[0]!r}: choose from {', '.join(ENGINES)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one training step in our engine and in others.")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    parser.add_argument("--quick", action="store_true", help="a rough figure: fewer steps, 3 rounds unless given")
    parser.add_argument("--rounds", type=int, help="turns of every engine (default 7)")
    parser.add_argument("--engines", type=chosen, default=list(ENGINES), help="some of " + ",".join(ENGINES))
    options = parser.parse_args()
    rounds = options.rounds or (3 if options.quick else 7)
    with tempfile.TemporaryDirectory() as cache, quiet():
        isolate(cache)
        result = measure(options.engines, rounds, 6 if options.quick else 1)
    print(json.dumps(result) if options.json else table(result))


if __name__ == "__main__":
    main()
