"""Tensors as bytes, as V2's extension for binary data and its gRPC write them: little-endian, row by row.

Numbers have the width of their datatype. Words have four bytes with their length before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, error

import numpy as np

from ectype.serve._http_types import Refusal

DTYPES = {
    "BOOL": np.dtype("u1"),  # any byte may come, and bool would take it as it is
    **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
WORDS = "BYTES"
LENGTH = Struct("<I")


class Tail:
    """The bytes behind the JSON of a request, taken tensor by tensor."""

    def __init__(self, data: bytes | memoryview = b""):
        self._data, self._at = memoryview(data), 0

    def take(self, size: int, where: str) -> memoryview:
        """The next bytes."""
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise Refusal(f"{where}: binary_data_size", f"at most the {len(found)} bytes that are left", size)
        self._at += size
        return found

    def end(self) -> None:
        """Refuse bytes that no tensor has taken."""
        if left := len(self._data) - self._at:
            raise Refusal("body", "the binary data of its inputs and no more", f"{left} further bytes")


def unpack_values(data: bytes | memoryview, datatype: str, n: int, where: str) -> np.ndarray | list[str]:
    """The n values that these bytes hold: an array of numbers, or a list of words.

    >>> unpack_values(pack_values([1.5, 2.0], "FP32"), "FP32", 2, "here")
    array([1.5, 2. ], dtype=float32)
    >>> unpack_values(pack_values(["a", "bc"], "BYTES"), "BYTES", 2, "here")
    ['a', 'bc']
    """
    if datatype == WORDS:
        return _words(data, n, where)
    dtype = DTYPES[datatype]
    if len(data) != n * dtype.itemsize:
        raise Refusal(f"{where}: binary data", f"{n * dtype.itemsize} bytes of {n} {datatype}", len(data))
    found = np.frombuffer(data, dtype)
    return found != 0 if datatype == "BOOL" else found


def pack_values(values: Sequence[object] | np.ndarray, datatype: str) -> bytes:
    """Values as bytes."""
    if datatype == WORDS:
        words = [str(value).encode(errors="backslashreplace") for value in values]
        return b"".join(LENGTH.pack(len(word)) + word for word in words)
    return np.asarray(values, DTYPES[datatype]).tobytes()


def _words(data: bytes | memoryview, n: int, where: str) -> list[str]:
    found, at, data = [], 0, bytes(data)
    try:
        for _ in range(n if n <= len(data) else 0):
            (length,) = LENGTH.unpack_from(data, at)
            at += LENGTH.size + length
            found.append(data[at - length : at].decode())
    except (error, UnicodeDecodeError):
        at = -1
    if at != len(data) or len(found) != n:
        raise Refusal(f"{where}: binary data", f"{n} words of UTF-8, each behind its length", "others")
    return found
