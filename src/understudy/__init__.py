"""Copy a classifier you can only query, and prove how alike the copy decides.

Everything public is listed here; what needs JAX, scikit-learn or pydantic is imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from understudy._version import __version__

# Not deferred: these functions share their modules' names, and must be bound after the import system binds the modules.
from understudy.export import export
from understudy.sequential import Step, sequential

if TYPE_CHECKING:
    from understudy import errors, memory, metrics, selection, toys, training
    from understudy.certificate import Certificate
    from understudy.certifying import certify
    from understudy.copying import copy_classifier, copy_steps
    from understudy.estimators import OnlineCopy, SequentialCopy, SinglePassCopy
    from understudy.frontiers import frontier
    from understudy.original import Original, open_original
    from understudy.refreshing import refresh
    from understudy.result import Record, Result, load
    from understudy.settings import Settings
    from understudy.space import Space

_HOME = {
    "Certificate": "certificate",
    "OnlineCopy": "estimators",
    "Original": "original",
    "Record": "result",
    "Result": "result",
    "SequentialCopy": "estimators",
    "Settings": "settings",
    "SinglePassCopy": "estimators",
    "Space": "space",
    "certify": "certifying",
    "copy_classifier": "copying",
    "copy_steps": "copying",
    "frontier": "frontiers",
    "load": "result",
    "open_original": "original",
    "refresh": "refreshing",
}
_MODULES = ("errors", "memory", "metrics", "selection", "toys", "training")

__all__ = [
    "Certificate",
    "OnlineCopy",
    "Original",
    "Record",
    "Result",
    "SequentialCopy",
    "Settings",
    "SinglePassCopy",
    "Space",
    "Step",
    "__version__",
    "certify",
    "copy_classifier",
    "copy_steps",
    "errors",
    "export",
    "frontier",
    "load",
    "memory",
    "metrics",
    "open_original",
    "refresh",
    "selection",
    "sequential",
    "toys",
    "training",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"understudy.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"understudy.{name}")
    else:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
