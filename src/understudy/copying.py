"""Copy a classifier: checks what it is given, puts the policies together, and consumes the loop."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from understudy.certificate import Certificate, HeldOut
from understudy.classifier import CopyClassifier
from understudy.directory import claim, finished, open_run
from understudy.drawing import POOL, balanced
from understudy.encoding import Encoding
from understudy.errors import SettingError, UnderstudyWarning
from understudy.hypothesis.mlp import MLP, PAPER_LAYERS
from understudy.ledger import REPEAT, Ledger
from understudy.memory import PENALTIES, Automatic, Fixed, Memory
from understudy.metrics import accuracy
from understudy.original import Labels, Original, as_original, label_array
from understudy.queries import Queries, check_fit
from understudy.result import Record, Repeats, Result, load
from understudy.samples import Samples
from understudy.selection import drop_compressed, keep_all, keep_fresh
from understudy.sequential import Step, sequential
from understudy.settings import Settings
from understudy.space import Space
from understudy.training import Schedule, Train, Trained, Trainer

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
    delta: float = 1e-4,
    keep: float = 0.2,
    memory: str | float = "automatic",
    penalty: str = "bounded",
    layers: Sequence[int] = PAPER_LAYERS,
    schedule: Schedule | int | None = None,
    seed: int = 0,
    draw: str = "random",
    repeat: float = 0.02,
    decay: float | None = None,
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
    keep : the most points kept, as a share of the training queries; the most uncertain stay ("sequential" only).
    memory : the weight of the memory term: "automatic", "none", or a fixed number ("sequential" only).
    penalty : the memory term: "bounded" (tanh of the mean square) or "norm" (as printed in the paper).
    layers : the hidden layers of the network.
    schedule : epochs per iteration (300, or 1000 for "one-shot", if not given), or a `training.Schedule` such as
        `training.staged()`.
    seed : same seed, same machine, same copy.
    classes : the labels the original may answer, where it does not say so itself.
    draw : "random", or "balanced": after the first batch, rows that the copy takes for its classes in equal parts.
    decay : how much weights shrink in a step of training, as a multiple of the step size (0.03, or 0.1 for "one-shot",
        if not given).
    repeat : the share of queries that are asked again, to see whether the original always answers alike.
    out : a directory that keeps every answer as it comes. The same call with the same directory goes on where it was
        interrupted, and loads a run that is finished; originals are told apart by their names.
    test : rows and true labels, to record accuracy by iteration.

    Examples
    --------
    >>> disc = lambda rows: (rows**2).sum(axis=1) < 1
    >>> result = copy_classifier(disc, Space.normal(2), budget=300, schedule=100, certificate_n=500)
    >>> result.copy.predict([[0.0, 0.0], [3.0, 3.0]])
    array([ True, False])
    >>> result.queries
    {'training': 300, 'certificate': 500, 'repeat': 16}
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
        keep,
        memory,
        penalty,
        layers,
        schedule,
        seed,
        draw,
        repeat,
        decay,
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
    asked = Settings() if settings is None else settings
    if not isinstance(asked, Settings):
        raise SettingError("settings", "a Settings", type(asked).__name__)
    original = as_original(original, classes)
    settings = (asked if original.stored is None else replace(asked, repeat=0.0)).checked()
    check_fit(original, space)
    truth = None if test is None else _check_test(test, space)
    about = describe(original, space, settings, 0 if truth is None else len(truth[1]))
    limited_by = "iterations" if asked.budget is None or asked.iterations == settings.iterations else "budget"
    if out is None:
        return (yield from _Run(original, space, settings, about, limited_by, truth).steps())
    if finished(claim(out, about)):
        result = load(out)
        yield from result.history
        return result
    with open_run(out, about, space) as ledger:
        result = yield from _Run(original, space, settings, about, limited_by, truth, ledger).steps()
        result.save(out)
    return result


def describe(original: Original, space: Space, settings: Settings, test: int = 0) -> dict[str, Any]:
    """What makes a run this run and no other, as JSON values; a run's directory is recognised by it."""
    classes = None if original.declared is None else original.declared.classes.tolist()
    digest = sha256(space.to_json().encode()).hexdigest()
    about = {"original": original.name, "fingerprint": original.fingerprint, "classes": classes}
    return {**settings.as_json(), **about, "space": digest, "test": test}


class _NewLabelError(Exception):
    """A label turned up that was not among the first answers; with a ledger, starting over costs nothing."""


