"""The cascade: which rows a copy answers alone, certified, and which are asked of the original."""

from ectype.cascades._calibration_sample import kept
from ectype.cascades._cascade import AGREE, askable, cascade
from ectype.cascades._fallback import ALONE, ASKED, BY, COPY, ERROR, OUT, OUTAGES, ask_fallback
from ectype.cascades._routing import Routing

__all__ = [
    "AGREE",
    "ALONE",
    "ASKED",
    "BY",
    "COPY",
    "ERROR",
    "OUT",
    "OUTAGES",
    "Routing",
    "ask_fallback",
    "askable",
    "cascade",
    "kept",
]
