"""What work runs on: processes of this machine, or a Dask cluster, with the death of either in mind."""

from ectype.workers._base import MOST_DEATHS, Engine, one_thread
from ectype.workers._factory import open_engine
from ectype.workers._scheduler import run_jobs

__all__ = ["MOST_DEATHS", "Engine", "one_thread", "open_engine", "run_jobs"]
