"""What is passed around, by name: rows as users have them, labels, JSON. pandas is not imported for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Label: TypeAlias = bool | int | float | str
"""A class, as an original answers it."""

Classes: TypeAlias = Iterable[Label] | None
"""The labels that an original may answer; None where it tells them itself, or where they are what it answers."""

Frame: TypeAlias = "pd.DataFrame"
Series: TypeAlias = "pd.Series"

Table: TypeAlias = "np.ndarray | Frame"
"""Rows as a classifier takes them in production."""

Rows: TypeAlias = "Table | Sequence[Sequence[Label]]"
"""Rows as a user may pass them."""

Json: TypeAlias = dict[str, Any]
"""A JSON object, of any content."""
