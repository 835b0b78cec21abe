"""What changed in an original: which answers flipped, the copy's errors before and after, and where."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ectype.certificate.differences import rules_of
from ectype.runs.pipeline import HeldOutRows
from ectype.runs.result import Result
from ectype.space import Space
from ectype.types import Json


def flips(before: Result, after: Result, old: np.ndarray, held_out: HeldOutRows, confidence: float) -> Json:
    """What changed, on the refreshed copy's held-out rows; answers are compared on those with an old answer."""
    rows, new = held_out.rows, held_out.answers
    old = old[: len(new)]
    found: Json = {"answers": answers_flipped(old, new[: len(old)])}
    if len(rows):
        decided = (result.copy.classes[result.copy.decide(held_out.X)] for result in (before, after))
        found["mistakes"] = mistakes(new, *decided)
    if len(old):
        differ = old != new[: len(old)]
        found["regions"] = regions(after.space, rows[: len(old)], differ, confidence)
    return found


def answers_flipped(old: np.ndarray, new: np.ndarray) -> Json:
    """How many answers to the same rows differ, and which label became which, the most frequent first."""
    pairs = Counter((a, b) for a, b in zip(old.tolist(), new.tolist(), strict=True) if a != b)
    became = [{"old": a, "new": b, "n": n} for (a, b), n in pairs.most_common()]
    return {"rows": len(new), "flipped": sum(pairs.values()), "became": became}


def mistakes(new: np.ndarray, before: np.ndarray, after: np.ndarray) -> Json:
    """The errors of the old and of the new copy, against the original's answers today; in all, and by class."""

    def both(which: np.ndarray) -> Json:
        wrong = {"before": int((before != new)[which].sum()), "after": int((after != new)[which].sum())}
        return {"rows": int(which.sum()), **wrong}

    classes = [{"label": label.item(), **both(new == label)} for label in np.unique(new)]
    return {**both(np.ones(len(new), bool)), "by_class": classes}


def regions(space: Space, rows: np.ndarray, flipped: np.ndarray, confidence: float) -> list[Json]:
    """Where flips are more frequent than elsewhere, as conditions over raw columns."""
    rules, _ = rules_of(rows, flipped, space, confidence, 0)
    return [{"where": rule.text, "rows": rule.n, "flipped": round(rule.share * rule.n)} for rule in rules]
