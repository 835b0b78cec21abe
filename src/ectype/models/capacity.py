"""How large models are and how long they train, by the number of answers they learn from: all in one place.

research/tuning.md has the trials behind these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ectype._kernel import BoostingSettings

# Pieces of all inputs together, about, of a network that has to learn quickly.
MOST_PIECES = 512
# Trees in a round times inputs, up to which a round costs little beside the rest.
MOST_IN_A_ROUND = 600
# Fewer answers than this bear small trees only.
FEW = 600
# With so few inputs, boundaries bend most, and a third layer helps.
FLAT = 4
# How many labels an answer with scores is worth: a copy of 1400 of these bears as much training as one of 4200 labels.
SCORED = 3.0
# No limit on unlabelled rows beyond that of each family.
ANY = 2**62


@dataclass(frozen=True)
class NetworkConfig:
    """How a network is trained, and what it sees."""

    bins: int
    """Pieces of every number; 0 for none."""
    hidden: tuple[int, ...]
    steps: int
    batch: int
    rate: float = 2e-3
    decay: float = 0.2


@dataclass(frozen=True)
class Capacity:
    """Sizes as functions of the answers.

    >>> Capacity().network(1000, 20).steps, Capacity(0.1).network(1000, 20).steps
    (500, 50)
    """

    share: float = 1.0
    """The share of the usual steps and rounds: less where only the way matters."""
    free_rows: int = ANY
    """The most unlabelled rows that any student learns from."""
    worth: float = 1.0
    """How many labels an answer is worth."""

    @property
    def scored(self) -> bool:
        """Whether answers have scores: these hardly mislead, so that models may follow them more closely."""
        return self.worth > 1

    def labels(self, answers: int) -> int:
        """How many labels so many answers are worth."""
        return round(self.worth * answers)

    def network(self, answers: int, inputs: int) -> NetworkConfig:
        """A network that sees pieces of numbers, and finds thresholds; the more inputs, the fewer pieces of each."""
        room, rate = max(2, MOST_PIECES // inputs), 4e-3 if self.scored else 2e-3
        if answers < 2000:
            return NetworkConfig(min(8, room), (64, 32), self._some(500), 64, rate)
        if answers < 20_000:
            steps = max(3000 if self.scored else 2000, answers // 4)
            return NetworkConfig(min(16, room), (128, 64), self._some(steps), 64, rate)
        return NetworkConfig(min(16, room), (128, 64), self._some(answers // 12), 128, rate)

    def plain(self, answers: int, inputs: int) -> NetworkConfig:
        """A network that sees numbers alone, and finds smooth boundaries."""
        decay = min(0.02 * inputs, 0.2)
        if inputs <= FLAT:
            wide, steps = 64 if answers < 6000 else 128, 3000 if answers < 2000 else 4000
            return NetworkConfig(0, (wide, wide // 2, wide // 4), self._some(max(steps, answers // 4)), 64, 8e-3, decay)
        if answers < 2000:
            return NetworkConfig(0, (64, 32), self._some(1000), 64, 4e-3, decay)
        if answers < 20_000:
            return NetworkConfig(0, (128, 64), self._some(max(4000, answers // 2)), 64, 4e-3, decay)
        return NetworkConfig(0, (128, 64), self._some(answers // 10), 256, 4e-3, decay)

    def linear(self, answers: int) -> NetworkConfig:
        """A network without hidden layers: with enough answers, as free as an original that is one itself."""
        if answers < 2000:
            return NetworkConfig(0, (), self._some(2000), 64, 5e-2, 0.02)
        return NetworkConfig(0, (), self._some(max(10_000, answers // 8)), 64, 0.5, 0.0)

    def boosting(self, answers: int, inputs: int = 1, n_c: int = 2) -> BoostingSettings:
        """Trees that grow with the answers; fewer rounds where each has a tree for many classes, of many inputs."""
        few = _share(inputs, n_c)
        if self.scored and FEW <= answers < 20_000:
            return BoostingSettings(self._some(400 * few, 40), leaves=31, l2=3.0, share=1.0, bins=128)
        if answers < FEW:
            return BoostingSettings(self._some(60 * few, 20), leaves=8, share=1.0, bins=64)
        if answers < 6000:
            return BoostingSettings(self._some(200 * few, 40), leaves=31, share=1.0, bins=128)
        if answers < 20_000:
            return BoostingSettings(self._some(300 * few, 40), leaves=31, share=1.0, bins=128)
        return BoostingSettings(self._some(400 * few, 40), leaves=31 if answers < 60_000 else 63, share=1.0)

    def small(self, inputs: int = 1, n_c: int = 2) -> BoostingSettings:
        """Small trees beside the usual ones; scores bear many."""
        if not self.scored:
            return self.boosting(FEW - 1, inputs, n_c)
        return BoostingSettings(self._some(400 * _share(inputs, n_c), 40), leaves=8, rate=0.2, share=1.0, bins=128)

    def stumps(self, inputs: int = 1, n_c: int = 2) -> BoostingSettings:
        """Trees of a single split, whose sum takes every input by itself, as AdaBoost's does."""
        return BoostingSettings(self._some(400 * _share(inputs, n_c), 40), leaves=2, rate=0.3, share=1.0, bins=128)

    def chooser(self, inputs: int = 1, n_c: int = 2) -> BoostingSettings:
        """Trees that only have to find out where to ask."""
        return BoostingSettings(self._some(60 * _share(inputs, n_c), 10), leaves=16, share=1.0, bins=64)

    def _some(self, usual: float, least: int = 2) -> int:
        return max(2, round(self.share * max(usual, least)))


def _share(inputs: int, n_c: int) -> float:
    """The share of the usual rounds that is affordable.

    >>> _share(20, 3), _share(200, 20)
    (1.0, 0.15)
    """
    return min(1.0, MOST_IN_A_ROUND / (inputs * (1 if n_c == 2 else n_c)))
