"""The compiled kernel, loaded once; what Python passes to it, as C lays it out."""

from __future__ import annotations

import ctypes as ct
import sys
from functools import cache
from pathlib import Path

import numpy as np

from understudy.errors import KernelError

VERSION = 1
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
PATH = Path(__file__).with_name(f"kernel{SUFFIX}")
# Instruction sets, by their numbers.
SETS = ("plain", "AVX2", "AVX-512")

_POINTERS = ("theta", "first", "second", "X", "y", "targets", "weights", "starts", "counts", "places", "widths")
_NUMBERS = ("layers", "batch", "groups", "n_places", "order", "activation", "loss", "penalty")
_STEPS = ("stage_steps", "round_steps", "all_steps", "warm")
_DOUBLES = ("rate", "keep_first", "keep_second", "epsilon", "decay", "lam", "anneal")


class Job(ct.Structure):
    """What a training is given: `struct job` of kernel.c."""

    _fields_ = (
        *((name, ct.c_void_p) for name in _POINTERS),
        *((name, ct.c_int64) for name in (*_NUMBERS, *_STEPS)),
        ("seed", ct.c_uint64),
        *((name, ct.c_double) for name in _DOUBLES),
    )


_FUNCTIONS = {
    "kernel_version": (ct.c_int32, ()),
    "kernel_set": (ct.c_int32, (ct.c_int32,)),
    "training_size": (ct.c_int64, (ct.c_void_p,)),
    "training_begin": (None, (ct.c_void_p, ct.c_void_p)),
    "training_steps": (None, (ct.c_void_p, ct.c_void_p, ct.c_int64)),
    "training_restart": (None, (ct.c_void_p, ct.c_void_p)),
    "training_read": (None, (ct.c_void_p, ct.c_void_p)),
    "network_size": (ct.c_int64, (ct.c_void_p, ct.c_int32, ct.c_int32)),
    "network_fold": (None, (ct.c_void_p, ct.c_void_p, ct.c_int32, ct.c_int32, ct.c_void_p)),
    "network_answer": (
        None,
        (
            ct.c_void_p,
            ct.c_int32,
            ct.c_int32,
            ct.c_int32,
            ct.c_void_p,
            ct.c_void_p,
            ct.c_int64,
            ct.c_void_p,
        ),
    ),
}


@cache
def library() -> ct.CDLL:
    """The kernel; an error says what was expected and found where it cannot be loaded."""
    return load(PATH)


def load(path: Path) -> ct.CDLL:
    """A compiled kernel, with the types of its functions."""
    hint = "install understudy again: its wheel has the library, and building it needs a C compiler or ziglang"
    try:
        found = ct.CDLL(str(path))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise KernelError(str(path), "the compiled kernel for this platform", str(error), hint) from error
    if found.kernel_version() != VERSION:
        raise KernelError(str(path), f"version {VERSION} of the kernel", found.kernel_version(), hint)
    return found


def use(wanted: str | None = None) -> str:
    """Use an instruction set, or the best one below it that this processor has; the best of all if none is named.

    >>> use("plain"), use() in SETS
    ('plain', True)
    """
    return SETS[library().kernel_set(-1 if wanted is None else SETS.index(wanted))]


def address(array: np.ndarray | None) -> int | None:
    """Where an array begins."""
    return None if array is None else array.ctypes.data
