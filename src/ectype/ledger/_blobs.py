"""Decode the blobs of a ledger: rows, codes of labels, scores, parameters. Anything else is a ValueError."""

from __future__ import annotations

import numpy as np


def matrix_of(blob: bytes, n: int) -> np.ndarray:
    """The n rows of a request; gaps are NaN."""
    rows = np.frombuffer(blob, np.float64).reshape(n, -1)
    if not rows.size or np.isinf(rows).any():
        raise ValueError(f"rows of shape {rows.shape}, or with numbers that are infinite")
    return rows


def codes_of(blob: bytes, n: int, labels: int) -> np.ndarray:
    """The codes of the labels of n rows, of so many labels that are known."""
    codes = np.frombuffer(blob, np.int32)
    if codes.shape != (n,) or ((codes < 0) | (codes >= labels)).any():
        raise ValueError(f"codes of shape {codes.shape} for {n} rows, or beyond {labels} labels")
    return codes


def scores_of(blob: bytes, n: int) -> np.ndarray:
    """The scores of n rows."""
    return _finite(np.frombuffer(blob, np.float32)).reshape(n, -1)


def parameters_of(blob: bytes) -> np.ndarray:
    """The parameters of a network, after a round of training."""
    return _finite(np.frombuffer(blob, np.float32)).copy()


def _finite(numbers: np.ndarray) -> np.ndarray:
    if not np.isfinite(numbers).all():
        raise ValueError("numbers that are infinite or none")
    return numbers
