"""Copy a classifier: checks what it is given, puts the policies together, and consumes the loop."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Generator, Iterable, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from understudy.certificate import Certificate, HeldOut
from understudy.classifier import CopyClassifier, encode
from understudy.errors import SettingError, SpaceError, UnderstudyWarning
from understudy.hypothesis.mlp import MLP, PAPER_LAYERS
from understudy.memory import PENALTIES, Automatic, Fixed, Memory
from understudy.metrics import accuracy
from understudy.original import Original, as_original
from understudy.queries import Queries
from understudy.result import Record, Result, load, refuse_other
from understudy.samples import Samples
from understudy.selection import drop_compressed, keep_all, keep_fresh
from understudy.sequential import Step, sequential
from understudy.settings import Settings
from understudy.space import Space, as_matrix
from understudy.training import Schedule, Trainer

# One stream of random numbers each, so that none depends on how much of another was used.
_INITIAL, _DRAW, _HELD_OUT = 1, 2, 3


def copy_classifier(
    original: Any,
    space: Space,
    *,
    method: str = "sequential",
    to: str = "mlp",
    batch: int = 100,
    iterations: int | None = None,
    budget: int | None = None,
    target: float | None = None,
    certificate_n: int = 2000,
    confidence: float = 0.95,
    delta: float = 1e-6,
    memory: str | float = "automatic",
    penalty: str = "bounded",
    layers: Sequence[int] = PAPER_LAYERS,
    schedule: Schedule | int = 1000,
    seed: int = 0,
    classes: Iterable[Any] | None = None,
    out: str | Path | None = None,
    test: tuple[Any, Any] | None = None,
) -> Result:
    """Copy a classifier that can only be queried.

    Parameters
    ----------
    original : a fitted estimator, a function rows -> labels, or an `Original`.
    space : what inputs look like; queries are drawn from it.
    method : "sequential" (Algorithm 5), "pure" (Algorithm 1, keeps every point), "one-shot" or "online" single-pass.
    to : the family of the copy.
    batch : queries per iteration (the paper's n).
    iterations : 30, or as many as the budget pays for.
    budget : the most training queries, in whole batches; batch * iterations if not given.
    target : stop as soon as the certificate's lower bound reaches this.
    certificate_n : queries on top of the budget, for rows that training never sees; 0 for no certificate.
    confidence : the certificate's.
    delta : points with uncertainty below this are dropped ("sequential" only).
    memory : the weight of the memory term: "automatic", "none", or a fixed number ("sequential" only).
    penalty : the memory term: "bounded" (tanh of the mean square) or "norm" (as printed in the paper).
    layers : the hidden layers of the network.
    schedule : epochs per iteration, or a `training.Schedule` such as `training.staged()`.
    seed : same seed, same machine, same copy.
    classes : the labels the original may answer, where it does not say so itself.
    out : a directory for the finished run; if it holds the same run already, that is loaded and nothing is asked.
    test : rows and true labels, to record accuracy by iteration.

    Examples
    --------
    >>> disc = lambda rows: (rows**2).sum(axis=1) < 1
    >>> result = copy_classifier(disc, Space.normal(2), budget=300, schedule=100, certificate_n=500)
    >>> result.copy.predict([[0.0, 0.0], [3.0, 3.0]])
    array([ True, False])
    >>> result.queries
    {'training': 300, 'certificate': 500}
    """
    settings = Settings(
        method,
        to,
        batch,
        iterations,
        budget,
        target,
        certificate_n,
        confidence,
        delta,
        memory,
        penalty,
        layers,
        schedule,
        seed,
    )
    return finish(copy_steps(original, space, settings, classes=classes, out=out, test=test))


def finish(run: Generator[Record, None, Result]) -> Result:
    """Consume a run for its result alone."""
    while True:
        try:
            next(run)
        except StopIteration as end:
            return end.value


def copy_steps(
    original: Any,
    space: Space,
    settings: Settings | None = None,
    *,
    classes: Iterable[Any] | None = None,
    out: str | Path | None = None,
    test: tuple[Any, Any] | None = None,
) -> Generator[Record, None, Result]:
    """`copy_classifier` as a generator: yields a record per iteration, returns the result."""
    clock = perf_counter()
    asked = settings or Settings()
    settings = asked.checked()
    original = as_original(original, classes)
    _check_fit(original, space)
    checked_test = None if test is None else _check_test(test, space)
    about = describe(original, space, settings)
    if out is not None:
        refuse_other(Path(out), about)
        if (Path(out) / "run.json").is_file():
            result = load(out)
            yield from result.history
            return result

    training = Queries(original, space, settings.queries)
    measuring = Queries(original, space, settings.certificate_n)
    held_out = None
    if settings.certificate_n:
        rng = np.random.default_rng([settings.seed, _HELD_OUT])
        held_out = HeldOut.draw(measuring, settings.certificate_n, rng)
    center, scale = space.moments

    def draw(t: int) -> Samples:
        rng = np.random.default_rng([settings.seed, _DRAW, t])
        chunks = [(encode(rows, center, scale), codes) for rows, codes in training.fresh(settings.batch, rng)]
        return Samples(*(np.concatenate(part) for part in zip(*chunks, strict=True)))

    first = draw(0)  # before the network: it may take answers to know the classes
    known = original.labels.classes
    _warn_if_alone(known, first.y if held_out is None else np.concatenate([first.y, held_out.answers]))
    network = MLP(space.d, tuple(settings.layers), len(known))
    steps = sequential(
        lambda t: draw(t) if t else first,
        network.initial(np.random.default_rng([settings.seed, _INITIAL])),
        **_policies(settings, network),
    )
    history: list[Record] = []
    for step in islice(steps, settings.iterations):
        copy = CopyClassifier(network, step.theta, known, center, scale, space.names if space.frame else None)
        proof = None
        if held_out is not None:
            look = step.t + 1 if settings.target else None
            proof = held_out.certify(copy.predict_codes(held_out.rows), settings.confidence, look)
        history.append(_record(step, training.made, copy, proof, checked_test))
        yield history[-1]
        if settings.target and proof and proof.lower >= settings.target:
            stopped = "target"
            break
    else:
        stopped = "iterations" if asked.budget is None else "budget"
    result = Result(
        copy=copy,
        certificate=proof,
        history=history,
        space=space,
        settings=about,
        queries={"training": training.made, "certificate": measuring.made},
        stopped=stopped,
        seconds=perf_counter() - clock,
        peak_mb=peak_mb(),
    )
    if out is not None:
        result.save(out)
    return result


def describe(original: Original, space: Space, settings: Settings) -> dict[str, Any]:
    """What makes a run this run and no other, as JSON values; a run's directory is recognised by it."""
    return {**settings.as_json(), "original": original.name, "space": sha256(space.to_json().encode()).hexdigest()}


def peak_mb() -> float:
    """The most memory this process has held so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _policies(settings: Settings, network: MLP) -> dict[str, Any]:
    """What the method named in the settings passes to the loop."""
    train = Trainer(network, schedule=settings.schedule, penalty=PENALTIES[settings.penalty], seed=settings.seed)  # type: ignore[arg-type]
    if settings.method == "sequential":
        fixed = 0.0 if isinstance(settings.memory, str) else settings.memory
        memory: Memory = Automatic() if settings.memory == "automatic" else Fixed(fixed)
        return {"select": drop_compressed(network, settings.delta), "memory": memory, "train": train}
    return {"select": keep_fresh if settings.method == "online" else keep_all, "memory": Fixed(0.0), "train": train}


def _record(
    step: Step, queries: int, copy: CopyClassifier, proof: Certificate | None, test: tuple[np.ndarray, Any] | None
) -> Record:
    return Record(
        iteration=step.t,
        queries=queries,
        kept=len(step.S),
        dropped=step.dropped,
        lam=step.lam,
        mean_rho=step.trained.mean_rho,
        risk=step.trained.risk,
        fidelity=None if proof is None else proof.estimate,
        accuracy=None if test is None else accuracy(test[1], copy.predict(test[0])),
        moved=step.moved,
        epochs=step.trained.epochs,
        seconds=step.seconds,
    )


def _check_fit(original: Original, space: Any) -> None:
    if not isinstance(space, Space):
        raise SpaceError("space", "a Space", type(space).__name__, "e.g. Space.normal(d) or Space.from_data(rows)")
    if original.d is not None and original.d != space.d:
        raise SpaceError("space", f"the {original.d} columns that {original.name} takes", f"{space.d}")
    if original.names is not None and space.frame and original.names != space.names:
        raise SpaceError("space", f"the columns {list(original.names)} that {original.name} takes", list(space.names))


def _check_test(test: tuple[Any, Any], space: Space) -> tuple[np.ndarray, np.ndarray]:
    rows, _ = as_matrix(test[0], "test", space.names if space.frame and hasattr(test[0], "columns") else None)
    labels = np.asarray(test[1])
    if rows.shape[1] != space.d or labels.shape != (len(rows),):
        raise SettingError(
            "test",
            f"rows of {space.d} columns, and one label per row",
            f"rows of shape {rows.shape}, labels of shape {labels.shape}",
        )
    return rows, labels


def _warn_if_alone(classes: np.ndarray, codes: np.ndarray) -> None:
    seen = np.unique(codes)
    if len(seen) == 1:
        warnings.warn(
            f"the original answered {classes[seen[0]].item()!r} to every one of the first {len(codes)} queries; a copy "
            "that always says so is faithful here, but check that the space covers the inputs it was made for",
            UnderstudyWarning,
            stacklevel=4,
        )
