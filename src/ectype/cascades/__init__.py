"""The cascade: which rows a copy answers alone, certified, and which are asked of the original."""

from ectype.cascades._calibration_sample import has_held_out_rows
from ectype.cascades._cascade import DEFAULT_AGREEMENT, Cascade, CascadeDecision, cascade, queryable_original
from ectype.cascades._fallback import (
    ANSWER_WITH_COPY,
    ANSWERED_BY,
    BY_COPY,
    BY_ORIGINAL,
    BY_OUTAGE,
    ON_OUTAGE,
    RAISE_ERROR,
    ask_fallback,
)
from ectype.cascades._routing import Routing

__all__ = [
    "ANSWERED_BY",
    "ANSWER_WITH_COPY",
    "BY_COPY",
    "BY_ORIGINAL",
    "BY_OUTAGE",
    "DEFAULT_AGREEMENT",
    "ON_OUTAGE",
    "RAISE_ERROR",
    "Cascade",
    "CascadeDecision",
    "Routing",
    "ask_fallback",
    "cascade",
    "has_held_out_rows",
    "queryable_original",
]
