"""Originals: classifiers that may only be queried, for hard labels and, if the user says so, for scores."""

from understudy.original.base import CHUNK, Original, Said, Told, told_together
from understudy.original.labels import Labels, joined, label_array
from understudy.original.opening import open_original
from understudy.original.python import as_original

__all__ = [
    "CHUNK",
    "Labels",
    "Original",
    "Said",
    "Told",
    "as_original",
    "joined",
    "label_array",
    "open_original",
    "told_together",
]
