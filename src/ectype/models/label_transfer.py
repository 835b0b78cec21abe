"""Label transfer: what an earlier run's answers say of the original as it is today.

Most of them still hold, and some do not. A teacher finds out which: it is fitted to today's answers, and sees beside
the inputs what the earlier copy says of them. So it has to learn no more than where the original changed. It labels the
earlier run's rows anew, for copies of any family to learn from. Half of its members do not see the earlier copy, and
today's answers weigh them all (`ectype.models.blend`): an original that has nothing in common with the earlier
one is copied as if there were none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ectype.algorithm.sample_set import SampleSet
from ectype.models.base import Model
from ectype.models.blend import REFITTED, fit_out_of_sample, log_pool, member_families, select_members
from ectype.models.capacity import Capacity
from ectype.models.families import Family, FamilyLimits, fit, fit_boosting

# What the earlier copy says counts for at least this; and how large the inputs are that say it.
FLOOR, SCALE = 1e-3, 0.5
# How much the earlier answer to a row counts beside what the earlier copy says of it.
ANSWER = 0.5


@dataclass(frozen=True)
class LabelTransfer:
    """The earlier run's rows, what is known of their earlier answers, and the earlier copy."""

    old: SampleSet
    """Rows with their earlier answers, coded as today's are."""
    copy: Model
    """The earlier copy, or a model of the earlier answers."""
    places: np.ndarray
    """Today's code of each of its classes."""
    n_c: int
    """Today's number of classes."""
    effort: Capacity
    seed: int

    def quickly(self, new: SampleSet) -> SampleSet:
        """The rows with the likeliest answers of today, by a few trees."""
        how = self.effort.chooser(self._beside.shape[1], self.n_c)
        trees = fit(Family(partial(fit_boosting, how=how), 0), self._inputs(new.X), new.y, self.n_c, seed=self.seed)
        return SampleSet(self.old.X, trees.probabilities(self._beside).argmax(axis=1).astype(np.int32))

    def carefully(self, new: SampleSet) -> SampleSet:
        """The rows with the probabilities of today's answers, by members of all kinds."""
        limits, members = FamilyLimits(effort=self.effort), member_families(len(new))
        seen, told, names = (new.X, self._inputs(new.X)), (self.old.X, self._beside), list(members)
        trials = [fit_out_of_sample(members, X, new.targets, self.n_c, limits, self.seed) for X in seen]
        worth, powers = select_members([said for one in trials for said in one[0]], new.targets[trials[0][1]])
        opinions = []
        for sees, which in (divmod(k, len(names)) for k in worth):
            model, name = trials[sees][2].get(names[which]), names[which]
            if model is None or len(new) < REFITTED:
                model = fit(members[name], seen[sees], new.targets, self.n_c, limits, self.seed)
            opinions.append(model.probabilities(told[sees]))
        chances = log_pool(opinions, powers).astype(np.float32)
        return SampleSet(self.old.X, chances.argmax(axis=1).astype(np.int32), chances)

    @cached_property
    def _beside(self) -> np.ndarray:
        """What the teacher sees of the earlier rows: their answers are known better than by the earlier copy."""
        said = self._said(self.old.X)
        said += ANSWER * (self.old.soft(self.n_c) - said)
        return _with(self.old.X, said)

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        return _with(X, self._said(X))

    def _said(self, X: np.ndarray) -> np.ndarray:
        """What the earlier copy says; it knows nothing of classes that are new."""
        said = np.zeros((len(X), self.n_c))
        said[:, self.places] = self.copy.probabilities(X)
        return said


def _with(X: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Inputs, with logarithms of probabilities beside them; of two classes, one says all."""
    logs = np.log(np.maximum(said, FLOOR))
    logs -= logs.mean(axis=1, keepdims=True)
    return np.concatenate([X, SCALE * logs[:, 1 if logs.shape[1] == 2 else 0 :]], axis=1, dtype=np.float32)
