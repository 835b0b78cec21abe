"""What the copy is, and how alike it decides, beside what one would have without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ectype._kernel import LEAF
from ectype.algorithm.mlp import Network
from ectype.certificate.certificate import Certificate
from ectype.conditions.formatting import word
from ectype.ledger import Purpose
from ectype.models.base import Model, size_of
from ectype.models.blend import Blend
from ectype.models.linear import Linear
from ectype.models.rbf import RadialModel
from ectype.models.sklearn_model import SklearnModel
from ectype.models.trees import Trees
from ectype.original import Labels
from ectype.report._answers import PLAIN, PaidAnswers
from ectype.types import Label


@dataclass(frozen=True)
class BlendMember:
    """A model that the copy is made of, in words, and its share of the say."""

    name: str
    detail: str
    weight: float


@dataclass(frozen=True)
class Baseline:
    """Something else that one could have used, and how often it gives the original's label on the same rows."""

    name: str
    fidelity: float
    note: str


@dataclass(frozen=True)
class Verdict:
    """The head of the page."""

    members: list[BlendMember]
    bytes: int
    ms: float | None
    rivals: list[Baseline]
    kappa: float | None


def verdict(evidence: PaidAnswers) -> Verdict:
    """The verdict on a run's copy."""
    result = evidence.result
    model, proof = result.copy.model, result.certificate
    rivals = [] if proof is None else list(filter(None, (_boosting(evidence), _commonest(proof))))
    kappa = None if proof is None else kappa_of(confusion(proof))
    return Verdict(members_of(model), size_of(model), result.ms, rivals, kappa)


def members_of(model: Model) -> list[BlendMember]:
    """The members of a blend with their weights, the heaviest first; any other model is its only member."""
    if not isinstance(model, Blend):
        return [BlendMember(*_said(model), 1.0)]
    shares = (model.powers / (model.powers.sum() or 1.0)).tolist()
    found = [BlendMember(*_said(one), share) for one, share in zip(model.members, shares, strict=True)]
    return sorted(found, key=lambda one: -one.weight)


def _said(model: Model) -> tuple[str, str]:
    """A model in words."""
    if isinstance(model, Network):
        size = f"{model.mlp.size:,} parameters"
        if not model.mlp.hidden:
            return "linear model", size
        layers = "-".join(map(str, model.mlp.hidden))
        sees = ", sees its inputs in pieces" if model.pieces is not None else ""
        return "neural network", f"layers {layers}, {size}{sees}"
    if isinstance(model, Trees):
        leaves, trees = int((model.feature == LEAF).sum()), len(model.roots)
        if trees == 1 and model.link == "shares":
            return "decision tree", f"{leaves:,} leaves"
        name = "forest" if model.link == "shares" else "stumps" if leaves <= 2 * trees else "boosted trees"
        return name, f"{trees:,} trees, {leaves:,} leaves"
    if isinstance(model, RadialModel):
        return "radial functions", f"{len(model.centres):,} centres"
    if isinstance(model, Linear):
        return "linear model", f"{model.weights.size + model.biases.size:,} parameters"
    assert isinstance(model, SklearnModel)
    return type(model.estimator).__name__, "as scikit-learn fitted it"


def confusion(proof: Certificate) -> Counter[tuple[Label, Label]]:
    """How many rows have which label of the original, and which of the copy."""
    found = Counter({(label, label): round(one.estimate * one.n) for label, one in proof.per_class.items()})
    for flip in proof.differences.flips if proof.differences else ():
        found[flip.original, flip.copy] += flip.n
    return found


def kappa_of(counts: Counter[tuple[Label, Label]]) -> float | None:
    """Cohen's kappa: agreement beyond what two classifiers with these label frequencies reach by chance.

    >>> kappa_of(Counter({(0, 0): 45, (1, 1): 45, (0, 1): 5, (1, 0): 5}))
    0.8
    >>> kappa_of(Counter({(0, 0): 9}))
    """
    n, labels = sum(counts.values()), {label for pair in counts for label in pair}
    alike = sum(counts[label, label] for label in labels) / max(n, 1)
    one = {label: sum(counts[label, other] for other in labels) for label in labels}
    two = {label: sum(counts[other, label] for other in labels) for label in labels}
    chance = sum(one[label] * two[label] for label in labels) / max(n, 1) ** 2
    return None if not n or chance >= 1 else round((alike - chance) / (1 - chance), 12)


def _commonest(proof: Certificate) -> Baseline | None:
    """What always answering the commonest label would reach."""
    if not proof.per_class:
        return None
    label, most = max(proof.per_class.items(), key=lambda entry: entry[1].n)
    return Baseline(
        f"Always “{word(label)}”", most.n / proof.sampled, "the commonest label of the original, whatever the input"
    )


def _boosting(evidence: PaidAnswers) -> Baseline | None:
    """What plain boosting of the same answers reaches on the same rows."""
    compared, model = evidence.compared, evidence.plain
    if compared is None or model is None:
        return None
    codes = Labels(evidence.result.copy.classes).find(compared.answers)
    decided = model.probabilities(evidence.encoding(compared.rows)).argmax(axis=1)
    which = "the answers of the refresh alone" if evidence.result.refreshed else _which(evidence)
    note = f"gradient boosting fitted to {which}: {evidence.rounds(PLAIN)} rounds of {PLAIN.leaves} leaves"
    unseen = evidence.result.settings.get("exclude")
    note += f"; it sees {', '.join(unseen)} too" if unseen else ""
    return Baseline("Plain boosting", float(np.mean(decided == codes)), note)


def _which(evidence: PaidAnswers) -> str:
    """The answers that there are: a run in memory lets go of what is beyond its bound."""
    assert evidence.training is not None
    there = len(evidence.training[1])
    return "the same answers" if there >= evidence.result.queries[Purpose.TRAINING] else f"the first {there:,} answers"
