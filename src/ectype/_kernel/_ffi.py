"""Bindings of the compiled kernel by ctypes: it is loaded once, and its structs are declared here."""

from __future__ import annotations

import ctypes as ct
import platform
import struct
import sys
from functools import cache
from pathlib import Path

import numpy as np

from ectype.errors import KernelError

KERNEL_VERSION = 4
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
PATH = Path(__file__).with_name(f"kernel{SUFFIX}")
# Instruction sets, by their numbers.
SETS = ("plain", "AVX2", "AVX-512")

POINTERS = (
    "theta", "first", "second", "X", "y", "targets", "weights", "starts", "counts", "places", "widths", "pieces"
)  # fmt: skip


def _fields(pointers: str, numbers: str, doubles: str | None = None) -> tuple[tuple[str, type], ...]:
    """Fields as C lays them out: pointers, whole numbers; a seed where chance has a part, then doubles."""
    return (
        *((name, ct.c_void_p) for name in pointers.split()),
        *((name, ct.c_int64) for name in numbers.split()),
        *(() if doubles is None else (("seed", ct.c_uint64), *((name, ct.c_double) for name in doubles.split()))),
    )


class TrainingStruct(ct.Structure):
    """The input of a training: `struct job` of kernel.c."""

    _fields_ = _fields(
        " ".join(POINTERS),
        "layers batch groups n_places order activation loss penalty stage_steps round_steps all_steps warm",
        "rate keep_first keep_second epsilon decay lam anneal",
    )


class PiecewiseStruct(ct.Structure):
    """Inputs that are made from columns: `struct pieces` of kernel.c."""

    _fields_ = _fields("column slope shift", "columns pieces")


class BoostingStruct(ct.Structure):
    """The input of boosting: `struct boosting` of trees.c."""

    _fields_ = _fields(
        "binned edges bins y targets weights directions scores feature threshold left right value",
        "n d classes leaves depth trees under_way",
        "rate l2 least share",
    )


class ExtraTreesStruct(ct.Structure):
    """The input of extremely randomised trees: `struct extra_trees` of trees.c."""

    _fields_ = _fields(
        "X y targets directions feature threshold left right value", "n d classes tries leaves depth", ""
    )


class ForestStruct(ct.Structure):
    """Trees for inference: `struct forest` of answers.c."""

    _fields_ = _fields(
        "feature threshold children values roots outputs depths tests ends leaves", "trees width classes d few"
    )


class SamplingStruct(ct.Structure):
    """The input of sampling: `struct drawing` of rows.c."""

    _fields_ = _fields("factor order kinds starts counts numbers whole low high gaps cuts", "columns scores rank", "")


_AT, _INT, _LONG = ct.c_void_p, ct.c_int32, ct.c_int64
_FUNCTIONS = {
    "kernel_version": (_INT, ()),
    "kernel_set": (_INT, (_INT,)),
    "training_size": (_LONG, (_AT,)),
    "training_begin": (None, (_AT, _AT)),
    "training_steps": (None, (_AT, _AT, _LONG)),
    "training_restart": (None, (_AT, _AT)),
    "training_read": (None, (_AT, _AT)),
    "network_size": (_LONG, (_AT, _INT, _INT)),
    "network_fold": (None, (_AT, _AT, _INT, _INT, _AT)),
    "network_answer": (None, (_AT, _INT, _INT, _AT, _INT, _AT, _AT, _LONG, _AT)),
    "bins_of": (None, (_AT, _LONG, _LONG, _AT, _AT)),
    "boosting_size": (_LONG, (_AT,)),
    "boosting_grow": (None, (_AT, _AT, _LONG, _LONG)),
    "forest_size": (_LONG, (_AT,)),
    "forest_begin": (None, (_AT, _AT, _LONG)),
    "forest_grow": (_LONG, (_AT, _AT, _LONG)),
    "trees_levels": (_INT, (_AT, _LONG, _AT)),
    "trees_size": (_LONG, (_AT,)),
    "trees_lay_out": (None, (_AT, _AT)),
    "trees_add": (None, (_AT, _AT, _LONG, _AT, _AT)),
    "rows_size": (_LONG, (_AT,)),
    "rows_draw": (None, (_AT, _AT, _LONG, _LONG, _AT)),
    "rows_factor": (_LONG, (_AT, _LONG, ct.c_double, _AT, _AT, _AT)),
    "rows_keys": (None, (_AT, _LONG, _LONG, _AT, _INT, _AT)),
    "radial_answer": (None, (_AT, _LONG, _AT, _LONG, _LONG, ct.c_float, _AT, _LONG, _AT)),
}


@cache
def library() -> ct.CDLL:
    """The kernel; an error says what was expected and found where it cannot be loaded."""
    return load(PATH)


def load(path: Path) -> ct.CDLL:
    """A compiled kernel, with the types of its functions."""
    hint = "install ectype again: its wheel has the library, and building it needs a C compiler or ziglang"
    expected = f"version {KERNEL_VERSION} of the compiled kernel, for {sys.platform} on {platform.machine()}"
    try:
        if not _is_whole(path.read_bytes()):
            raise OSError("a part of the file only")
        found = ct.CDLL(str(path))
        # Before all else, since another version may lack functions.
        version = found.kernel_version()
        if version != KERNEL_VERSION:
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


def flat(array: np.ndarray, kind: type) -> np.ndarray:
    """An array as the kernel reads it: of this type, row after row, and where numbers of the type may lie."""
    found: np.ndarray = np.ascontiguousarray(array, kind)
    return found if found.flags.aligned else found.copy()


def expect(name: str, fits: bool, expected: str, found: object = "something else") -> None:
    """Refuse what the kernel cannot compute with: it looks at no size itself."""
    if not fits:
        raise KernelError(name, expected, str(found))


def block(size: int) -> np.ndarray:
    """Memory for the kernel to compute in."""
    try:
        return np.empty(size, np.uint8)
    except MemoryError as error:
        raise KernelError("memory", f"{size} bytes", "less", "give fewer rows, or ask for smaller trees") from error


def address(array: np.ndarray | None) -> int | None:
    """Where an array begins."""
    return None if array is None else array.ctypes.data
