"""Originals: classifiers that may only be queried, for hard labels and, if the user says so, for scores."""

from ectype.original.base import CHUNK, Answers, LabelledRows, Original, concatenate
from ectype.original.labels import Labels, concatenate_labels, label_array
from ectype.original.python import as_original
from ectype.original.registry import open_original

__all__ = [
    "CHUNK",
    "Answers",
    "LabelledRows",
    "Labels",
    "Original",
    "as_original",
    "concatenate",
    "concatenate_labels",
    "label_array",
    "open_original",
]
