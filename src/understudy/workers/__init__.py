"""What work runs on: processes of this machine, or a Dask cluster, with the death of either in mind."""

from understudy.workers.driving import Settled, drive
from understudy.workers.engines import MOST_DEATHS, ONE_THREAD, Engine, one_thread
from understudy.workers.local import Local
from understudy.workers.opening import open_engine

__all__ = ["MOST_DEATHS", "ONE_THREAD", "Engine", "Local", "Settled", "drive", "one_thread", "open_engine"]
