"""Where a copy and its original differ: near the boundary or away from it, by labels, conditions and examples.

Everything is found on the rows of a certificate, which are already answered: there is no further query.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from ectype.algorithm.uncertainty import margins
from ectype.certificate.bounds import HeldOut, bound_of, expected_calibration_error, lower_bound
from ectype.certificate.certificate import Certificate, DifferenceRule, Differences, Example, Flip
from ectype.conditions.conditions import DecisionRegions, logic_of
from ectype.conditions.formatting import condition_of
from ectype.models.cart import fit_cart
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import CHUNK
from ectype.rng import Stream, stream
from ectype.space import UNKNOWN_LEVEL, Category, Date, Encoding, Space, is_frame
from ectype.types import Label

# The share of the space that is near the boundary; less where many margins are equal.
NEAR = 0.2
# Unlabelled rows that tell which margins are low; they cost no query.
FREE = 5000
# A tree of at most this size is readable.
DEPTH, LEAVES = 3, 8
RULES, EXAMPLES = 5, 10
# Conditions found on fewer disagreements than this would be chance.
FEWEST = 10
# Digits in a condition, relative to the column's standard deviation.
DIGITS = 3


@dataclass(frozen=True)
class Comparison:
    """Rows of a space's matrix with the original's labels, the copy's, and its class probabilities, if it has them."""

    rows: np.ndarray
    answers: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray | None = None

    @cached_property
    def margins(self) -> np.ndarray | None:
        """The copy's margins."""
        return None if self.probabilities is None else margins(np.asarray(self.probabilities, float))

    @property
    def differ(self) -> np.ndarray:
        """On which rows they differ; labels of different types always do."""
        return np.array([a != b for a, b in zip(self.answers.tolist(), self.predicted.tolist(), strict=True)], bool)


def has_probabilities(copy: object) -> bool:
    """Whether a copy has class probabilities, of more than one class."""
    return hasattr(copy, "predict_proba") and len(getattr(copy, "classes_", ())) > 1


def probabilities_of(copy: object, space: Space, rows: np.ndarray) -> np.ndarray | None:
    """The copy's class probabilities, for rows of a matrix; None if it has none, or only one class.

    >>> probabilities_of(lambda rows: rows[:, 0] > 0, Space.normal(1), np.zeros((1, 1)))
    """
    if not has_probabilities(copy):
        return None
    if isinstance(copy, CopyClassifier) and copy.space == space:  # the matrix itself, which may hold unknown levels
        return copy.model.probabilities(copy.encoding(rows))
    ask: Any = copy
    parts = [ask.predict_proba(space.present(rows[at : at + CHUNK])) for at in range(0, len(rows), CHUNK)]
    return np.concatenate(parts)


def margins_of(copy: object, space: Space, rows: np.ndarray) -> np.ndarray | None:
    """The copy's margins, for rows of a matrix; None if it has no probabilities."""
    chances = probabilities_of(copy, space, rows)
    return None if chances is None else margins(np.asarray(chances, float))


def known_levels(space: Space, rows: np.ndarray) -> np.ndarray:
    """Which rows of a matrix have only levels that the space knows: others cannot be shown, or asked about."""
    known = np.ones(len(rows), bool)
    for j, column in enumerate(space.columns):
        if isinstance(column, Category):
            known &= rows[:, j] != UNKNOWN_LEVEL
    return known


def boundary_margin(copy: object, space: Space, seed: int) -> float | None:
    """The margin below which a row is near the boundary: the lowest fifth over the space."""
    found = margins_of(copy, space, space.sample(FREE, stream(seed, Stream.MARGINS)))
    return None if found is None else float(np.quantile(found, NEAR))


def explain(
    proof: Certificate, copy: CopyClassifier, space: Space, held: HeldOut, rows: np.ndarray, *, show: bool, seed: int
) -> Certificate:
    """The certificate of a finished copy, with its differences; `show` allows rows to be shown as examples."""
    answers, given = held.labels.decode(held.codes), copy.classes[copy.decide(held.X)]
    compared = Comparison(rows, answers, given, probabilities_of(copy, space, rows))
    return add_differences(proof, compared, space, boundary_margin(copy, space, seed), show=show, seed=seed)


def add_differences(
    proof: Certificate, compared: Comparison, space: Space, low: float | None, *, show: bool = True, seed: int = 0
) -> Certificate:
    """A certificate with bounds near the boundary and away from it, and with the differences of the rows compared."""
    differ = compared.differ
    level = proof.confidence if proof.level is None else proof.level
    rules, note = rules_of(compared.rows, differ, space, level, seed)
    examples = _examples(compared, differ, space) if show else ()
    found = replace(
        proof, differences=Differences(int(differ.sum()), _flips(compared, differ), rules, note, tuple(examples))
    )
    if compared.probabilities is None or compared.margins is None:
        return found
    found = replace(found, ece=expected_calibration_error(compared.probabilities.max(axis=1), ~differ))
    if low is None:
        return found
    near = compared.margins < low
    if near.all() or not near.any():
        return found
    return replace(found, margin=low, near=bound_of(~differ[near], level), away=bound_of(~differ[~near], level))


