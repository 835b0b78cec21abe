"""An engine by its name."""

from __future__ import annotations

from understudy import checks
from understudy.errors import SettingError
from understudy.workers.cluster import Dask
from understudy.workers.engines import Engine
from understudy.workers.local import Local


def open_engine(name: str, workers: int | None = None, scheduler: str | None = None) -> Engine:
    """The engine of this name: `local` or `dask`."""
    checks.choice("engine", name, ("local", "dask"))
    if name == "dask":
        return Dask(workers, scheduler)
    if scheduler is not None:
        raise SettingError("--scheduler", "nothing, for local processes", scheduler, "add --engine dask")
    return Local(workers)
