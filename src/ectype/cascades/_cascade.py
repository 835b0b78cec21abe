"""A classifier that answers with the copy where that is certified to agree, and asks the original elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from ectype._common import validation
from ectype.cascades import _formatting as formatting
from ectype.cascades._calibration_sample import (
    predict_with_margins,
    sample_from_rows,
    sample_from_run,
    sample_from_space,
)
from ectype.cascades._fallback import ANSWERED_BY, BY_COPY, BY_ORIGINAL, BY_OUTAGE, ON_OUTAGE, RAISE_ERROR, ask_fallback
from ectype.cascades._routing import Routing
from ectype.certificate.certificate import Bound
from ectype.errors import OutageError, SettingError
from ectype.models.copy_classifier import CopyClassifier, FittedClassifier
from ectype.original import Labels, Original, as_original
from ectype.queries import RowSlice, request_slices
from ectype.runs.result import Result
from ectype.space import Space, as_pandas, is_frame, select_columns
from ectype.types import Rows, Table

# How often a copy has to agree where it answers alone, and how many fresh rows usually show that.
DEFAULT_AGREEMENT, FRESH = 0.995, 5000


@dataclass(frozen=True)
class CascadeDecision:
    """Labels, and who gave each: `copy`, `original`, or `outage`: the copy, because the original gave no answer."""

    labels: np.ndarray
    by: np.ndarray


class Cascade(FittedClassifier):
    """A fitted classifier made of a copy and its original; `cascade` makes one, and says what the attributes mean."""

    def __init__(
        self,
        copy: CopyClassifier,
        original: Original,
        space: Space,
        routing: Routing,
        on_outage: str = RAISE_ERROR,
        cost: float | None = None,
    ):
        self.copy, self.original, self.space, self.routing = copy, original, space, routing
        self.on_outage, self.cost = validation.choice("on_outage", on_outage, ON_OUTAGE), cost

    def decide(self, rows: Rows) -> CascadeDecision:
        """The labels of rows, and who gave each."""
        labels, by, _ = self._decide(rows)
        return CascadeDecision(labels, ANSWERED_BY[by])

    def predict(self, rows: Rows) -> np.ndarray:
        """The labels of rows: the copy's where it answers alone, and the original's elsewhere."""
        return self._decide(rows)[0]

    def predict_proba(self, rows: Rows) -> np.ndarray:
        """The copy's probabilities where it answers; where the original does, 1 for its label, and 0 for others."""
        labels, by, chances = self._decide(rows)
        theirs = by == BY_ORIGINAL
        chances[theirs] = np.eye(len(self.classes_))[Labels(self.classes_).encode(labels[theirs])]
        return chances

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        names = ("copy", "original", "space", "routing", "on_outage", "cost")
        return {name: getattr(self, name) for name in names}

    @property
    def classes_(self) -> np.ndarray:
        """The copy's labels, sorted."""
        return self.copy.classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self.space.d

    @property
    def alone(self) -> float:
        """The share of rows that the copy answers alone; 0 if nothing could be certified."""
        return self.routing.alone

    @property
    def threshold(self) -> float:
        """The least margin with which the copy answers alone."""
        return self.routing.threshold

    @property
    def agree(self) -> float:
        """How often, at least, copy and original agree on the rows that the copy answers alone."""
        return self.routing.agree

    @property
    def agreement(self) -> Bound | None:
        """How often they agree on the rows that the copy answers alone."""
        return self.routing.agreement

    @property
    def overall(self) -> Bound:
        """How often the cascade gives the original's label, on all rows."""
        return self.routing.overall

    @property
    def errors(self) -> dict[str, float]:
        """How often it gives another label than the original: on rows answered `alone`, and on `all` rows."""
        alone = 0.0 if self.agreement is None else 1 - self.agreement.estimate
        return {"alone": alone, "all": 1 - self.overall.estimate}

    @property
    def saved(self) -> float:
        """What 1,000 rows cost less: the rows that are not asked, times `cost` if it was given."""
        return formatting.EVERY * self.alone * (1.0 if self.cost is None else self.cost)

    def __repr__(self) -> str:
        return f"Cascade({formatting.short(self.routing)})"

    def __str__(self) -> str:
        return formatting.cascade_text(self)

    def _repr_html_(self) -> str:
        return formatting.cascade_html(self)

    def _decide(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, codes of who gave them, and the copy's probabilities."""
        table, matrix = self._read(rows)
        chances, sure = predict_with_margins(self.copy, matrix)
        alone = self.routing.answers(sure)
        labels, by = self.classes_[chances.argmax(axis=1)], np.full(len(matrix), BY_COPY, np.int8)
        places = np.flatnonzero(~alone)
        for part, answers in self._ask(lambda part: table(places[part]), len(places)):
            by[places[part]] = BY_OUTAGE if answers is None else BY_ORIGINAL
            if answers is not None:
                labels = labels.astype(np.result_type(labels, answers), copy=False)  # a longer word, perhaps
                labels[places[part]] = answers
        return labels, by, chances

    def _ask(self, present: Callable[[RowSlice], Table], n: int) -> list[tuple[RowSlice, np.ndarray | None]]:
        """The original's answers, part by part; None where the copy's are to stand in."""
        found, failed = ask_fallback(self.original, present, n, Labels(self.classes_))
        if isinstance(failed, OutageError) and self.original.reopen is not None:
            self.original = self.original.reopen()  # one that was out is not asked again
        if failed is not None and self.on_outage == RAISE_ERROR:
            raise failed
        return list(zip(request_slices(n, self.original.request_rows), found, strict=True))

    def _read(self, rows: Rows) -> tuple[Callable[[np.ndarray], Table], np.ndarray]:
        """Some of the rows as the original takes them, and all of them as a matrix."""
        plain, matrix = as_pandas(rows), self.space.read(rows, "cascade.predict")
        if self.space.frame and is_frame(plain):  # as they came, also with levels and columns that the space lacks
            taken = select_columns(plain, self.space.names, "cascade.predict")
            frame = (plain if self.original.names is None else taken).reset_index(drop=True)
            return lambda places: frame.iloc[places], matrix
        return lambda places: self.space.present(matrix[places]), matrix


def cascade(
    result: Result,
    original: object,
    agree: float = DEFAULT_AGREEMENT,
    *,
    confidence: float = 0.95,
    rows: Rows | None = None,
    n: int | None = None,
    on_outage: str = RAISE_ERROR,
    cost: float | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Cascade:
    """A classifier that answers with the copy where that is certified to agree, and asks the original elsewhere.

    The copy answers alone where its margin is at least a threshold and the row is inside the space. Of the rows that it
    answers alone, it gives the original's label on a share of at least `agree`, with this confidence, which holds for
    the threshold chosen. On all rows the cascade agrees more often: the other answers are the original's own.

    Parameters
    ----------
    result : of `copy_classifier`, `remake`, `refresh` or `load`. Where the held-out rows of its certificate are there,
        in a ledger or in memory, they choose the threshold, and nothing is asked.
    original : what was copied; it is asked about all other rows.
    agree : the least share of rows answered alone on which copy and original agree.
    rows : unlabelled rows of your own, to be asked instead: then shares and bounds are about the population that they
        are a random sample of. Rows that taught the copy are left out, and counted in `routing`.
    n : so many fresh rows of the space, to be asked instead, where the run's held-out rows are too few or not kept.
    on_outage : where the original gives no answer, `error` raises its error, and `copy` takes the copy's own answer,
        which is not certified; `decide` tells which rows that happened to.
    cost : of asking about one row, for `saved`.

    Attributes
    ----------
    alone : the share of rows that the copy answers alone. If nothing could be certified, it is 0, and `print` says what
        would help.
    threshold, agreement, overall, errors, saved : the least margin; bounds of the agreement on rows answered alone, and
        on all; how often the two differ; what 1,000 rows cost less. `routing` has all of it.

    Examples
    --------
    >>> from ectype import Space, copy_classifier
    >>> original = lambda rows: rows[:, 0] > 0
    >>> result = copy_classifier(original, Space.normal(1), budget=300, preset="fast")
    >>> both = cascade(result, original, agree=0.998)
    >>> both.alone > 0.9, both.predict([[-1.0], [-0.001], [1.0]]).tolist()
    (True, [False, False, True])
    >>> both.decide([[-1.0], [-0.001]]).by.tolist()
    ['copy', 'original']
    """
    agree, confidence = validation.fraction("agree", agree), validation.fraction("confidence", confidence)
    seed, boxed = validation.count("seed", seed, 0), queryable_original(original)
    if rows is not None and n is not None:
        raise SettingError("rows and n", "one of them", "both")
    paid = None if cost is None else validation.number("cost", cost, "a number of at least 0", 0, inf)
    sample = sample_from_run(result) if rows is None and n is None else None
    if rows is not None:
        sample = sample_from_rows(result, boxed, rows, seed, progress)
    elif sample is None:
        sample = sample_from_space(result, boxed, _rows_to_ask(n), seed, progress)
    return Cascade(result.copy, boxed, result.space, Routing.of(sample, agree, confidence), on_outage, paid)


def _rows_to_ask(n: int | None) -> int:
    """The number of fresh rows to ask; refused if it was not given, since they cost queries."""
    if n is None:
        hint = f"say how many rows may be asked, such as n={FRESH}, or give rows of your own"
        raise SettingError("n", "held-out rows of the run, in a ledger or in memory", "none", hint)
    return validation.count("n", n, 1)


def queryable_original(original: object, where: str = "original") -> Original:
    """An original that can be asked about any row."""
    found = as_original(original)
    if found.stored is not None:
        raise SettingError(where, "an original that can be asked about new rows", "stored answers")
    return found
