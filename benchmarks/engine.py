"""What one training step costs, in our engine and in three others, side by side in one run.

The step is the paper's: layers 64-32-10 with ReLU, softmax over two classes, batches of 32, Adam at 5e-4, the mean of
rho^2 as loss; for 2, 30 and 166 inputs. Ours includes the memory term and the risk before and after the round.
scikit-learn has no squared loss for classifiers: it takes its log loss, over the single output it has for two classes.
PyTorch takes its default Adam, which is not its fused one.
Every engine gets one thread, on one core. Engines take turns, round by round, and a figure is the median of its rounds;
times are those of work, which others on the same machine do not make longer by making us wait.
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
from functools import partial
from importlib import import_module
from itertools import pairwise, product
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # libraries size their thread pools when they load, so none may load before the process is pinned
    import numpy as np

WIDTHS = (2, 30, 166)
HIDDEN = (64, 32, 10)
N_C = 2
BATCH = 32
RATE = 5e-4
STEPS = 100  # per epoch
POINTS = STEPS * BATCH  # about as many as in the paper's sample sets, and full batches only
SGEMM = 1024

say = partial(print, file=sys.stderr, flush=True)

Run = Callable[[], object]
Turn = Callable[..., float]


def understudy(X: np.ndarray, y: np.ndarray, epochs: int) -> Run:
    import numpy as np

    from understudy.algorithm.network import MLP
    from understudy.algorithm.samples import Samples
    from understudy.algorithm.training import Trainer, plain

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
    layers = [layer for a, b in pairwise((X.shape[1], *HIDDEN, N_C)) for layer in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers[:-1], nn.Softmax(dim=1))
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    loss = nn.MSELoss()
    inputs, targets = torch.from_numpy(X), torch.from_numpy(one_hot(y))

    def run() -> None:
        for _ in range(epochs * STEPS):
            rows = torch.randint(POINTS, (BATCH,))
            adam.zero_grad()
            loss(model(inputs[rows]), targets[rows]).backward()
            adam.step()

    return run


def keras(X: np.ndarray, y: np.ndarray, epochs: int) -> Run:
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    threading = import_module("tensorflow").config.threading
    threading.set_intra_op_parallelism_threads(1)
    threading.set_inter_op_parallelism_threads(1)
    import keras

    dense = [keras.layers.Dense(width, activation="relu") for width in HIDDEN]
    out = keras.layers.Dense(N_C, activation="softmax")
    model = keras.Sequential([keras.Input((X.shape[1],)), *dense, out])
    model.compile(keras.optimizers.Adam(RATE), loss="mse")
    targets = one_hot(y)
    return lambda: model.fit(X, targets, batch_size=BATCH, epochs=epochs, verbose=0)


# How to build it, its epochs per turn (more for a faster engine, lest the call outweigh the steps), and its packages.
ENGINES = {
    "understudy": (understudy, 60, "understudy"),
    "sklearn": (sklearn, 6, "scikit-learn"),
    "torch": (torch, 6, "torch"),
    "keras": (keras, 6, "keras tensorflow-cpu"),
}


def problem(d: int) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    X = np.random.default_rng(d).normal(size=(POINTS, d)).astype(np.float32)
    return X, (X.sum(axis=1) > 0).astype(np.int32)


def one_hot(y: np.ndarray) -> np.ndarray:
    return (y[:, None] == range(N_C)).astype("float32")


def flops(d: int) -> int:
    """Forward and backward, two operations per product; the first layer needs no gradient of its input."""
    others = sum(a * b for a, b in pairwise((*HIDDEN, N_C)))
    return 2 * BATCH * (2 * d * HIDDEN[0] + 3 * others)


def seconds(run: Run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


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


def compile_seconds() -> float:
    run = understudy(*problem(WIDTHS[0]), epochs=1)
    import_module("jax").devices()  # starting JAX is not compiling
    return seconds(run) - seconds(run)


def prepare(engines: list[str], shrink: int) -> dict[tuple[int, str], Turn]:
    """Every installed engine, built and warmed up for every width."""
    turns: dict[tuple[int, str], Turn] = {}
    for d, name in product(WIDTHS, engines):
        build, epochs, _ = ENGINES[name]
        epochs //= shrink
        try:
            run = build(*problem(d), epochs)
        except ModuleNotFoundError:
            say(f"d = {d}: {name} is not installed")
            continue
        say(f"d = {d}: warming up {name}")
        run()
        turns[d, name] = lambda run=run, epochs=epochs: 1e6 * seconds(run) / (epochs * STEPS)
    return turns


def take_turns(turns: dict[tuple[int, str], Turn], rounds: int) -> tuple[dict[tuple[int, str], float], float]:
    """Microseconds per step, and the best GFLOP/s of sgemm in between."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    a, b = np.random.default_rng(0).normal(size=(2, SGEMM, SGEMM)).astype(np.float32)
    times: dict[tuple[int, str], list[float]] = {key: [] for key in turns}
    fastest = float("inf")
    with threadpool_limits(1):
        for i in range(rounds):
            say(f"round {i + 1} of {rounds}")
            fastest = min(fastest, *(seconds(lambda: a @ b) for _ in range(5)))
            for key, turn in turns.items():
                times[key].append(turn())
    return {key: median(values) for key, values in times.items()}, 2e-9 * SGEMM**3 / fastest


def measure(engines: list[str], rounds: int, shrink: int) -> dict[str, Any]:
    compile_s = round(compile_seconds(), 3) if "understudy" in engines else None
    us, rate = take_turns(prepare(engines, shrink), rounds)
    rows = [row(d, name, us.get((d, name))) for d, name in product(WIDTHS, engines)]
    return {"steps": rows, "compile_s": compile_s, "sgemm_gflops": round(rate, 2)}


def row(d: int, name: str, us: float | None) -> dict[str, Any]:
    if us is None:
        note = f"not installed: pip install {ENGINES[name][2]}"
        return {"d": d, "engine": name, "us": None, "gflops": None, "note": note}
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
    compiled = [f"our first compilation  {result['compile_s']:.2f} s"] if ours else []
    return "\n".join([*lines, "", *compiled, f"sgemm on one core      {result['sgemm_gflops']:.1f} GFLOP/s"])


def chosen(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no engine {unknown[0]!r}: choose from {', '.join(ENGINES)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one training step in our engine and in others.")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    parser.add_argument("--quick", action="store_true", help="a rough figure: fewer steps and rounds")
    parser.add_argument("--rounds", type=int, help="turns of every engine (default 7, quick 3)")
    parser.add_argument("--engines", type=chosen, default=list(ENGINES), help="some of " + ",".join(ENGINES))
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    rounds = options.rounds or (3 if options.quick else 7)
    pin()
    os.environ["NPROC"] = "1"  # limits the threads of JAX where a process cannot be pinned
    with tempfile.TemporaryDirectory() as cache, quiet():
        os.environ["JAX_COMPILATION_CACHE_DIR"] = cache
        result = measure(options.engines, rounds, 6 if options.quick else 1)
    print(json.dumps(result) if options.json else table(result))


if __name__ == "__main__":
    main()
