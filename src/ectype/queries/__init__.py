"""Query an original within a budget, by purpose, and never pay twice; and reuse earlier answers."""

from ectype.queries._answer_sources import AnswerSources, Source, read_sources
from ectype.queries._bisection import RowSlice, failing_rows, request_slices
from ectype.queries._drift_test import DRIFT_TEST_FACTOR, DRIFT_TEST_ROWS, DriftTest, LabelClaims, run_drift_test
from ectype.queries._merge import merge_answers
from ectype.queries._prior_answers import (
    APART,
    CANDIDATES,
    HELD_OUT,
    LEFT_OUT_REASONS,
    OWN,
    REMEMBERED,
    TAUGHT,
    AnswerFilter,
    PriorAnswers,
    describe_answers,
    reasons_in_words,
)
from ectype.queries._queries import Queries, allowance_of, check_fit, unused_rows
from ectype.queries._quota import Allowance

__all__ = [
    "APART",
    "CANDIDATES",
    "DRIFT_TEST_FACTOR",
    "DRIFT_TEST_ROWS",
    "HELD_OUT",
    "LEFT_OUT_REASONS",
    "OWN",
    "REMEMBERED",
    "TAUGHT",
    "Allowance",
    "AnswerFilter",
    "AnswerSources",
    "DriftTest",
    "LabelClaims",
    "PriorAnswers",
    "Queries",
    "RowSlice",
    "Source",
    "allowance_of",
    "check_fit",
    "describe_answers",
    "failing_rows",
    "merge_answers",
    "read_sources",
    "reasons_in_words",
    "request_slices",
    "run_drift_test",
    "unused_rows",
]