@dataclass
class _Run:
    """One run: its parts put together, the loop consumed."""

    original: Original
    space: Space
    settings: Settings
    about: dict[str, Any]
    limited_by: str
    truth: tuple[np.ndarray, np.ndarray] | None
    ledger: Ledger | None = None

    def steps(self) -> Generator[Record, None, Result]:
        """A record per iteration, then the result."""
        clock = perf_counter()
        while True:
            try:
                return (yield from self._attempt(clock))
            except _NewLabelError:
                assert self.ledger is not None
                self.ledger.forget_rounds()

    def _attempt(self, clock: float) -> Generator[Record, None, Result]:
        settings, space = self.settings, self.space
        limits = {"training": settings.queries, "certificate": settings.certificate_n, REPEAT: settings.repeats}
        self.queries = Queries(self.original, space, limits, self.ledger, settings.seed)
        self.encoding = Encoding(space)
        # The first answers come before the network, because they may be what tells the classes.
        measured = self._measured()
        first_rows, first = _together(self.queries.fresh("training", settings.batch, self._stream(_DRAW)))
        rows = np.concatenate([measured[0], first_rows])
        answers = np.concatenate([measured[1], first]) if len(measured[1]) else first
        self.labels = self._known_labels(answers)
        self._warn_of_absent(answers)
        repeats = self._repeat(rows, answers)
        held_out = None
        if settings.certificate_n:
            held_out = HeldOut(self.encoding(measured[0]), self.labels.encode(measured[1]), self.labels)
        network = MLP(self.encoding.width, tuple(settings.layers), len(self.labels))
        policies = _policies(settings, network)
        train = policies["train"] = Remembered(policies["train"], self.ledger)

        def draw(t: int, theta: np.ndarray) -> Samples:
            X, found = self._drawn(t, network, theta) if t else (self.encoding(first_rows), first)
            return Samples(X, self._codes(found))

        steps = sequential(draw, network.initial(self._stream(_INITIAL)), **policies)
        history: list[Record] = []
        stopped, proof = self.limited_by, None
        for step in islice(steps, settings.iterations):
            copy = CopyClassifier(network, step.theta, self.labels.classes, space)
            if held_out is not None:
                look = step.t + 1 if settings.target else None
                proof = held_out.certify(copy.decide(held_out.X), settings.confidence, look)
            history.append(self._record(step, copy, proof, train.spared.get(step.t, 0.0)))
            yield history[-1]
            if settings.target and proof and proof.lower >= settings.target:
                stopped = "target"
                break
        return Result(
            copy=copy,
            certificate=proof,
            history=history,
            space=space,
            settings=self.about,
            queries=self.queries.made,
            stopped=stopped,
            seconds=perf_counter() - clock + sum(train.spared.values()),
            peak_mb=peak_mb(),
            repeats=repeats,
        )

    def _stream(self, purpose: int, t: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, purpose, t])

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        """The certificate's rows and answers."""
        n = self.settings.certificate_n
        if not n:
            return np.empty((0, self.space.d)), np.empty(0)
        return _together(self.queries.fresh("certificate", n, self._stream(_HELD_OUT)))

    def _drawn(self, t: int, network: MLP, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The encoded rows of iteration t with their answers."""
        n, rng = self.settings.batch, self._stream(_DRAW, t)
        if self.settings.draw == "random" or self.original.stored is not None:
            chunks = self.queries.fresh("training", n, rng)
            return _together((self.encoding(rows), found) for rows, found in chunks)
        candidates = self.space.sample(POOL * n, rng)
        X = self.encoding(candidates)
        chosen = balanced(network, theta, X, n)
        return X[chosen], self.queries.ask("training", candidates[chosen])

    def _known_labels(self, answers: np.ndarray) -> Labels:
        """The labels declared; else those of the first answers, and of any later ones that the ledger has."""
        labels = self.original.declared
        if labels is None:
            known = [] if self.ledger is None else self.ledger.labels
            labels = Labels([*known, *dict.fromkeys(answers.tolist())])
        if self.truth is not None and (labels.find(self.truth[1]) < 0).all():
            raise SettingError("test", f"labels among {labels}", f"labels such as {self.truth[1][0].item()!r}")
        return labels

    def _codes(self, answers: np.ndarray) -> np.ndarray:
        if self.ledger is not None and self.original.declared is None and (self.labels.find(answers) < 0).any():
            raise _NewLabelError
        return self.labels.encode(answers)

    def _repeat(self, rows: np.ndarray, answers: np.ndarray) -> Repeats | None:
        """Ask about a share of the first rows again."""
        n = self.settings.repeats
        if not n:
            return None
        repeats = Repeats(n, int((self.queries.ask(REPEAT, rows[:n]) != answers[:n]).sum()))
        if repeats.disagreed:
            warnings.warn(
                f"the original answered {repeats.disagreed} of {n} rows differently when asked again: no copy can be "
                f"expected to agree with it on more than {repeats.ceiling:.1%} of rows",
                UnderstudyWarning,
                stacklevel=6,
            )
        return repeats

    def _warn_of_absent(self, answers: np.ndarray) -> None:
        seen = Labels(answers)
        declared: Iterable[Any] = [] if self.original.declared is None else self.original.declared.classes
        absent = [label for label in declared if seen.find(np.array([label]))[0] < 0]
        advice = "check that the space covers the inputs it was made for, and its rows as often as they matter"
        if len(seen) == 1:
            message = (
                f"the original answered {answers[0].item()!r} to every one of the first {len(answers)} queries; a copy "
                f"that always says so is faithful here, but {advice}"
            )
        elif absent:
            named = ", ".join(repr(label.item()) for label in absent[:8])
            message = (
                f"none of the first {len(answers)} answers was {named}, which the original may answer; {advice}; "
                'draw="balanced" or --draw balanced looks for such classes'
            )
        else:
            return
        warnings.warn(message, UnderstudyWarning, stacklevel=6)

    def _record(self, step: Step, copy: CopyClassifier, proof: Certificate | None, spared: float) -> Record:
        return Record(
            iteration=step.t,
            queries=self.queries.made["training"],
            kept=len(step.S),
            dropped=step.dropped,
            lam=step.lam,
            mean_rho=step.trained.mean_rho,
            risk=step.trained.risk,
            fidelity=None if proof is None else proof.estimate,
            accuracy=None if self.truth is None else accuracy(self.truth[1], copy.classes[copy.decide(self.truth[0])]),
            moved=step.moved,
            epochs=step.trained.epochs,
            seconds=step.seconds + spared,
        )


class Remembered:
    """A training policy that takes rounds from the ledger where they were trained before, and else trains and keeps."""

    def __init__(self, train: Train, ledger: Ledger | None):
        self.train, self.ledger = train, ledger
        self.spared: dict[int, float] = {}
        """The seconds that remembered rounds took when they were trained."""

    def __call__(self, theta: np.ndarray, S: Samples, lam: float, t: int) -> Trained:
        """Fit the copy to S, or remember that it was."""
        if self.ledger is None:
            return self.train(theta, S, lam, t)
        known = self.ledger.round(t)
        if known is not None:
            found, about = known
            self.spared[t] = about.pop("seconds")
            return Trained(theta=found, **about)
        clock = perf_counter()
        trained = self.train(theta, S, lam, t)
        about = {key: value for key, value in trained._asdict().items() if key != "theta"}
        self.ledger.keep_round(t, trained.theta, {**about, "seconds": perf_counter() - clock})
        return trained


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
    train = Trainer(
        network,
        schedule=settings.schedule,  # type: ignore[arg-type]
        penalty=PENALTIES[settings.penalty],
        decay=settings.decay or 0.0,
        seed=settings.seed,
    )
    if settings.method == "sequential":
        fixed = 0.0 if isinstance(settings.memory, str) else settings.memory
        memory: Memory = Automatic() if settings.memory == "automatic" else Fixed(fixed)
        return {
            "select": drop_compressed(network, settings.delta, settings.most_kept),
            "memory": memory,
            "train": train,
        }
    return {"select": keep_fresh if settings.method == "online" else keep_all, "memory": Fixed(0.0), "train": train}


def _check_test(test: Any, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Encoded rows, and their labels."""
    if not isinstance(test, (tuple, list)) or len(test) != 2:
        raise SettingError("test", "a pair of rows and labels", repr(test)[:80])
    rows = space.read(test[0], "test")
    try:
        labels = label_array(test[1])
    except (TypeError, ValueError) as error:
        raise SettingError("test", "one label per row", str(error)) from error
    if labels.shape != (len(rows),) or len(rows) == 0:
        found = f"rows of shape {rows.shape}, labels of shape {labels.shape}"
        raise SettingError("test", f"rows of {space.d} columns, and one label per row", found)
    return Encoding(space)(rows), labels
