"""A run's queries and answers: held-out rows, rows to train on, and which to ask next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from math import ceil

import numpy as np

from ectype._common.formatting import join_names
from ectype.algorithm.mlp import Network
from ectype.algorithm.sample_set import SampleSet
from ectype.certificate.repeats import Repeats
from ectype.certificate.user_sample import UserSample
from ectype.errors import TooManyLabelsError, warn
from ectype.ledger import Ledger, Purpose
from ectype.methods import committee
from ectype.methods.acquisition import LATER, Candidates
from ectype.models.base import Model
from ectype.models.blend import Blend
from ectype.models.self_distillation import BlendState
from ectype.models.training_rows import TrainingRows, hashed
from ectype.original import Answers, LabelledRows, Labels, Original, concatenate
from ectype.original.scores import refuse_other_labels
from ectype.plan.plan import Plan
from ectype.queries import Allowance, Queries
from ectype.rng import Stream
from ectype.runs import label_leakage
from ectype.runs.initialisation import Start
from ectype.runs.training_points import emphasised, points
from ectype.runs.user_rows import UserRows
from ectype.space import FeatureView, SeenRows, Space
from ectype.types import Answered

# How many of the latest answers trees see, unless batches grow: bounded, so that a batch costs the same late as early.
LATEST = 2000


# Of so many first answers, those that came once are hardly labels if they are this share; fewer than the least tell
# nothing. Of more, a regression with a few hundred values would repeat many.
TELLING, LEAST_TELLING, ONCE = 100, 40, 0.8


class QuerySession:
    """Asks an original about rows of a space, according to a plan, and keeps every answer that training may use."""

    def __init__(
        self,
        original: Original,
        space: Space,
        plan: Plan,
        start: Start,
        ledger: Ledger | None = None,
        own: UserRows | None = None,
        allowance: Allowance | None = None,
    ):
        self.original, self.space, self.plan, self.start, self.own = original, space, plan, start, own
        limits = {
            Purpose.TRAINING: start.training_queries(plan),
            Purpose.CERTIFICATE: plan.asked.certificate_n,
            Purpose.REPEAT: plan.repeats,
            **({} if own is None else {Purpose.USER_ROWS: own.queries}),
        }
        for purpose, n in start.checks.items():
            limits[purpose] = limits.get(purpose, 0) + n
        self.queries = Queries(original, space, limits, ledger, plan.asked.seed, allowance)
        self.view = FeatureView(space, plan.asked.exclude)
        self._seen = SeenRows()
        self._paid: list[LabelledRows] = []
        self._of_own: list[LabelledRows] = []
        self._taught: list[np.ndarray] = []
        self.learned = BlendState()
        """Under a bound on memory, what a blend has learned so far; the loop then has the points that are kept."""
        self._candidates: tuple[int, np.ndarray, np.ndarray] | None = None
        self._scouts: tuple[tuple[int, int], Blend] | None = None

    def stream(self, purpose: Stream, t: int = 0) -> np.random.Generator:
        """Random numbers for a purpose in round t."""
        return self.start.stream(self.plan.asked.seed, purpose, t)

    def abandon(self) -> None:
        """Say that nobody will want to go on from here."""
        if self.queries.ledger is not None:
            self.queries.ledger.abandon()

    def fresh(self, purpose: Purpose, n: int, stream: Stream, t: int = 0) -> Answered:
        """n fresh rows of the space with their answers."""
        if not n:
            return np.empty((0, self.space.d)), np.empty(0)
        rows, said = concatenate(self.queries.fresh(purpose, n, self.stream(stream, t)))
        self._compare(said)
        return rows, said.labels

    def opening(self) -> LabelledRows:
        """A batch of random rows: fresh ones of the space and, in their share, the user's own."""
        own = self._own(self.plan.batch, 0)
        rows, said = self._random(self.plan.batch - len(own), 0, own)
        self._compare(said)
        self._note(self.view(own), said)
        return rows, said

    def _random(self, n: int, t: int, own: np.ndarray) -> LabelledRows:
        """What the original says to n random rows of the space, and to these of the user's."""
        chunks = list(self.queries.fresh(Purpose.TRAINING, n, self.stream(Stream.DRAW, t)))
        return concatenate([*chunks, (own, self._said_of(own))] if len(own) else chunks)

    def _said_of(self, own: np.ndarray) -> Answers:
        """What the original says to rows of the user's, sent as they came."""
        assert self.own is not None
        present = self.own.present
        return self.queries.query(Purpose.TRAINING, own, lambda places: present(own[places]))

    def _compare(self, said: Answers) -> None:
        """Refuse scores that contradict the labels."""
        if said.scores is not None and self.original.declared is not None:
            refuse_other_labels(said.labels, said.scores, self.original.declared)

    def held_out(self) -> Answered:
        """The certificate's rows and answers."""
        return self.start.held_out(self)

    def first(self) -> LabelledRows:
        """The rows and answers that the loop begins with."""
        rows, said = self.start.first(self)
        self._teach(rows)
        self._keep((self.view(rows), said))
        return rows, said

    def _teach(self, rows: np.ndarray) -> None:
        """Note that these rows teach the copy, and need not be asked about again."""
        self._seen.add(rows)
        self._taught.append(hashed(rows[:, self.view.seen]))  # hashes alone: there may be many rows

    @cached_property
    def user_sample(self) -> UserSample:
        """The user's rows that were held out, with the original's labels."""
        assert self.own is not None
        return self.own.held_out.asked(self.queries, Purpose.USER_ROWS)

    @property
    def training_rows(self) -> TrainingRows:
        """The rows that taught the copy so far, and those of the user's own that might have."""
        pool = None if self.own is None else self.own.pool
        known = TrainingRows.of([], pool, [*map(self.space.names.index, self.plan.asked.exclude)])
        sample = np.empty(0, np.uint64) if self.own is None else hashed(self.own.held_out.rows)
        return replace(known, taught=np.unique(np.concatenate(self._taught)), sample=sample)

    def next(self, t: int, network: Network, labels: Labels) -> LabelledRows:
        """The encoded rows that round t asks about, with their answers."""
        found = self._next(t, network, labels)
        self._keep(found)
        return found

    def _keep(self, found: LabelledRows) -> None:
        if not self.plan.bounded:
            self._paid.append(found)

    def _next(self, t: int, network: Network, labels: Labels) -> LabelledRows:
        early = self.plan.draw in LATER and sum(self.plan.sizes[:t]) < self.start.random_first(self.plan)
        stored = self.original.stored is not None  # rows that cannot be chosen
        draw = "random" if early or stored else self.plan.draw
        copy = network if draw == "random" else self.copy_so_far(network, labels)
        own = self._own(self.plan.sizes[t], t, draw, copy)
        n = self.plan.sizes[t] - len(own)
        if self.plan.draw == "random" or stored:
            rows, said = self._random(n, t, own)
            self._teach(rows)
            self._note(self.view(own), said)
            return self.view(rows), said
        rows, X = self._drawn(t)
        distinct = self._seen.new(rows, at_least=n)
        chosen = self._chosen(t, draw, copy, rows[distinct], X[distinct], n)
        whole = self.own is not None and self.own.every.further is not None and len(own) > 0
        parts = [chosen, own] if whole else [np.concatenate([chosen, own])]
        self._teach(np.concatenate(parts))
        said = Answers.together(
            [self.queries.query(Purpose.TRAINING, parts[0]), *([self._said_of(own)] if whole else [])]
        )
        X = self.view(np.concatenate(parts))
        self._note(X[n:], said)
        return X, said

    def _note(self, own: np.ndarray, said: Answers) -> None:
        """Note which of the latest answers, the last ones, are about the user's own rows."""
        if len(own) and not self.plan.bounded:
            scores = None if said.scores is None else said.scores[-len(own) :]
            self._of_own.append((own, Answers(said.labels[-len(own) :], scores)))

    def _chosen(self, t: int, draw: str, copy: Model, rows: np.ndarray, X: np.ndarray, n: int) -> np.ndarray:
        """n rows to ask about, of these candidates."""
        scene = Candidates(copy, self.space, self.view, rows, X, self._seen, self.stream(Stream.CHOICE, t))
        return self.start.choices[draw](scene, n)

    def _own(self, n: int, t: int, draw: str = "random", copy: Model | None = None) -> np.ndarray:
        """Of n queries, those about the user's own rows, chosen like the others; rows between two are not their own."""
        if self.own is None:
            return np.empty((0, self.space.d))
        left = self.own.pool[self._seen.new(self.own.pool, at_least=0)]
        n = min(round(self.plan.rows_share * n), len(left))
        if not n or copy is None:
            return left[:n]
        return self._chosen(t, "margin" if draw == "boundary" else draw, copy, left, self.view(left), n)

    def unlabelled(self, t: int) -> np.ndarray:
        """Unlabelled rows for round t, encoded: its candidates, which cost no query."""
        return self._drawn(t)[1]

    def _drawn(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of round t, drawn once: queries are chosen from them, and the memory term rehearses them."""
        if self._candidates is None or self._candidates[0] != t:
            rows = self.space.sample(self.plan.candidates(t), self.stream(Stream.CANDIDATES, t))
            self._candidates = t, rows, self.view(rows)
        return self._candidates[1:]

    def points(self, told: Iterable[LabelledRows], labels: Labels) -> SampleSet:
        """Encoded rows and what the original said to them, as points to learn from."""
        return points(told, labels, self.original.declared)

    def paid(self, labels: Labels) -> SampleSet:
        """Every paid training point; not under a bound on memory."""
        return self.points(self._paid, labels)

    def emphasised(self, paid: SampleSet, labels: Labels) -> SampleSet:
        """Those points, with the ones of the user's own rows so often that they count as much as all others do."""
        if not self._of_own:
            return paid
        return emphasised(paid, self.points(self._of_own, labels))

    def copy_so_far(self, network: Network, labels: Labels) -> Model:
        """The network; where a committee chooses, scouts with it; under a bound on memory, the blend that learns."""
        if self.learned.blend is not None:
            return self.learned.blend
        if self.plan.draw != "committee":
            return network
        known = len(self._paid), len(labels)
        if self._scouts is None or self._scouts[0] != known:
            self._scouts = known, self._sent(network, labels)
        return replace(self._scouts[1], members=(network, *self._scouts[1].members[1:]))

    def _sent(self, network: Network, labels: Labels) -> Blend:
        """Scouts for the next round; where rounds are few, weighed by the answers of the last."""
        plan, before = self.plan, self._scouts
        latest = self._paid if plan.grows else self._paid[-ceil(LATEST / plan.batch) :]
        known = self.start.hints(self, labels, self.points(latest, labels))
        sent = committee.fit_committee(network, known, len(labels), plan.preset.effort, plan.asked.seed, plan.grows)
        if before is None or not plan.grows:
            return sent
        return committee.reweight(sent, before[1], self.points(self._paid[-1:], labels))

    def repeat(self, rows: np.ndarray, answers: np.ndarray) -> Repeats | None:
        """Ask a share of the first rows again, to see how consistently the original answers."""
        n = min(self.plan.repeats, len(rows))
        if not n:
            return None
        repeats = Repeats(n, int((self.queries.query_labels(Purpose.REPEAT, rows[:n]) != answers[:n]).sum()))
        if repeats.disagreed:
            warn(repeats.text)
        return repeats

    def warn_of_label(self, rows: np.ndarray, answers: np.ndarray) -> None:
        """Warn of a column that tells the label of nearly all of the first rows."""
        stored = self.original.stored is not None
        found = label_leakage.leaked(self.space, rows, answers, self.original.declared, stored)
        if found:
            warn(label_leakage.warning(found, len(answers)))

    def refuse_no_labels(self, answers: np.ndarray) -> None:
        """Refuse answers that are hardly labels, as nearly each came once: of a regression by mistake, or of an id."""
        first = answers[:TELLING]
        if self.original.declared is not None or len(first) < LEAST_TELLING:
            return
        found, counts = np.unique(first, return_counts=True)
        if (counts == 1).sum() < ONCE * len(first):
            return
        several = (
            f"{len(found)} different ones in the first {len(first)} answers, such as {join_names(found[:3].tolist())}"
        )
        hint = (
            "is it a regression, or does it answer an id? Make classes of its numbers, by a threshold or by bins "
            "(numpy.digitize), and copy that; if these are its labels, declare them all with classes=[...] or --classes"
        )
        raise TooManyLabelsError(f"{self.original.name}'s answers", "labels that come more than once", several, hint)

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
        warn(message)
