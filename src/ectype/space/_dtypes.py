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


BOOL_TYPE = WireType("BOOL", "BOOL", np.bool_)
INT64_TYPE = WireType("INT64", "INT64", np.int64)
UINT64_TYPE = WireType("INT64", "UINT64", np.uint64)  # in the JSON of V2 both are digits
FLOAT64_TYPE = WireType("FP64", "DOUBLE", np.float64)
STRING_TYPE = WireType("BYTES", "STRING", object)

# By NumPy's kind of an array.
_BY_KIND = {"b": BOOL_TYPE, "i": INT64_TYPE, "u": UINT64_TYPE, "f": FLOAT64_TYPE, "U": STRING_TYPE}
# By pandas' `infer_dtype`. Values that are all missing ("empty") can only be strings.
_BY_VALUES = {
    "boolean": BOOL_TYPE,
    "integer": INT64_TYPE,
    "floating": FLOAT64_TYPE,
    "mixed-integer-float": FLOAT64_TYPE,
    "string": STRING_TYPE,
    "date": STRING_TYPE,
    "datetime": STRING_TYPE,
    "datetime64": STRING_TYPE,
    "empty": STRING_TYPE,
}


def wire_type_of_column(column: Column) -> WireType:
    """The type of a column's values in production, gaps aside."""
    if isinstance(column, Boolean):
        return BOOL_TYPE
    if isinstance(column, Category):
        return INT64_TYPE if all(isinstance(level, int) for level in column.levels) else STRING_TYPE
    return INT64_TYPE if column.whole and not column.is_float else FLOAT64_TYPE


def wire_type_of_values(values: pd.Series | pd.Index) -> WireType | None:
    """The type of values as pandas has them, gaps aside; None if they have none."""
    from pandas.api.types import infer_dtype

    return _BY_VALUES.get(infer_dtype(values, skipna=True))


def dates_as_text(values: pd.Series) -> pd.Series:
    """A column as it is, but dates as text in the form of ISO 8601, for originals that are not in this process."""
    from pandas.api.types import infer_dtype

    if infer_dtype(values, skipna=True) not in ("date", "datetime", "datetime64"):
        return values
    return values.astype(object).map(lambda value: value.isoformat(), na_action="ignore")


def wire_type_of_labels(classes: np.ndarray) -> WireType:
    """The type of labels.

    >>> wire_type_of_labels(np.array(["no", "yes"])).v2
    'BYTES'
    """
    return _BY_KIND[classes.dtype.kind]
