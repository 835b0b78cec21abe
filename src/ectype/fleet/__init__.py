"""Many models: a table of originals that are copied, checked and refreshed together, each in a directory of its own."""

from ectype.fleet._config import read_fleet
from ectype.fleet._page import PAGE_NAME, fleet_verdict
from ectype.fleet._quotas import read_spent
from ectype.fleet._runner import FleetStatus, most_queries, run_fleet
from ectype.fleet._state_store import DONE, ModelState, states

__all__ = [
    "DONE",
    "PAGE_NAME",
    "FleetStatus",
    "ModelState",
    "fleet_verdict",
    "most_queries",
    "read_fleet",
    "read_spent",
    "run_fleet",
    "states",
]
