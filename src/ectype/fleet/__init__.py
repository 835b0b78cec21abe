"""Many models: a table of originals that are copied, checked and refreshed together, each in a directory of its own."""

from ectype.fleet._config import read_fleet
from ectype.fleet._page import NAME, verdict
from ectype.fleet._quotas import spent
from ectype.fleet._runner import FleetStatus, most_queries, run_fleet
from ectype.fleet._state_store import DONE, ModelState, states

__all__ = [
    "DONE",
    "NAME",
    "FleetStatus",
    "ModelState",
    "most_queries",
    "read_fleet",
    "run_fleet",
    "spent",
    "states",
    "verdict",
]
