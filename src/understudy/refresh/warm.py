"""A run that starts from an earlier one: from its network, and from those of its answers that are still right.

Which are, nobody can say without paying for them again. So each round a scout is trained on today's answers alone, from
the earlier network on, and where it still takes an earlier answer for the likeliest, that answer is learned from too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from understudy.algorithm.memory import Fixed
from understudy.algorithm.network import MLP
from understudy.algorithm.samples import Samples
from understudy.algorithm.selection import keep_all
from understudy.algorithm.sequential import Step
from understudy.algorithm.training import Trained, Trainer
from understudy.models.distillation import Workshop
from understudy.original import Labels
from understudy.refresh.check import Check
from understudy.runs.finished import Answered, Past
from understudy.runs.run import Run, together
from understudy.streams import Stream, stream

# A network that knows most of it already is taught in shorter steps.
SHORTER = 0.25


@dataclass(kw_only=True)
class WarmRun(Run):
    """A run that begins with the answers of a check, from an earlier run's network and answers."""

    past: Past
    check: Check
    held_out: Answered
    """Rows of the earlier run's certificate, with its answers, to be asked about again for this one's."""
    learned: Answered
    """Rows that the earlier run learned from, with their answers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds = (self.settings.iterations or 1) - 1
        self.queries.limits["training"] = len(self.check.places) + rounds * self.settings.n
        self.old = self.view(self.learned[0])

    def _stream(self, purpose: int, t: int = 0) -> np.random.Generator:
        return stream(self.settings.seed, purpose, t, self.past.seed)

    def _first(self) -> Answered:
        rows = self.past.rows[self.check.places]
        return rows, self.queries.ask("training", rows)  # known from the check

    def _measured(self) -> Answered:
        rows = self.held_out[0][: self.settings.certificate_n]
        if not len(rows):
            return super()._measured()
        again = rows, self.queries.ask("certificate", rows)
        more = self.settings.certificate_n - len(rows)
        return together(iter([again, *self.queries.fresh("certificate", more, self._stream(Stream.MORE_HELD_OUT))]))

    def _known_labels(self, answers: np.ndarray) -> Labels:
        labels = super()._known_labels(answers)
        return Labels([*labels.classes.tolist(), *self.past.result.copy.classes.tolist()])

    def _initial(self) -> tuple[MLP, np.ndarray]:
        places = self.labels.encode(self.past.result.copy.classes)
        return self.past.network.mlp.widened(self.past.network.theta, places, len(self.labels))

    def _policies(self) -> dict[str, Any]:
        train = self._trainer()

        def warm(theta: np.ndarray, S: Samples, lam: float, t: int) -> Trained:
            # Today's answers twice: they are right.
            return train(theta, self._still_right(S, t) | S | S, lam, t)

        return {"select": keep_all, "memory": Fixed(0.0), "train": self._remembered(warm)}

    def _trainer(self) -> Trainer:
        room = len(self.old) + 2 * self.queries.limits["training"]
        usual = self.settings.trainer(self.network)
        return replace(usual, rate=SHORTER * usual.rate, room=room)

    def _still_right(self, S: Samples, t: int) -> Samples:
        """The earlier answers that a scout, trained on today's, takes for the likeliest."""
        scout = self._trainer()(self._initial()[1], S, 0.0, t).theta
        old = Samples(self.old, self.labels.encode(self.learned[1]))
        return old.where(self.network.probabilities(scout, old.X).argmax(axis=1) == old.y)

    def _workshop(self, last: Step) -> Workshop:
        made = super()._workshop(last)
        return replace(made, paid=made.paid | self._still_right(last.S, last.t))
