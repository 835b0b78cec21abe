"""Many models: a table of originals that are copied, checked and refreshed together, each in a directory of its own."""

from understudy.fleet.running import Outlook, run_fleet
from understudy.fleet.states import State, states
from understudy.fleet.table import Fleet, Model, read_fleet

__all__ = ["Fleet", "Model", "Outlook", "State", "read_fleet", "run_fleet", "states"]
