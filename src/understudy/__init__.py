"""Copy a classifier you can only query, and certify how faithful the copy is.

Everything public is listed here; what needs scikit-learn or pydantic is imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from understudy._version import __version__

# Not deferred: these functions share their packages' names, and must be bound after the packages themselves.
from understudy.export import export
from understudy.refresh import refresh

if TYPE_CHECKING:
    from understudy import errors, metrics, toys
    from understudy.algorithm import memory, selection, training
    from understudy.algorithm.sequential import Step, sequential
    from understudy.certificate.certify import certify
    from understudy.certificate.values import Certificate
    from understudy.estimators import OnlineCopy, SequentialCopy, SinglePassCopy
    from understudy.original import Original, open_original
    from understudy.routing.cascade import cascade
    from understudy.runs.copying import copy_classifier, copy_steps
    from understudy.runs.frontier import frontier
    from understudy.runs.remaking import remake
    from understudy.runs.result import Record, Result, load
    from understudy.runs.settings import Settings
    from understudy.space import Space

# Where each public name lives; a name that is a module itself has no second part.
_HOME = {
    "Certificate": "certificate.values:Certificate",
    "OnlineCopy": "estimators:OnlineCopy",
    "Original": "original:Original",
    "Record": "runs.result:Record",
    "Result": "runs.result:Result",
    "SequentialCopy": "estimators:SequentialCopy",
    "Settings": "runs.settings:Settings",
    "SinglePassCopy": "estimators:SinglePassCopy",
    "Space": "space:Space",
    "Step": "algorithm.sequential:Step",
    "cascade": "routing.cascade:cascade",
    "certify": "certificate.certify:certify",
    "copy_classifier": "runs.copying:copy_classifier",
    "copy_steps": "runs.copying:copy_steps",
    "errors": "errors",
    "frontier": "runs.frontier:frontier",
    "load": "runs.result:load",
    "memory": "algorithm.memory",
    "metrics": "metrics",
    "open_original": "original:open_original",
    "remake": "runs.remaking:remake",
    "selection": "algorithm.selection",
    "sequential": "algorithm.sequential:sequential",
    "toys": "toys",
    "training": "algorithm.training",
}

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
    "cascade",
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
    "remake",
    "selection",
    "sequential",
    "toys",
    "training",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    home = import_module(f"understudy.{module}")
    globals()[name] = value = getattr(home, attribute) if attribute else home
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
