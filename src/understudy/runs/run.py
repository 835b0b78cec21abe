"""One run: its parts put together, the loop consumed, the answers kept."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil
from time import perf_counter
from typing import Any

import numpy as np

from understudy.algorithm.draws import FIRST, LATER, LATEST, POLICIES, Policy, Scene, Seen
from understudy.algorithm.memory import FUNCTION, Automatic, Fixed, Memory, OnceDropped
from understudy.algorithm.network import MLP, Network
from understudy.algorithm.samples import Samples
from understudy.algorithm.selection import drop_compressed, keep_all, keep_fresh
from understudy.algorithm.sequential import Step, sequential
from understudy.algorithm.training import Train, Trained
from understudy.certificate.bounds import HeldOut
from understudy.certificate.diagnosis import diagnosed, flattened, training_error
from understudy.certificate.differences import explained
from understudy.certificate.values import Certificate
from understudy.errors import SettingError, UnderstudyWarning
from understudy.models.base import Model
from understudy.models.classifier import CopyClassifier
from understudy.models.distillation import Workshop
from understudy.original import Labels, Original
from understudy.queries import Queries
from understudy.queries.ledger import REPEAT, Ledger
from understudy.runs.choosing import Outcome, check_kept, check_reachable, hand_out, workshop
from understudy.runs.evaluation import Truth
from understudy.runs.result import Record, Repeats, Result
from understudy.runs.settings import Settings
from understudy.space import Space
from understudy.space.encoding import View
from understudy.streams import Stream, stream


class _NewLabelError(Exception):
    """A label turned up that no earlier answer had, and that nobody declared."""


@dataclass
class Run:
    """One run: its parts put together, the loop consumed."""

    original: Original
    space: Space
    settings: Settings
    about: dict[str, Any]
    limited_by: str
    truth: Truth | None
    ledger: Ledger | None = None
    random_first: int = FIRST
    """After so many queries, rows may be asked about because the copy wavers."""
    choices: Mapping[str, Policy] = field(default_factory=lambda: POLICIES)
    """How rows are chosen, by the name in the settings."""

    def __post_init__(self) -> None:
        settings = self.settings
        limits = {"training": settings.queries, "certificate": settings.certificate_n, REPEAT: settings.repeats}
        self.queries = Queries(self.original, self.space, limits, self.ledger, settings.seed)
        self.view = View(self.space, settings.exclude)
        check_reachable(settings, self.view, None if self.original.declared is None else len(self.original.declared))
        self.asked = Seen()
        self.candidates: tuple[int, np.ndarray, np.ndarray] | None = None
        self.spared: dict[int, float] = {}
        self.paid: list[tuple[np.ndarray, np.ndarray]] = []

    def steps(self) -> Generator[Record, None, Result]:
        """A record per iteration, then the result."""
        clock, settings = perf_counter(), self.settings
        # The first answers come before the network, because they may be what tells the classes.
        self.measured = measured = self._measured()
        first_rows, first = self._first()
        self.asked.add(first_rows)
        self.latest = 0, self.view(first_rows), first
        self.paid.append(self.latest[1:])
        answers = np.concatenate([measured[1], first]) if len(measured[1]) else first
        self.labels = self._known_labels(answers)
        self._warn_of_absent(answers)
        repeats = self._repeat(np.concatenate([measured[0], first_rows]), answers)
        if settings.target and repeats is not None:
            repeats.allow(settings.target, settings.confidence)
        held_out = self.view(measured[0])
        history: list[Record] = []
        stopped, looks = self.limited_by, settings.looks
        for step in islice(self._rounds(), settings.iterations):
            held = HeldOut(held_out, self.labels.encode(measured[1]), self.labels)
            outcome = self._network(step, held)
            history.append(self._record(step, outcome.copy, outcome.certificate))
            yield history[-1]
            flat = settings.until_flat and flattened([record.fidelity or 0.0 for record in history])
            if settings.to != "mlp" and (flat or step.t + 1 in looks):
                outcome = hand_out(settings, self._workshop(step), held, self._copy, settings.stops)
            found = outcome.certificate
            if settings.target and found and step.t + 1 in looks and found.lower >= settings.target:
                stopped = "target"
                break
            if flat:
                stopped = "plateau"
                break
        if settings.to == "mlp":
            check_kept(settings, outcome.copy)
        copy, proof, diagnosis = outcome.copy, outcome.certificate, None
        if proof is not None and settings.target and stopped != "target":
            trained = training_error(copy.model, self._all_paid(), held_out)
            curve = [(record.queries, 1 - (record.fidelity or 0.0)) for record in history]
            diagnosis = diagnosed(settings.target, proof, curve, trained, repeats.ceiling if repeats else None)
        if proof is not None:
            shown = self.original.stored is None  # else they are rows of the user's
            proof = explained(proof, copy, self.space, held, measured[0], show=shown, seed=settings.seed)
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
            diagnosis=diagnosis,
            tried=[candidate.as_json() for candidate in outcome.tried],
        )

    def _copy(self, model: Model) -> CopyClassifier:
        """The classifier that a model is the inside of."""
        excluded = tuple(self.space.names.index(name) for name in self.settings.exclude)
        return CopyClassifier(model, self.labels.classes, self.view.space, excluded)

    def _network(self, step: Step, held: HeldOut) -> Outcome:
        """The network of an iteration as the copy, which is one of as many as there are looks."""
        settings, copy = self.settings, self._copy(Network(self.network, step.theta))
        if not settings.certificate_n:
            return Outcome(copy, None, [])
        return Outcome(copy, held.certify(copy.decide(held.X), settings.confidence, settings.stops), [])

    def _workshop(self, last: Step) -> Workshop:
        """What copies of other families are made of."""
        network = Network(self.network, last.theta)
        return workshop(self.settings, self.space, self.view, self._all_paid(), network, last.t + 1)

    def _all_paid(self) -> Samples:
        """Every point that was paid for to train with."""
        X, answers = together(iter(self.paid))
        return Samples(X, self.labels.encode(answers))

    def _rounds(self) -> Iterator[Step]:
        """The loop. A label that comes late gives the copy one more output, and the loop goes on from where it was."""
        self.network, theta = self._initial()
        latest: Step | None = None
        while True:
            try:
                for step in sequential(self._drawn, theta, after=latest, **self._policies()):
                    latest = step
                    yield step
            except _NewLabelError:
                assert latest is not None  # the first answers are known before the loop begins
                latest = self._widened(latest)

    def _initial(self) -> tuple[MLP, np.ndarray]:
        """The network, and where its training starts."""
        network = MLP(self.view.encoding.width, tuple(self.settings.layers), len(self.labels))
        return network, network.initial(self._stream(Stream.INITIAL))

    def _widened(self, step: Step) -> Step:
        """A step of a copy that knows the latest labels too."""
        before, self.labels = self.labels, Labels([*self.labels.classes.tolist(), *self.latest[2].tolist()])
        places = self.labels.encode(before.classes)
        self.network, theta = self.network.widened(step.theta, places, len(self.labels))
        return replace(step, S=Samples(step.S.X, places[step.S.y]), trained=step.trained._replace(theta=theta))

    def _policies(self) -> dict[str, Any]:
        """What the method named in the settings passes to the loop."""
        network, settings, train = self.network, self.settings, self.settings.trainer(self.network)
        if settings.method != "sequential":
            kept = keep_fresh if settings.method == "online" else keep_all
            return {"select": kept, "memory": Fixed(0.0), "train": self._remembered(train)}
        weight = settings.memory
        memory: Memory = Automatic() if weight == "automatic" else Fixed(weight if isinstance(weight, float) else 0.0)
        train = replace(train, ending=settings.ending)
        if settings.penalty == FUNCTION and weight not in ("none", 0.0):
            memory = OnceDropped(memory.initial, settings.n)
            train = replace(train, rehearse=lambda t: self._candidates(t)[1], room=settings.room + settings.candidates)
        select = drop_compressed(network, settings.delta or 0.0, settings.most_kept, settings.free)
        return {"select": select, "memory": memory, "train": self._remembered(train)}

    def _stream(self, purpose: int, t: int = 0) -> np.random.Generator:
        return stream(self.settings.seed, purpose, t)

    def _measured(self) -> tuple[np.ndarray, np.ndarray]:
        """The certificate's rows and answers."""
        n = self.settings.certificate_n
        if not n:
            return np.empty((0, self.space.d)), np.empty(0)
        return together(self.queries.fresh("certificate", n, self._stream(Stream.HELD_OUT)))

    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and answers that the loop begins with."""
        return together(self.queries.fresh("training", self.settings.n, self._stream(Stream.DRAW)))

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
        n, draw = self.settings.n, self.settings.draw or "random"
        if draw == "random" or self.original.stored is not None:
            chunks = self.queries.fresh("training", n, self._stream(Stream.DRAW, t))
            return together((self.view(rows), found) for rows, found in chunks)
        rows, X = self._candidates(t)
        distinct = self.asked.new(rows, at_least=n)
        policy = self.choices["random" if draw in LATER and t * n < self.random_first else draw]
        chosen = policy(self._scene(t, theta, rows[distinct], X[distinct]), n)
        self.asked.add(chosen)
        return self.view(chosen), self.queries.ask("training", chosen)

    def _scene(self, t: int, theta: np.ndarray, rows: np.ndarray, X: np.ndarray) -> Scene:
        """What a policy chooses by in iteration t."""
        rng = self._stream(Stream.CHOICE, t)
        return Scene(self.network, theta, self.space, self.view, rows, X, self._latest_paid, self.asked, rng)

    def _latest_paid(self) -> Samples:
        """The latest answers with their encoded rows, as many as a policy looks back on."""
        X, answers = together(iter(self.paid[-ceil(LATEST / self.settings.n) :]))
        return Samples(X, self.labels.encode(answers))

    def _candidates(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that iteration t may ask about, and that cost nothing until it does; and the same encoded.

        Those of an iteration are drawn once: where it asks, and where it remembers what it answered before.
        """
        if self.candidates is None or self.candidates[0] != t:
            rows = self.space.sample(self.settings.candidates, self._stream(Stream.CANDIDATES, t))
            self.candidates = t, rows, self.view(rows)
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
        if self.truth is not None and (labels.find(self.truth.labels) < 0).all():
            raise SettingError("test", f"labels among {labels}", f"labels such as {self.truth.labels[0].item()!r}")
        return labels

    def _repeat(self, rows: np.ndarray, answers: np.ndarray) -> Repeats | None:
        """Ask about a share of the first rows again."""
        n = min(self.settings.repeats, len(rows))
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
        tested = {} if self.truth is None else self.truth.measured(copy, self.labels)
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


def together(chunks: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Chunks of rows and answers as one array of each."""
    rows, answers = zip(*chunks, strict=True)
    return np.concatenate(rows), np.concatenate(answers)


def peak_mb() -> float:
    """The most memory this process has held so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
