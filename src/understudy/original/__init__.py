"""Originals: classifiers that may only be queried for hard labels."""

from understudy.original.base import Labels, Original, label_array
from understudy.original.python import as_original, open_original

__all__ = ["Labels", "Original", "as_original", "label_array", "open_original"]
