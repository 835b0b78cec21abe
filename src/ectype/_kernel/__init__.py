"""The native engine: networks, trees, radial functions and random rows in one small C library without dependencies.

Its source is `kernel.c`, `answers.c`, `trees.c`, `radial.c` and `rows.c`, compiled when the package is built; `sets.h`
includes `lanes.h` and `scores.h` once for every instruction set. `_ffi` loads the library, and the other modules are
its bindings. The same parameters, rows and seed give the same bits on every processor with fused multiply-add.
"""

from ectype._kernel._ffi import KERNEL_VERSION
from ectype._kernel._inference import NetworkInference
from ectype._kernel._piecewise_linear import PiecewiseLinear, quantile_pieces
from ectype._kernel._rbf import RbfKernel
from ectype._kernel._sampler import (
    DISCRETE_MARGINAL,
    NORMAL_MARGINAL,
    QUANTILE_MARGINAL,
    Marginal,
    RowSampler,
    hash_rows,
)
from ectype._kernel._training import ACTIVATIONS, KernelTraining, RowGroups, TrainingMethod
from ectype._kernel._trees import LEAF, Boosting, BoostingSettings, TreeArrays, TreeEnsemble, fit_extra_trees

__all__ = [
    "ACTIVATIONS",
    "DISCRETE_MARGINAL",
    "KERNEL_VERSION",
    "LEAF",
    "NORMAL_MARGINAL",
    "QUANTILE_MARGINAL",
    "Boosting",
    "BoostingSettings",
    "KernelTraining",
    "Marginal",
    "NetworkInference",
    "PiecewiseLinear",
    "RbfKernel",
    "RowGroups",
    "RowSampler",
    "TrainingMethod",
    "TreeArrays",
    "TreeEnsemble",
    "fit_extra_trees",
    "hash_rows",
    "quantile_pieces",
]

# The name that a skops file has of it.
PiecewiseLinear.__module__ = __name__
