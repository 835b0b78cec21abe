"""A blend: several models whose opinions are multiplied, each raised to a power that held-out answers have chosen.

Powers above a member's due make the blend sure of itself, and powers below it doubtful: chosen for the likelihood of
held-out answers, they weigh the members and calibrate the probabilities at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ectype.algorithm.uncertainty import softmax
from ectype.models.base import Model

# No member may rule a class out: an opinion counts for at least this.
FLOOR = 1e-4
# How strongly powers are pulled to equal ones, in answers.
PULL = 10.0
# Together, equal powers are somewhat sharper than any one member.
TOGETHER = 1.2
ITERATIONS = 50


@dataclass(frozen=True)
class Blend:
    """Models, and the powers of their probabilities.

    >>> from ectype.models.linear import Linear
    >>> says = [Linear(np.zeros((1, 2)), np.log(p)) for p in ([0.5, 0.5], [0.2, 0.8])]
    >>> Blend(tuple(says), np.array([1.0, 1.0])).probabilities(np.zeros((1, 1))).round(2)
    array([[0.2, 0.8]])
    """

    members: tuple[Model, ...]
    powers: np.ndarray
    kind = "blend"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return self.members[0].n_c

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        return log_pool([member.probabilities(X) for member in self.members], self.powers)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays: those of its members, each with its number."""
        about, arrays = [], {"powers": self.powers}
        for k, member in enumerate(self.members):
            said, parts = member.state()
            about.append({"kind": member.kind, **said})
            arrays |= {f"{k}.{name}": array for name, array in parts.items()}
        return {"members": about}, arrays

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes."""
        from ectype.models.base import model_of

        members, powers = list[Model](), arrays["powers"]
        for k, said in enumerate(about["members"]):
            parts = {name.partition(".")[2]: part for name, part in arrays.items() if name.startswith(f"{k}.")}
            if said["kind"] in (cls.kind, "estimator"):
                raise ValueError(f"a member of kind {said['kind']!r}")
            members.append(model_of(said, parts, inputs, n_c))
        if not members or powers.shape != (len(members),) or not (np.isfinite(powers) & (powers >= 0)).all():
            raise ValueError(f"powers of shape {powers.shape} for {len(members)} members")
        return cls(tuple(members), powers)


def log_pool(opinions: Sequence[np.ndarray], powers: np.ndarray) -> np.ndarray:
    """The product of all opinions, each to its power."""
    return softmax(sum(power * np.log(np.maximum(p, FLOOR)) for p, power in zip(opinions, powers, strict=True)))


def fit_pool_weights(opinions: Sequence[np.ndarray], y: np.ndarray) -> np.ndarray:
    """The powers under which held-out answers are likeliest, none below 0, by Newton's method.

    >>> sure, wrong = np.array([[0.9, 0.1], [0.1, 0.9]] * 20), np.array([[0.1, 0.9], [0.9, 0.1]] * 20)
    >>> fit_pool_weights([sure, wrong], np.array([0, 1] * 20)).round(1).tolist()[1]
    0.0
    """
    logs = np.stack([np.log(np.maximum(p.astype(np.float64), FLOOR)) for p in opinions])
    k, n_c = len(logs), logs.shape[2]
    wanted = np.eye(n_c)[y] if y.ndim == 1 else y
    equal = np.full(k, TOGETHER / k)
    powers = equal
    for _ in range(ITERATIONS):
        p = softmax(np.tensordot(powers, logs, 1))
        means = np.einsum("knc,nc->kn", logs, p)
        slope = np.einsum("knc,nc->k", logs, p - wanted) + PULL * (powers - equal)
        curve = np.einsum("knc,lnc,nc->kl", logs, logs, p, optimize=True) - means @ means.T + PULL * np.eye(k)
        free = (powers > 0) | (slope < 0)
        step = np.zeros(k)
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        after = np.maximum(powers - step, 0.0)
        if np.abs(after - powers).max() < 1e-5:
            return after
        powers = after
    return powers
