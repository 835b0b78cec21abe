"""Asking an original: in requests, each kept on disk, counted, and never beyond a budget."""

from ectype.queries import _prior_answers as prior_answers
from ectype.queries._answer_sources import AnswerSources, Source, sources_of
from ectype.queries._bisection import Part, failing_rows, parts
from ectype.queries._drift_test import MORE, ROWS, DriftTest, LabelClaims, check
from ectype.queries._merge import merge
from ectype.queries._prior_answers import (
    APART,
    CANDIDATES,
    HELD_OUT,
    OWN,
    REASONS,
    REMEMBERED,
    TAUGHT,
    AnswerFilter,
    PriorAnswers,
    reasons,
    sentence,
)
from ectype.queries._queries import Queries, allowance_of, check_fit, unused
from ectype.queries._quota import Allowance

__all__ = [
    "APART",
    "CANDIDATES",
    "HELD_OUT",
    "MORE",
    "OWN",
    "REASONS",
    "REMEMBERED",
    "ROWS",
    "TAUGHT",
    "Allowance",
    "AnswerFilter",
    "AnswerSources",
    "DriftTest",
    "LabelClaims",
    "Part",
    "PriorAnswers",
    "Queries",
    "Source",
    "allowance_of",
    "check",
    "check_fit",
    "failing_rows",
    "merge",
    "parts",
    "prior_answers",
    "reasons",
    "sentence",
    "sources_of",
    "unused",
]
