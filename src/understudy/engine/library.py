"""The compiled kernel, loaded once; what Python passes to it, as C lays it out."""

from __future__ import annotations

import ctypes as ct
import platform
import struct
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

POINTERS = ("theta", "first", "second", "X", "y", "targets", "weights", "starts", "counts", "places", "widths")
_NUMBERS = ("layers", "batch", "groups", "n_places", "order", "activation", "loss", "penalty")
_STEPS = ("stage_steps", "round_steps", "all_steps", "warm")
_DOUBLES = ("rate", "keep_first", "keep_second", "epsilon", "decay", "lam", "anneal")


class Job(ct.Structure):
    """What a training is given: `struct job` of kernel.c."""

    _fields_ = (
        *((name, ct.c_void_p) for name in POINTERS),
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
    expected = f"version {VERSION} of the compiled kernel, for {sys.platform} on {platform.machine()}"
    try:
        if not _is_whole(path.read_bytes()):
            raise OSError("a part of the file only")
        found = ct.CDLL(str(path))
        # Before all else, since another version may lack functions.
        version = found.kernel_version()
        if version != VERSION:
            raise OSError(f"version {version}")
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise KernelError(str(path), expected, str(error), hint) from error
    return found


def _is_whole(data: bytes) -> bool:
    """Whether a library has all that its header says. Linux ends the process where it has not; other systems look."""
    if data[:5] != b"\x7fELF\x02" or len(data) < 64:
        return True
    start, size, n = *struct.unpack_from("<Q", data, 0x20), *struct.unpack_from("<HH", data, 0x36)
    if len(data) < start + size * n:
        return False
    segments = (struct.unpack_from("<QQQQ", data, start + size * i + 8) for i in range(n))
    return all(offset + length <= len(data) for offset, _, _, length in segments)


def use(wanted: str | None = None) -> str:
    """Use an instruction set, or the best one below it that this processor has; the best of all if none is named.

    >>> use("plain"), use() in SETS
    ('plain', True)
    """
    return SETS[library().kernel_set(-1 if wanted is None else SETS.index(wanted))]


def address(array: np.ndarray | None) -> int | None:
    """Where an array begins."""
    return None if array is None else array.ctypes.data
