"""Label transfer: earlier rows get the answers of today, whatever the original has become."""

import numpy as np
import pytest

from ectype.algorithm.sample_set import SampleSet
from ectype.models.blend import FAMILIES
from ectype.models.capacity import Capacity
from ectype.models.families import FamilyLimits, fit
from ectype.models.label_transfer import LabelTransfer

LITTLE = Capacity(share=0.3)


def rings(X):
    """Three classes: rings about the origin."""
    return np.digitize((X**2).sum(axis=1), [1.0, 3.0]).astype(np.int32)


def samples(rng, n, answer):
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return SampleSet(X, answer(X))


def transfer(rng, answer, n_c, places):
    old = samples(rng, 600, answer)
    copy = fit(FAMILIES["blend"], old.X, np.searchsorted(places, old.y), len(places), FamilyLimits(effort=LITTLE))
    return LabelTransfer(old, copy, np.array(places), n_c, LITTLE, 0)


def right(found, answer):
    return (found.y == answer(found.X)).mean()


def test_answers_that_changed_are_found_and_the_others_are_kept(rng):
    def today(X):
        return np.where(X[:, 0] > 0.8, 0, rings(X)).astype(np.int32)

    known, new = transfer(rng, rings, 3, [0, 1, 2]), samples(rng, 120, today)
    alone = fit(FAMILIES["blend"], new.X, new.y, 3, FamilyLimits(effort=LITTLE))
    before = right(known.old, today)
    by_themselves = (alone.probabilities(known.old.X).argmax(axis=1) == today(known.old.X)).mean()
    assert right(known.carefully(new), today) > max(before, by_themselves) + 0.03
    assert right(known.quickly(new), today) > before + 0.03


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2]])
def test_an_original_that_changed_altogether_is_not_taken_for_the_earlier_one(rng, labels):
    def earlier(X):
        return np.minimum(rings(X), labels[-1]).astype(np.int32)

    def today(X):
        return (X[:, 0] > X[:, 1]).astype(np.int32)

    known, new = transfer(rng, earlier, 3, labels), samples(rng, 200, today)
    found = known.carefully(new)
    assert right(found, today) > 0.92
    assert found.p.shape == (600, 3)
    np.testing.assert_allclose(found.p.sum(axis=1), 1, atol=1e-5)


def test_a_class_that_is_new_and_one_that_is_gone(rng):
    def earlier(X):
        return np.minimum(rings(X), 1).astype(np.int32)

    known, new = transfer(rng, earlier, 3, [0, 1]), samples(rng, 200, rings)
    assert right(known.carefully(new), rings) > right(known.old, rings) + 0.1
    lost, fewer = transfer(rng, rings, 3, [0, 1, 2]), samples(rng, 200, earlier)
    found = lost.carefully(fewer)
    assert not (found.y == 2).any()
    assert right(found, earlier) > 0.93
