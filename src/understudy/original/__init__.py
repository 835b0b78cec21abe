"""Originals: classifiers that may only be queried for hard labels."""

from understudy.original.base import Labels, Original
from understudy.original.python import as_original, open_original

__all__ = ["Labels", "Original", "as_original", "open_original"]
