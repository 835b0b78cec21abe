"""Wire types: what the V2 protocol, ONNX and NumPy call the types of columns, values and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ectype.space._columns import Boolean, Category, Column

if TYPE_CHECKING:
    import pandas as pd


class WireType(NamedTuple):
    """One type under each of its names."""

    v2: str
    """In the Open Inference Protocol V2."""
    onnx: str
    dtype: type
    """In NumPy."""


FLAG = WireType("BOOL", "BOOL", np.bool_)
WHOLE = WireType("INT64", "INT64", np.int64)
UNSIGNED = WireType("INT64", "UINT64", np.uint64)  # in the JSON of V2 both are digits
REAL = WireType("FP64", "DOUBLE", np.float64)
WORD = WireType("BYTES", "STRING", object)

# By NumPy's kind of an array.
_BY_KIND = {"b": FLAG, "i": WHOLE, "u": UNSIGNED, "f": REAL, "U": WORD}
# By pandas' `infer_dtype`. Values that are all missing ("empty") can only be strings.
_BY_VALUES = {
    "boolean": FLAG,
    "integer": WHOLE,
    "floating": REAL,
    "mixed-integer-float": REAL,
    "string": WORD,
    "date": WORD,
    "datetime": WORD,
    "datetime64": WORD,
    "empty": WORD,
}


def of_column(column: Column) -> WireType:
    """The type of a column's values in production, gaps aside."""
    if isinstance(column, Boolean):
        return FLAG
    if isinstance(column, Category):
        return WHOLE if all(isinstance(level, int) for level in column.levels) else WORD
    return WHOLE if column.whole and not column.is_float else REAL


def of_values(values: pd.Series | pd.Index) -> WireType | None:
    """The type of values as pandas has them, gaps aside; None if they have none."""
    from pandas.api.types import infer_dtype

    return _BY_VALUES.get(infer_dtype(values, skipna=True))


def spelled(values: pd.Series) -> pd.Series:
    """A column as it is, but dates as text in the form of ISO 8601, for originals that are not in this process."""
    from pandas.api.types import infer_dtype

    if infer_dtype(values, skipna=True) not in ("date", "datetime", "datetime64"):
        return values
    return values.astype(object).map(lambda value: value.isoformat(), na_action="ignore")


def of_labels(classes: np.ndarray) -> WireType:
    """The type of labels.

    >>> of_labels(np.array(["no", "yes"])).v2
    'BYTES'
    """
    return _BY_KIND[classes.dtype.kind]
