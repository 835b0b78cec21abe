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

from understudy.certificate import Certificate, HeldOut, lower_bound
from understudy.classifier import CopyClassifier
from understudy.directory import claim, finished, open_run
from understudy.drawing import FIRST, POLICIES, Seen, pool
from understudy.encoding import Encoding
from understudy.errors import SettingError, UnderstudyWarning
from understudy.families import Limits
from understudy.hypothesis.mlp import MLP, PAPER_LAYERS, Network
from understudy.ledger import REPEAT, Ledger
from understudy.memory import FUNCTION, PENALTIES, Automatic, Fixed, Memory, OnceDropped, bounded
from understudy.metrics import accuracy, fidelity
from understudy.original import Labels, Original, as_original, label_array
from understudy.queries import Queries, check_fit
from understudy.relay import Candidate, Workshop, choose, outcomes
from understudy.result import Record, Repeats, Result, load
from understudy.samples import Samples
from understudy.selection import drop_compressed, keep_all, keep_fresh
from understudy.sequential import Step, sequential
from understudy.settings import PRESETS, Settings
from understudy.space import Space
from understudy.training import Schedule, Train, Trained, Trainer, steps
from understudy.uncertainty import rho_squared

# One stream of random numbers each, so that none depends on how much of another was used.
_INITIAL, _DRAW, _HELD_OUT, _CANDIDATES, _FREE = 1, 2, 3, 4, 5
# Steps of a network that learns from a teacher.
RELAY_STEPS = 10_000


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
    preset: str = "default",
    delta: float | None = None,
    max_kept: int | None = None,
    memory: str | float | None = None,
    penalty: str | None = None,
    layers: Sequence[int] = PAPER_LAYERS,
    schedule: Schedule | int | None = None,
    seed: int = 0,
    draw: str | None = None,
    repeat: float = 0.02,
    decay: float | None = None,
    max_depth: int | None = None,
    max_leaves: int | None = None,
    classes: Iterable[Any] | None = None,
    out: str | Path | None = None,
    test: tuple[Any, ...] | None = None,
) -> Result:
    """Copy a classifier that can only be queried.

    Parameters
    ----------
    original : a fitted estimator, a function rows -> labels, or an `Original`.
    space : what inputs look like; queries are drawn from it.
    method : "sequential" (Algorithm 5), "pure" (Algorithm 1, keeps every point), "one-shot" or "online" single-pass.
    to : the family of the copy: "mlp", "linear", "tree", "forest", "boosting"; or "auto", the most faithful of them on
        the certificate's rows, or the smallest that reaches the target.
    batch : queries per iteration (the paper's n).
    iterations : 30, or as many as the budget pays for.
    budget : the most training queries, in whole batches; batch * iterations if not given.
    target : stop as soon as the certificate's lower bound reaches this.
    certificate_n : queries on top of the budget, for rows that training never sees; 0 for no certificate.
    confidence : the certificate's.
    preset : "default", or "paper" for the setting of the paper's experiments: what the parameters below are where they
        are not given, and the loss, batches and step size of training.
    delta : points with uncertainty below this are dropped ("sequential" only).
    max_kept : the most points kept: a fifth of the training queries, but at least 500 ("sequential" only).
    memory : the weight of the memory term: "automatic", "none", or a fixed number ("sequential" only).
    penalty : the memory term: "function" (what the copy answers on rows that cost nothing), "bounded" (tanh of the mean
        square between parameters) or "norm" (as printed in the paper).
    layers : the hidden layers of the network.
    schedule : how long an iteration trains: a number of epochs, or a `training.Schedule` such as `training.steps(200)`.
    seed : same seed, same machine, same copy.
    classes : the labels the original may answer, where it does not say so itself.
    draw : "random"; "margin": after the first batches, mostly rows on which the copy is least sure; or "balanced": rows
        that the copy takes for its classes in equal parts.
    decay : how much weights shrink in a step of training, as a multiple of the step size.
    max_depth, max_leaves : what a tree may grow to, in the families that have some.
    repeat : the share of queries that are asked again, to see whether the original always answers alike.
    out : a directory that keeps every answer as it comes. The same call with the same directory goes on where it was
        interrupted, and loads a run that is finished; originals are told apart by their names.
    test : rows and true labels, to record accuracy by iteration; and, as a third part, the original's answers to these
        rows, to record how often the copy agrees with them.

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
        preset,
        delta,
        max_kept,
        memory,
        penalty,
        layers,
        schedule,
        seed,
        draw,
        repeat,
        decay,
        max_depth,
        max_leaves,
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
    test: tuple[Any, ...] | None = None,
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
    """A label turned up that no earlier answer had, and that nobody declared."""


@dataclass
class _Run:
    """One run: its parts put together, the loop consumed."""

    original: Original
    space: Space
    settings: Settings
    about: dict[str, Any]
    limited_by: str
    truth: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        limits = {"training": settings.queries, "certificate": settings.certificate_n, REPEAT: settings.repeats}
        self.queries = Queries(self.original, self.space, limits, self.ledger, settings.seed)
        self.encoding = Encoding(self.space)
        self.asked = Seen()
        self.candidates: tuple[int, np.ndarray, np.ndarray] | None = None
        self.spared: dict[int, float] = {}
        self.paid: list[tuple[np.ndarray, np.ndarray]] = []

    def steps(self) -> Generator[Record, None, Result]:
        """A record per iteration, then the result."""
        clock, settings = perf_counter(), self.settings
        # The first answers come before the network, because they may be what tells the classes.
        measured = self._measured()
        first_rows, first = _together(self.queries.fresh("training", settings.batch, self._stream(_DRAW)))
        self.asked.add(first_rows)
        self.latest = 0, self.encoding(first_rows), first
        self.paid.append(self.latest[1:])
        answers = np.concatenate([measured[1], first]) if len(measured[1]) else first
        self.labels = self._known_labels(answers)
        self._warn_of_absent(answers)
        repeats = self._repeat(np.concatenate([measured[0], first_rows]), answers)
        held_out = self.encoding(measured[0])
        history: list[Record] = []
        stopped, proof = self.limited_by, None
        for step in islice(self._rounds(), settings.iterations):
            copy = CopyClassifier(Network(self.network, step.theta), self.labels.classes, self.space)
            if settings.certificate_n:
                look = step.t + 1 if settings.target else None
                held = HeldOut(held_out, self.labels.encode(measured[1]), self.labels)
                proof = held.certify(copy.decide(held_out), settings.confidence, look)
            history.append(self._record(step, copy, proof))
            yield history[-1]
            if settings.to == "mlp" and settings.target and proof and proof.lower >= settings.target:
                stopped = "target"
                break
        tried: list[Candidate] = []
        if settings.to != "mlp":
            chosen, tried = self._chosen(step, Samples(held_out, self.labels.encode(measured[1])))
            copy = CopyClassifier(chosen.model, self.labels.classes, self.space)
            if settings.certificate_n:
                among = outcomes(settings.families)
                proof = held.certify(copy.decide(held_out), settings.confidence, among=among)
                if settings.target and proof.lower >= settings.target:
                    stopped = "target"
        return Result(
            copy=copy,
            certificate=proof,
            history=history,
            space=self.space,
            settings=self.about,
            queries=self.queries.made,
            stopped=stopped,
            seconds=perf_counter() - clock + sum(self.spared.values()),
            peak_mb=peak_mb(),
            repeats=repeats,
            tried=[candidate.as_json() for candidate in tried],
        )

    def _chosen(self, last: Step, held_out: Samples) -> tuple[Candidate, list[Candidate]]:
        """A copy of another family, from all that was paid for and from what better copies say of free rows."""
        settings = self.settings
        X, answers = _together(iter(self.paid))
        trainer = replace(self._trainer(), schedule=steps(RELAY_STEPS))

        def reaches(fidelity: float) -> bool:
            n, corrected = len(held_out), 1 - (1 - settings.confidence) / outcomes(settings.families)
            return lower_bound(round(fidelity * n), n, corrected) >= (settings.target or 1.0)

        workshop = Workshop(
            paid=Samples(X, self.labels.encode(answers)),
            network=Network(self.network, last.theta),
            free=lambda n: self.encoding(self.space.sample(n, self._stream(_FREE))),
            train=lambda points: Network(self.network, trainer(last.theta, points, 0.0, last.t + 1).theta),
            limits=Limits(settings.max_depth, settings.max_leaves),
            seed=settings.seed,
        )
        return choose(settings.families, workshop, held_out, reaches if settings.target else None)

    def _rounds(self) -> Iterator[Step]:
        """The loop. A label that comes late gives the copy one more output, and the loop goes on from where it was."""
        self.network = MLP(self.encoding.width, tuple(self.settings.layers), len(self.labels))
        theta = self.network.initial(self._stream(_INITIAL))
        latest: Step | None = None
        while True:
            try:
                for step in sequential(self._drawn, theta, after=latest, **self._policies()):
                    latest = step
                    yield step
            except _NewLabelError:
                assert latest is not None  # the first answers are known before the loop begins
                latest = self._widened(latest)

    def _widened(self, step: Step) -> Step:
        """A step of a copy that knows the latest labels too."""
        before, self.labels = self.labels, Labels([*self.labels.classes.tolist(), *self.latest[2].tolist()])
        places = self.labels.encode(before.classes)
        self.network, theta = self.network.widened(step.theta, places, len(self.labels))
        return replace(step, S=Samples(step.S.X, places[step.S.y]), trained=step.trained._replace(theta=theta))

    def _policies(self) -> dict[str, Any]:
        """What the method named in the settings passes to the loop."""
        network, settings, train = self.network, self.settings, self._trainer()
        if settings.method != "sequential":
            kept = keep_fresh if settings.method == "online" else keep_all
            return {"select": kept, "memory": Fixed(0.0), "train": self._remembered(train)}
        weight = settings.memory
        memory: Memory = Automatic() if weight == "automatic" else Fixed(weight if isinstance(weight, float) else 0.0)
        if settings.penalty == FUNCTION and weight not in ("none", 0.0):
            memory = OnceDropped(memory.initial, settings.batch)
            train = replace(train, rehearse=lambda t: self._candidates(t)[1], room=settings.most_kept)
        select = drop_compressed(network, settings.delta or 0.0, settings.most_kept, settings.free)
        return {"select": select, "memory": memory, "train": self._remembered(train)}

    def _trainer(self) -> Trainer:
        """How the network is trained."""
        network, settings, preset = self.network, self.settings, PRESETS[self.settings.preset]
        return Trainer(
            network,
            schedule=settings.schedule,  # type: ignore[arg-type]
            penalty=PENALTIES.get(settings.penalty or "", bounded),
            decay=preset.decay(network.d) if settings.decay is None else settings.decay,
            seed=settings.seed,
            **preset.training,
        )

    def _stream(self, purpose: int, t: int = 0) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, purpose, t])

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        """The certificate's rows and answers."""
        n = self.settings.certificate_n
        if not n:
            return np.empty((0, self.space.d)), np.empty(0)
        return _together(self.queries.fresh("certificate", n, self._stream(_HELD_OUT)))

    def _drawn(self, t: int, theta: np.ndarray) -> Samples:
        """The points of iteration t; asked about once, however often the loop comes by."""
        if self.latest[0] != t:
            self.latest = t, *self._answered(t, theta)
            self.paid.append(self.latest[1:])
        _, X, found = self.latest
        if self.original.declared is None and (self.labels.find(found) < 0).any():
            raise _NewLabelError
        return Samples(X, self.labels.encode(found))

    def _answered(self, t: int, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The encoded rows of iteration t with their answers."""
        n, draw = self.settings.batch, self.settings.draw or "random"
        if draw == "random" or self.original.stored is not None:
            chunks = self.queries.fresh("training", n, self._stream(_DRAW, t))
            return _together((self.encoding(rows), found) for rows, found in chunks)
        rows, X = self._candidates(t)
        if draw == "margin" and t * n < FIRST:
            draw = "random"
        distinct = self.asked.new(rows, at_least=n)
        chosen = distinct[POLICIES[draw](self.network, theta, X[distinct], n)]
        self.asked.add(rows[chosen])
        return X[chosen], self.queries.ask("training", rows[chosen])

    def _candidates(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that iteration t may ask about, and that cost nothing until it does; and the same encoded.

        Those of an iteration are drawn once: where it asks, and where it remembers what it answered before.
        """
        if self.candidates is None or self.candidates[0] != t:
            rows = self.space.sample(pool(self.settings.batch), self._stream(_CANDIDATES, t))
            self.candidates = t, rows, self.encoding(rows)
        return self.candidates[1:]

    def _remembered(self, train: Train) -> Train:
        """A training policy that takes rounds from the ledger where they were trained before, and else keeps them."""
        ledger = self.ledger
        if ledger is None:
            return train

        def remembered(theta: np.ndarray, S: Samples, lam: float, t: int) -> Trained:
            known = ledger.round(t)
            if known is not None:
                found, about = known
                self.spared[t] = about.pop("seconds")
                return Trained(theta=found, **about)
            clock = perf_counter()
            trained = train(theta, S, lam, t)
            about = {key: value for key, value in trained._asdict().items() if key != "theta"}
            ledger.keep_round(t, trained.theta, {**about, "seconds": perf_counter() - clock})
            return trained

        return remembered

    def _known_labels(self, answers: np.ndarray) -> Labels:
        """The labels declared; else those of the first answers, until others come."""
        labels = self.original.declared or Labels(answers)
        if self.truth is not None and (labels.find(self.truth[1]) < 0).all():
            raise SettingError("test", f"labels among {labels}", f"labels such as {self.truth[1][0].item()!r}")
        return labels

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

    def _record(self, step: Step, copy: CopyClassifier, proof: Certificate | None) -> Record:
        tested = {} if self.truth is None else _tested(copy, self.labels, *self.truth)
        return Record(
            iteration=step.t,
            queries=self.queries.made["training"],
            kept=len(step.S),
            dropped=step.dropped,
            lam=step.lam,
            mean_rho=step.trained.mean_rho,
            risk=step.trained.risk,
            fidelity=None if proof is None else proof.estimate,
            moved=step.moved,
            epochs=step.trained.epochs,
            seconds=step.seconds + self.spared.get(step.t, 0.0),
            **tested,
        )


def _tested(
    copy: CopyClassifier, labels: Labels, X: np.ndarray, truth: np.ndarray, answers: np.ndarray | None
) -> dict[str, float]:
    """What a record says of test data: against its true labels, and against the original's answers if there are any."""
    probabilities = copy.model.probabilities(X)
    decided = copy.classes[probabilities.argmax(axis=1)]
    found: dict[str, float] = {"accuracy": accuracy(truth, decided)}
    if answers is not None:
        codes = labels.find(answers)
        # To a label that the copy does not know, it is as far as to any that it gives no chance at all.
        squares = np.where(codes < 0, 2 / len(labels), rho_squared(probabilities, codes))
        found["agreement"] = fidelity(answers, decided)
        found["test_rho"], found["test_risk"] = float(np.sqrt(squares).mean()), float(squares.mean())
    return found


def _together(chunks: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Chunks of rows and answers as one array of each."""
    rows, answers = zip(*chunks, strict=True)
    return np.concatenate(rows), np.concatenate(answers)


def peak_mb() -> float:
    """The most memory this process has held so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _check_test(test: Any, space: Space) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Encoded rows, their labels, and the original's answers where they were given."""
    if not isinstance(test, (tuple, list)) or len(test) not in (2, 3):
        raise SettingError("test", "a pair of rows and labels", repr(test)[:80])
    rows = space.read(test[0], "test")
    try:
        labels = [label_array(part) for part in test[1:]]
    except (TypeError, ValueError) as error:
        raise SettingError("test", "one label per row", str(error)) from error
    shapes = {part.shape for part in labels}
    if shapes != {(len(rows),)} or len(rows) == 0:
        found = f"rows of shape {rows.shape}, labels of shape {', '.join(map(str, shapes))}"
        raise SettingError("test", f"rows of {space.d} columns, and one label per row", found)
    return Encoding(space)(rows), labels[0], labels[1] if len(labels) > 1 else None
