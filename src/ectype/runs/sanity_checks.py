"""Checks of the first answers: whether the original is the one of the given answers, and whether they are labels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ectype._common.formatting import join_names
from ectype.certificate.repeats import Repeats
from ectype.errors import PriorAnswersError, TooManyLabelsError, warn
from ectype.ledger import Purpose
from ectype.methods.asker import RoundAsker
from ectype.methods.prior import Prior
from ectype.original import Labels, Original
from ectype.plan.plan import Plan
from ectype.queries import DRIFT_TEST_FACTOR, DriftTest, Queries, run_drift_test
from ectype.rng import Stream
from ectype.runs.label_leakage import leaked, warning
from ectype.space import Space

# How many given answers that differ a message shows, and columns of each.
SHOWN, COLUMNS = 5, 8
# Of so many first answers, those that came once are hardly labels if they are this share; fewer than the least tell
# nothing. Of more, a regression with a few hundred values would repeat many.
TELLING, LEAST_TELLING, ONCE = 100, 40, 0.8


def recheck(prior: Prior, asker: RoundAsker) -> None:
    """Ask for a few given answers again, and refuse them all if more changed than noise explains."""
    if prior.answers is None:
        return
    try:
        _recognise(prior, asker)
    except PriorAnswersError:
        if asker.ledger is not None:
            asker.ledger.abandon()  # other answers, or none, make another run
        raise


def _recognise(prior: Prior, asker: RoundAsker) -> None:
    known, queries = prior.answers, asker.queries
    assert known is not None
    places = known.complete_places(queries.space)
    if not len(places):
        said = (
            "none of the given answers has all columns that the original takes: whether they are its own is not known"
        )
        warn(said)
        return
    rows, labels, rng = known.rows[places], known.answers.labels[places], asker.rng(Stream.CHECK)
    most = DRIFT_TEST_FACTOR * prior.again
    found = run_drift_test(queries, rows, labels, prior.again, most, rng, prior.deterministic, Purpose.RECHECK)
    _refuse_type(labels, found.answers)
    differ = found.answers != labels[found.places]
    shown = _differences(queries.space, rows[found.places[differ]], labels[found.places[differ]], found.answers[differ])
    if found.changed:
        _refuse(found, shown)
    if found.stayed:
        said = f"asked again, {found.stayed} of {len(found.places)} given answers are others now: {'; '.join(shown)}"
        warn(f"{said}. Too few to tell another original from noise")


def _refuse_type(given: np.ndarray, now: np.ndarray) -> None:
    """Refuse 1 where the original says True, and the like: copies answer in the original's type."""
    kinds = {given.dtype.kind, now.dtype.kind}
    if len(kinds) > 1 and kinds & {"b", "U"}:
        expected = f"labels such as {now[0].item()!r}, of the type that the original gives"
        raise PriorAnswersError(
            "answers", expected, f"{given[0].item()!r}", "write them as it does, or name its classes"
        )


def _refuse(found: DriftTest, shown: list[str]) -> None:
    expected = "answers of the same original"
    more = "" if found.flipped == len(shown) else f"; and {found.flipped - len(shown)} more"
    says = f"that it says otherwise to {found.flipped} of {len(found.places)} rows: {'; '.join(shown)}{more}"
    raise PriorAnswersError("answers", expected, says, "leave them out, or give those of this original, as it is now")


def _differences(space: Space, rows: np.ndarray, before: np.ndarray, now: np.ndarray) -> list[str]:
    """Rows that differ, readably: some of their columns, what was given, and what is said now."""
    import pandas as pd

    frame, told = pd.DataFrame(space.present(rows[:SHOWN]), columns=list(space.names)), list[str]()
    for at, row in enumerate(frame.to_dict("records")):
        named = [f"{name}={_value(value)}" for name, value in list(row.items())[:COLUMNS]]
        more = ", ..." if space.d > COLUMNS else ""
        told.append(f"{', '.join(named)}{more} was {before[at].item()!r} and is {now[at].item()!r}")
    return told


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def ask_again(plan: Plan, queries: Queries, rows: np.ndarray, answers: np.ndarray) -> Repeats | None:
    """Ask a share of the first rows again, to see how consistently the original answers.

    A target that its inconsistency puts out of reach is refused.
    """
    n = min(plan.ask.repeats, len(rows))
    if not n:
        return None
    repeats = Repeats(n, int((queries.query_labels(Purpose.REPEAT, rows[:n]) != answers[:n]).sum()))
    if repeats.disagreed:
        warn(repeats.text)
    if plan.asked.target:
        repeats.check_target(plan.asked.target, plan.asked.confidence)
    return repeats


def refuse_no_labels(original: Original, answers: np.ndarray) -> None:
    """Refuse answers that are hardly labels, as nearly each came once: of a regression by mistake, or of an id."""
    first = answers[:TELLING]
    if original.declared is not None or len(first) < LEAST_TELLING:
        return
    found, counts = np.unique(first, return_counts=True)
    if (counts == 1).sum() < ONCE * len(first):
        return
    several = f"{len(found)} different ones in the first {len(first)} answers, such as {join_names(found[:3].tolist())}"
    hint = (
        "is it a regression, or does it answer an id? Make classes of its numbers, by a threshold or by bins "
        "(numpy.digitize), and copy that; if these are its labels, declare them all with classes=[...] or --classes"
    )
    raise TooManyLabelsError(f"{original.name}'s answers", "labels that come more than once", several, hint)


def warn_of_absent_labels(original: Original, answers: np.ndarray) -> None:
    """Warn where the first answers lack classes that the original may give."""
    seen = Labels(answers)
    declared: Iterable[np.generic] = [] if original.declared is None else original.declared.classes
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


def warn_of_leaked_label(original: Original, space: Space, rows: np.ndarray, answers: np.ndarray) -> None:
    """Warn of a column that tells the label of nearly all of the first rows."""
    found = leaked(space, rows, answers, original.declared, original.stored is not None)
    if found:
        warn(warning(found, len(answers)))
