"""Originals: classifiers that may only be queried for hard labels."""

from understudy.original.base import CHUNK, Original
from understudy.original.labels import Labels, label_array
from understudy.original.opening import open_original
from understudy.original.python import as_original

__all__ = ["CHUNK", "Labels", "Original", "as_original", "label_array", "open_original"]
