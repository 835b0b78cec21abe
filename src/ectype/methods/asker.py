"""Asking an original, round by round: rows to hold out, rows to begin with, and then those that a model chooses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ectype.certificate.user_sample import UserSample
from ectype.ledger import Ledger, Purpose
from ectype.methods.acquisition import LATER, POLICIES, Candidates, Policy, VoteModel, margin
from ectype.methods.prior import Prior
from ectype.methods.training_points import LabelledBatch
from ectype.models.training_rows import TrainingRows, hashed
from ectype.original import Answers, LabelledRows, Labels, concatenate
from ectype.original.scores import refuse_other_labels
from ectype.plan.plan import Plan
from ectype.queries import Queries
from ectype.rng import Stream, stream
from ectype.space import FeatureView, SeenRows
from ectype.types import Answered


def query_limits(plan: Plan, prior: Prior) -> dict[Purpose, int]:
    """The most queries of a run, by purpose."""
    own = {} if prior.user_rows is None else {Purpose.USER_ROWS: prior.user_rows.queries}
    rechecks = {} if prior.answers is None else {Purpose.RECHECK: prior.rechecks}
    return {
        Purpose.TRAINING: prior.training_queries(plan),
        Purpose.CERTIFICATE: plan.asked.certificate_n,
        Purpose.REPEAT: plan.ask.repeats + prior.rechecks,
        **own,
        **rechecks,
    }


class RoundAsker:
    """Chooses the rows of every round, and asks about them; it remembers which it asked about, and not the answers."""

    def __init__(self, plan: Plan, prior: Prior, queries: Queries):
        self.plan, self.prior, self.queries, self.space = plan, prior, queries, queries.space
        self.view = FeatureView(queries.space, plan.asked.exclude)
        self._seen = SeenRows()
        self._taught: list[np.ndarray] = []
        self._first: LabelledBatch | None = None
        self._candidates: tuple[int, np.ndarray, np.ndarray] | None = None

    @property
    def declared(self) -> Labels | None:
        """The labels that the original declares."""
        return self.queries.original.declared

    @property
    def stored(self) -> bool:
        """Whether the original is a table of stored answers, whose rows cannot be chosen."""
        return self.queries.original.stored is not None

    @property
    def ledger(self) -> Ledger | None:
        """Where rounds are kept."""
        return self.queries.ledger

    def rng(self, purpose: Stream, t: int = 0) -> np.random.Generator:
        """Random numbers for a purpose in round t."""
        return stream(self.plan.asked.seed, purpose, t, *self.prior.seed)

    def held_out(self) -> Answered:
        """The certificate's rows and answers: those to ask again, then fresh ones."""
        n = self.plan.asked.certificate_n
        rows = np.empty((0, self.space.d)) if self.prior.held_out is None else self.prior.held_out[:n]
        if not len(rows):
            return self._fresh(Purpose.CERTIFICATE, n, Stream.HELD_OUT)
        again = rows, self.queries.query_labels(Purpose.CERTIFICATE, rows)
        if len(rows) == n:
            return again
        more = self._fresh(Purpose.CERTIFICATE, n - len(rows), Stream.MORE_HELD_OUT)
        return np.concatenate([again[0], more[0]]), np.concatenate([again[1], more[1]])

    def user_sample(self) -> UserSample | None:
        """The user's own rows that are held out, with the original's labels; none if there are none."""
        users = self.prior.user_rows
        return None if users is None or not users.queries else users.held_out.ask(self.queries, Purpose.USER_ROWS)

    def open(self) -> LabelledRows:
        """The rows of the first round and their answers: those that are given, then random ones."""
        parts, own = list[LabelledRows](), 0
        if self.prior.answers is not None:
            parts.append(self.prior.answers.labelled_rows)
        if self.prior.opening is not None:
            parts.append((self.prior.opening, self.queries.query(Purpose.TRAINING, self.prior.opening)))
        elif self.plan.ask.batch:
            users = self._user_rows(self.plan.ask.batch, 0)
            rows, said = self._random(self.plan.ask.batch - len(users), 0, users)
            self._refuse_contradictions(said)
            parts.append((rows, said))
            own = len(users)
        rows, said = concatenate(parts)
        self._teach(rows)
        self._first = LabelledBatch(self.view(rows), said, own)
        return rows, said

    def ask(self, t: int, chooser: VoteModel | None) -> LabelledBatch:
        """The rows of round t and their answers; those of the first were asked by `open`, others a model chooses."""
        if t == 0:
            assert self._first is not None
            return self._first
        draw = "random" if self._early(t) or self.stored else self.plan.ask.draw
        own = self._user_rows(self.plan.ask.sizes[t], t, draw, chooser)
        n = self.plan.ask.sizes[t] - len(own)
        if self.plan.ask.draw == "random" or self.stored:
            rows, said = self._random(n, t, own)
            self._teach(rows)
            return LabelledBatch(self.view(rows), said, len(own))
        rows, X = self._drawn(t)
        distinct = self._seen.new(rows, at_least=n)
        assert chooser is not None
        chosen = self._chosen(t, draw, chooser, rows[distinct], X[distinct], n)
        return self._asked(chosen, own)

    def chooses(self, t: int) -> bool:
        """Whether a model chooses the rows of round t."""
        return 0 < t < self.plan.ask.rounds and not (self.plan.ask.draw == "random" or self._early(t) or self.stored)

    def unlabelled(self, t: int) -> np.ndarray:
        """Unlabelled rows for round t, encoded: its candidates, which cost no query."""
        return self._drawn(t)[1]

    @property
    def training_rows(self) -> TrainingRows:
        """The rows that taught the copy so far, and those of the user's own that might have."""
        own = self.prior.user_rows
        pool = None if own is None else own.pool
        known = TrainingRows.of([], pool, [*map(self.space.names.index, self.plan.asked.exclude)])
        sample = np.empty(0, np.uint64) if own is None else hashed(own.held_out.rows)
        return replace(known, taught=np.unique(np.concatenate(self._taught)), sample=sample)

    def _early(self, t: int) -> bool:
        """Whether too little is known in round t for a model to choose."""
        return self.plan.ask.draw in LATER and sum(self.plan.ask.sizes[:t]) < self.prior.random_first(self.plan)

    def _fresh(self, purpose: Purpose, n: int, purpose_stream: Stream) -> Answered:
        """n fresh rows of the space with their labels."""
        if not n:
            return np.empty((0, self.space.d)), np.empty(0)
        rows, said = concatenate(self.queries.fresh(purpose, n, self.rng(purpose_stream)))
        self._refuse_contradictions(said)
        return rows, said.labels

    def _random(self, n: int, t: int, own: np.ndarray) -> LabelledRows:
        """What the original says to n random rows of the space, and to these of the user's."""
        chunks = list(self.queries.fresh(Purpose.TRAINING, n, self.rng(Stream.DRAW, t)))
        return concatenate([*chunks, (own, self._said_of(own))] if len(own) else chunks)

    def _asked(self, chosen: np.ndarray, own: np.ndarray) -> LabelledBatch:
        """What the original says to rows that were chosen, and to these of the user's."""
        users = self.prior.user_rows
        apart = users is not None and users.every.further is not None and len(own) > 0
        parts = [chosen, own] if apart else [np.concatenate([chosen, own])]
        rows = np.concatenate(parts)
        self._teach(rows)
        told = [self.queries.query(Purpose.TRAINING, parts[0])]
        said = Answers.concatenate([*told, self._said_of(own)] if apart else told)
        return LabelledBatch(self.view(rows), said, len(own))

    def _said_of(self, own: np.ndarray) -> Answers:
        """What the original says to rows of the user's, sent as they came."""
        assert self.prior.user_rows is not None
        present = self.prior.user_rows.present
        return self.queries.query(Purpose.TRAINING, own, lambda places: present(own[places]))

    def _refuse_contradictions(self, said: Answers) -> None:
        """Refuse scores that contradict the labels."""
        if said.scores is not None and self.declared is not None:
            refuse_other_labels(said.labels, said.scores, self.declared)

    def _teach(self, rows: np.ndarray) -> None:
        """Note that these rows teach the copy, and need not be asked about again."""
        self._seen.add(rows)
        self._taught.append(hashed(rows[:, self.view.seen]))  # hashes alone: there may be many rows

    def _chosen(self, t: int, draw: str, chooser: VoteModel, rows: np.ndarray, X: np.ndarray, n: int) -> np.ndarray:
        """n rows to ask about, of these candidates."""
        scene = Candidates(chooser, self.space, self.view, rows, X, self._seen, self.rng(Stream.CHOICE, t))
        return self._policy(draw)(scene, n)

    def _policy(self, draw: str) -> Policy:
        return partial(margin, share=self.prior.margin_share) if draw == "margin" else POLICIES[draw]

    def _user_rows(self, n: int, t: int, draw: str = "random", chooser: VoteModel | None = None) -> np.ndarray:
        """Of n queries, those about the user's own rows, chosen like the others; rows between two are not their own."""
        users = self.prior.user_rows
        if users is None:
            return np.empty((0, self.space.d))
        left = users.pool[self._seen.new(users.pool, at_least=0)]
        n = min(round(self.plan.ask.rows_share * n), len(left))
        if not n or chooser is None:
            return left[:n]
        return self._chosen(t, "margin" if draw == "boundary" else draw, chooser, left, self.view(left), n)

    def _drawn(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of round t, drawn once: queries are chosen from them, and the memory term rehearses them."""
        if self._candidates is None or self._candidates[0] != t:
            rows = self.space.sample(self.plan.ask.candidates[t], self.rng(Stream.CANDIDATES, t))
            self._candidates = t, rows, self.view(rows)
        return self._candidates[1:]
