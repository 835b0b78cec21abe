"""Copy a classifier: checks what it is given, puts the policies together, and consumes the loop."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from understudy.certificate import Certificate, HeldOut
from understudy.classifier import CopyClassifier, encode
from understudy.errors import DirectoryError, SettingError, UnderstudyWarning
from understudy.hypothesis.mlp import MLP, PAPER_LAYERS
from understudy.memory import PENALTIES, Automatic, Fixed, Memory
from understudy.metrics import accuracy
from understudy.original import CHUNK, Labels, Original, as_original, label_array
from understudy.queries import Queries
from understudy.result import Record, Result, claim, load
from understudy.samples import Samples
from understudy.selection import drop_compressed, keep_all, keep_fresh
from understudy.sequential import Step, sequential
from understudy.settings import Settings
from understudy.space import Space, as_matrix
from understudy.training import Schedule, Trainer

# One stream of random numbers each, so that none depends on how much of another was used.
_INITIAL, _DRAW, _HELD_OUT = 1, 2, 3
# How many of a finished run's rows are asked again before its directory is taken for this original's.
RECOGNISED = 25


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
    out : a directory for the finished run; if it holds the same run already, that is loaded, and the original is only
        asked about 25 of its rows again, to see that it is the same.
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


def finish(run: Generator[Record, None, Result], show: Callable[[Record], object] = lambda record: None) -> Result:
    """Consume a run for its result, showing each record on the way."""
    while True:
        try:
            record = next(run)
        except StopIteration as end:
            return end.value
        show(record)


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
    asked = Settings() if settings is None else settings
    if not isinstance(asked, Settings):
        raise SettingError("settings", "a Settings", type(asked).__name__)
    settings = asked.checked()
    original = as_original(original, classes)
    training = Queries(original, space, settings.queries)
    measuring = Queries(original, space, settings.certificate_n)
    truth = None if test is None else _check_test(test, space)
    about = describe(original, space, settings, 0 if truth is None else len(truth[1]))
    if out is not None and (claim(out, about) / "run.json").is_file():
        result = load(out)
        _recognise(original, result, Path(out))
        yield from result.history
        return result

    def stream(purpose: int, t: int = 0) -> np.random.Generator:
        return np.random.default_rng([settings.seed, purpose, t])

    center, scale = space.moments

    def ask(t: int) -> tuple[np.ndarray, np.ndarray]:
        chunks = training.fresh(settings.batch, stream(_DRAW, t))
        return _together((encode(rows, center, scale), found) for rows, found in chunks)

    # The first answers come before the network, because they may be what tells the classes.
    measured = _together(measuring.fresh(settings.certificate_n, stream(_HELD_OUT))) if settings.certificate_n else None
    first = ask(0)
    answers = first[1] if measured is None else np.concatenate([measured[1], first[1]])
    labels = original.declared or Labels(answers)
    _warn_if_alone(answers)
    if truth is not None and (labels.find(truth[1]) < 0).all():
        raise SettingError("test", f"labels among {labels}", f"labels such as {truth[1][0].item()!r}")
    held_out = None if measured is None else HeldOut(measured[0], labels.encode(measured[1]), labels)

    def draw(t: int) -> Samples:
        X, found = ask(t) if t else first
        return Samples(X, labels.encode(found))

    network = MLP(space.d, tuple(settings.layers), len(labels))
    steps = sequential(draw, network.initial(stream(_INITIAL)), **_policies(settings, network))
    names = space.names if space.frame else None
    history: list[Record] = []
    for step in islice(steps, settings.iterations):
        copy = CopyClassifier(network, step.theta, labels.classes, center, scale, names)
        proof = None
        if held_out is not None:
            look = step.t + 1 if settings.target else None
            proof = held_out.certify(copy.predict_codes(held_out.rows), settings.confidence, look)
        history.append(_record(step, training.made, copy, proof, truth))
        yield history[-1]
        if settings.target and proof and proof.lower >= settings.target:
            stopped = "target"
            break
    else:
        stopped = "iterations" if asked.budget is None or asked.iterations == settings.iterations else "budget"
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
        first_answers=answers[:RECOGNISED].tolist(),
    )
    if out is not None:
        result.save(out)
    return result


def describe(original: Original, space: Space, settings: Settings, test: int = 0) -> dict[str, Any]:
    """What makes a run this run and no other, as JSON values; a run's directory is recognised by it."""
    classes = None if original.declared is None else original.declared.classes.tolist()
    digest = sha256(space.to_json().encode()).hexdigest()
    return {**settings.as_json(), "original": original.name, "classes": classes, "space": digest, "test": test}


def _recognise(original: Original, result: Result, path: Path) -> None:
    """Ask about a few rows of a finished run again: names do not tell two originals apart, answers do."""
    purpose = _HELD_OUT if result.queries["certificate"] else _DRAW
    n = min(result.queries["certificate"] or result.settings["batch"], CHUNK)
    rows = result.space.sample(n, np.random.default_rng([result.settings["seed"], purpose, 0]))[:RECOGNISED]
    answers = original.answer(result.space.present(rows)).tolist()
    differ = sum(now != then for now, then in zip(answers, result.first_answers, strict=False))
    if differ:
        found = f"one that answers {differ} of its first {len(answers)} rows differently"
        hint = "choose another directory, or remove this one"
        raise DirectoryError(str(path), "the original that this run has copied", found, hint)


def _together(chunks: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Chunks of rows and answers as one array of each."""
    rows, answers = zip(*chunks, strict=True)
    return np.concatenate(rows), np.concatenate(answers)


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


def _check_test(test: Any, space: Space) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(test, (tuple, list)) or len(test) != 2:
        raise SettingError("test", "a pair of rows and labels", repr(test)[:80])
    rows, _ = as_matrix(test[0], "test", space.names if space.frame and hasattr(test[0], "columns") else None)
    try:
        labels = label_array(test[1])
    except (TypeError, ValueError) as error:
        raise SettingError("test", "one label per row", str(error)) from error
    if rows.shape[1] != space.d or labels.shape != (len(rows),) or len(rows) == 0:
        found = f"rows of shape {rows.shape}, labels of shape {labels.shape}"
        raise SettingError("test", f"rows of {space.d} columns, and one label per row", found)
    return rows, labels


def _warn_if_alone(answers: np.ndarray) -> None:
    if (answers == answers[0]).all():
        warnings.warn(
            f"the original answered {answers[0].item()!r} to every one of the first {len(answers)} queries; a copy "
            "that always says so is faithful here, but check that the space covers the inputs it was made for",
            UnderstudyWarning,
            stacklevel=5,
        )
