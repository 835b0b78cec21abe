"""Copy a classifier you can only query, and certify how faithful the copy is.

Everything public is listed here; what needs scikit-learn or pydantic is imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ectype._version import __version__

# Not deferred: these functions share their packages' names, and must be bound after the packages themselves.
from ectype.export import export
from ectype.refresh import refresh

if TYPE_CHECKING:
    from ectype import errors, metrics, toy_problems
    from ectype.algorithm import memory, selection, training
    from ectype.algorithm.sequential import Step, sequential
    from ectype.cascades import cascade
    from ectype.certificate.certificate import Certificate
    from ectype.certificate.certify import certify
    from ectype.estimators import OnlineCopy, SequentialCopy, SinglePassCopy
    from ectype.original import Original, open_original
    from ectype.plan.settings import Settings
    from ectype.runs.api import copy_classifier, copy_steps
    from ectype.runs.frontier import frontier
    from ectype.runs.remake import remake
    from ectype.runs.result import Record, Result, load
    from ectype.space import Space

# Where each public name lives; a name that is a module itself has no second part.
_HOME = {
    "Certificate": "certificate.certificate:Certificate",
    "OnlineCopy": "estimators:OnlineCopy",
    "Original": "original:Original",
    "Record": "runs.result:Record",
    "Result": "runs.result:Result",
    "SequentialCopy": "estimators:SequentialCopy",
    "Settings": "plan.settings:Settings",
    "SinglePassCopy": "estimators:SinglePassCopy",
    "Space": "space:Space",
    "Step": "algorithm.sequential:Step",
    "cascade": "cascades:cascade",
    "certify": "certificate.certify:certify",
    "copy_classifier": "runs.api:copy_classifier",
    "copy_steps": "runs.api:copy_steps",
    "errors": "errors",
    "frontier": "runs.frontier:frontier",
    "load": "runs.result:load",
    "memory": "algorithm.memory",
    "metrics": "metrics",
    "open_original": "original:open_original",
    "remake": "runs.remake:remake",
    "selection": "algorithm.selection",
    "sequential": "algorithm.sequential:sequential",
    "toy_problems": "toy_problems",
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
    "toy_problems",
    "training",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ectype' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    home = import_module(f"ectype.{module}")
    globals()[name] = value = getattr(home, attribute) if attribute else home
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
