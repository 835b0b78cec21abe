"""A run's queries and answers: held-out rows, rows to train on, and which to ask next."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from math import ceil

import numpy as np

from understudy.algorithm.draws import LATER, Scene
from understudy.algorithm.network import Network
from understudy.algorithm.samples import Samples
from understudy.errors import UnderstudyWarning
from understudy.models.base import Model
from understudy.models.blend import TOGETHER, Blend
from understudy.models.families import Family, boosted, fit
from understudy.models.rehearsal import Learned
from understudy.original import Labels, Original
from understudy.queries import Queries
from understudy.queries.ledger import REPEAT, Ledger
from understudy.runs.plan import Plan
from understudy.runs.result import Repeats
from understudy.runs.start import Start
from understudy.space import Space
from understudy.space.encoding import View
from understudy.space.rowkeys import Seen
from understudy.streams import Stream
from understudy.types import Answered

# How many of the latest answers trees see, unless batches grow: bounded, so that a batch costs the same late as early.
LATEST = 2000
# How far up the stack a warning points: to the caller of the generator that the run is.
CALLER = 6


class Inquiry:
    """Asks an original about rows of a space, according to a plan, and keeps every answer that training may use."""

    def __init__(self, original: Original, space: Space, plan: Plan, start: Start, ledger: Ledger | None = None):
        self.original, self.space, self.plan, self.start = original, space, plan, start
        limits = {
            "training": start.training_queries(plan),
            "certificate": plan.asked.certificate_n,
            REPEAT: plan.repeats,
        }
        self.queries = Queries(original, space, limits, ledger, plan.asked.seed)
        self.view = View(space, plan.asked.exclude)
        self._seen = Seen()
        self._paid: list[Answered] = []
        self.learned = Learned()
        """Under a bound on memory, what a blend has learned so far; the loop then has the points that are kept."""
        self._candidates: tuple[int, np.ndarray, np.ndarray] | None = None
        self._trees: tuple[tuple[int, int], Model] | None = None

    def stream(self, purpose: Stream, t: int = 0) -> np.random.Generator:
        """Random numbers for a purpose in round t."""
        return self.start.stream(self.plan.asked.seed, purpose, t)

    def fresh(self, purpose: str, n: int, stream: Stream, t: int = 0) -> Answered:
        """n fresh rows of the space with their answers."""
        if not n:
            return np.empty((0, self.space.d)), np.empty(0)
        return together(self.queries.fresh(purpose, n, self.stream(stream, t)))

    def held_out(self) -> Answered:
        """The certificate's rows and answers."""
        return self.start.held_out(self)

    def first(self) -> Answered:
        """The rows and answers that the loop begins with."""
        rows, answers = self.start.first(self)
        self._seen.add(rows)
        self._keep((self.view(rows), answers))
        return rows, answers

    def next(self, t: int, network: Network, labels: Labels) -> Answered:
        """The encoded rows that round t asks about, with their answers."""
        found = self._next(t, network, labels)
        self._keep(found)
        return found

    def _keep(self, found: Answered) -> None:
        if not self.plan.bounded:
            self._paid.append(found)

    def _next(self, t: int, network: Network, labels: Labels) -> Answered:
        n, draw = self.plan.sizes[t], self.plan.draw
        if draw == "random" or self.original.stored is not None:
            chunks = self.queries.fresh("training", n, self.stream(Stream.DRAW, t))
            return together((self.view(rows), found) for rows, found in chunks)
        rows, X = self._drawn(t)
        distinct = self._seen.new(rows, at_least=n)
        early = draw in LATER and sum(self.plan.sizes[:t]) < self.start.random_first(self.plan)
        copy = network if early else self.copy_so_far(network, labels)
        scene = Scene(
            copy, self.space, self.view, rows[distinct], X[distinct], self._seen, self.stream(Stream.CHOICE, t)
        )
        chosen = self.start.choices["random" if early else draw](scene, n)
        self._seen.add(chosen)
        return self.view(chosen), self.queries.ask("training", chosen)

    def unlabelled(self, t: int) -> np.ndarray:
        """Unlabelled rows for round t, encoded: its candidates, which cost no query."""
        return self._drawn(t)[1]

    def _drawn(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of round t, drawn once: queries are chosen from them, and the memory term rehearses them."""
        if self._candidates is None or self._candidates[0] != t:
            rows = self.space.sample(self.plan.candidates(t), self.stream(Stream.CANDIDATES, t))
            self._candidates = t, rows, self.view(rows)
        return self._candidates[1:]

    def paid(self, labels: Labels) -> Samples:
        """Every paid training point; not under a bound on memory."""
        return _samples(self._paid, labels)

    def copy_so_far(self, network: Network, labels: Labels) -> Model:
        """The network; where a committee chooses, its mean with trees fitted to the answers; or a blend that learns."""
        if self.learned.blend is not None:
            return self.learned.blend
        if self.plan.draw != "committee":
            return network
        known = len(self._paid), len(labels)
        if self._trees is None or self._trees[0] != known:
            latest = self._paid if self.plan.grows else self._paid[-ceil(LATEST / self.plan.batch) :]
            points, effort = _samples(latest, labels), self.plan.preset.effort
            how = effort.chooser(self.view.encoding.width, len(labels))
            family = Family(partial(boosted, how=how), 0)
            self._trees = known, fit(family, points.X, points.y, len(labels), seed=self.plan.asked.seed)
        return Blend((network, self._trees[1]), np.full(2, TOGETHER / 2))

    def repeat(self, rows: np.ndarray, answers: np.ndarray) -> Repeats | None:
        """Ask a share of the first rows again, to see how consistently the original answers."""
        n = min(self.plan.repeats, len(rows))
        if not n:
            return None
        repeats = Repeats(n, int((self.queries.ask(REPEAT, rows[:n]) != answers[:n]).sum()))
        if repeats.disagreed:
            warnings.warn(
                f"the original answered {repeats.disagreed} of {n} rows differently when asked again: no copy can be "
                f"expected to agree with it on more than {repeats.ceiling:.1%} of rows",
                UnderstudyWarning,
                stacklevel=CALLER,
            )
        return repeats

    def warn_of_absent(self, answers: np.ndarray) -> None:
        """Warn where the first answers lack classes that the original may give."""
        seen = Labels(answers)
        declared: Iterable[np.generic] = [] if self.original.declared is None else self.original.declared.classes
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
        warnings.warn(message, UnderstudyWarning, stacklevel=CALLER)


def together(chunks: Iterable[Answered]) -> Answered:
    """Chunks of rows and answers as one array of each."""
    rows, answers = zip(*chunks, strict=True)
    return np.concatenate(rows), np.concatenate(answers)


def _samples(paid: list[Answered], labels: Labels) -> Samples:
    X, answers = together(paid)
    return Samples(X, labels.encode(answers))
