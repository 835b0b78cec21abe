"""Engines that run work: processes of this machine, or a Dask cluster. Both survive the death of a worker."""

from ectype.workers._base import MOST_DEATHS, Engine, one_thread
from ectype.workers._factory import open_engine
from ectype.workers._scheduler import run_jobs

__all__ = ["MOST_DEATHS", "Engine", "one_thread", "open_engine", "run_jobs"]
