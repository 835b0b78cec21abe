"""An engine by its name."""

from __future__ import annotations

from ectype._common import validation
from ectype.errors import SettingError
from ectype.workers._base import Engine
from ectype.workers._dask import DaskCluster
from ectype.workers._process_pool import ProcessPool


def open_engine(name: str, workers: int | None = None, scheduler: str | None = None) -> Engine:
    """The engine of this name: `local` or `dask`."""
    validation.choice("engine", name, ("local", "dask"))
    if name == "dask":
        return DaskCluster(workers, scheduler)
    if scheduler is not None:
        raise SettingError("--scheduler", "nothing, for local processes", scheduler, "add --engine dask")
    return ProcessPool(workers)