def _flips(compared: Comparison, differ: np.ndarray) -> tuple[Flip, ...]:
    pairs: dict[tuple[Label, Label], int] = defaultdict(int)
    for pair in zip(compared.answers[differ].tolist(), compared.predicted[differ].tolist(), strict=True):
        pairs[pair] += 1
    return tuple(Flip(*pair, n) for pair, n in sorted(pairs.items(), key=lambda entry: -entry[1]))


def rules_of(
    rows: np.ndarray, differ: np.ndarray, space: Space, level: float, seed: int
) -> tuple[tuple[DifferenceRule, ...], str]:
    """Conditions under which they differ more often than overall, found on one half and measured on the other.

    Their bounds have a Bonferroni correction. With them comes the reason why there are none, if there are none.
    """
    found, n = int(differ.sum()), len(differ)
    if not found:
        return (), "they differ on none of the rows"
    halves = stream(seed, Stream.HALVES).permutation(n) % 2 == 0
    if differ[halves].sum() < FEWEST or differ[~halves].sum() < FEWEST or differ[halves].all():
        return (), f"{found} of {n} rows are too few, or all, to say where they lie"
    tree = _tree(rows[halves], differ[halves], space)
    measured = [(region, tree.holds(region, rows[~halves])) for region in tree.regions if region.code]
    confidence = 1 - (1 - level) / max(1, len(measured))
    rules, overall = [], found / n
    for region, holds in measured:
        inside, both = int(holds.sum()), int((holds & differ[~halves]).sum())
        lower = lower_bound(both, inside, confidence)
        if lower > overall:
            rules.append((both, DifferenceRule(condition_of(tree, region), inside, both / inside, lower)))
    if not rules:
        return (), f"no simple condition tells the {found} of {n} rows from the others"
    rules.sort(key=lambda entry: -entry[0])
    return tuple(rule for _, rule in rules[:RULES]), ""


def _tree(rows: np.ndarray, differ: np.ndarray, space: Space) -> DecisionRegions:
    """A shallow tree of which rows differ. They weigh as much as the others, so that leaves show clusters."""
    weights = np.where(differ, max(1, round((~differ).sum() / differ.sum())), 1)
    model = fit_cart(Encoding(space)(rows), differ, weights, depth=DEPTH, leaves=LEAVES)
    tree = logic_of(CopyClassifier(model, np.array([False, True]), space), DIGITS)
    assert isinstance(tree, DecisionRegions)
    return tree


def _examples(compared: Comparison, differ: np.ndarray, space: Space) -> list[Example]:
    """Rows on which they differ: one of every kind of flip in turn, those with the largest margins first."""
    sure = np.zeros(len(differ)) if compared.margins is None else compared.margins
    kinds: dict[tuple[Label, Label], list[int]] = defaultdict(list)
    shown = differ & known_levels(space, compared.rows)
    for row in np.flatnonzero(shown)[np.argsort(-sure[shown], kind="stable")].tolist():
        kinds[compared.answers[row].item(), compared.predicted[row].item()].append(row)
    frequent = sorted(kinds.values(), key=len, reverse=True)
    turns = chain.from_iterable(zip_longest(*frequent))
    chosen = list(islice((row for row in turns if row is not None), EXAMPLES))
    labels = zip(compared.answers[chosen].tolist(), compared.predicted[chosen].tolist(), strict=True)
    return [Example(row, *pair) for row, pair in zip(_records(space, compared.rows[chosen]), labels, strict=True)]


def _records(space: Space, rows: np.ndarray) -> list[dict[str, Any]]:
    """Rows as in production, as plain values by column name."""
    presented = space.present(rows)
    for j, column in enumerate(space.columns):
        if isinstance(column, Date) and is_frame(presented):
            spelled: Any = [None if value != value else column.word(value, exact=True) for value in rows[:, j].tolist()]
            presented = presented.assign(**{column.name: spelled})
    values = presented.astype(object).to_numpy() if is_frame(presented) else np.asarray(presented)
    return [dict(zip(space.names, map(_plain, row), strict=True)) for row in values.tolist()]


def _plain(value: object) -> object:
    value = value.item() if isinstance(value, np.generic) else value
    gap = type(value).__name__ == "NAType" or value != value
    return None if gap else value
