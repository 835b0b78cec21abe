"""The input space: columns, rules between them, and the distribution that rows are sampled from."""

from ectype.space._column_types import column_types_table
from ectype.space._columns import UNKNOWN_LEVEL, Boolean, Category, Column, Date, Number
from ectype.space._dtypes import (
    BOOL_TYPE,
    FLOAT64_TYPE,
    INT64_TYPE,
    STRING_TYPE,
    WireType,
    dates_as_text,
    wire_type_of_column,
    wire_type_of_labels,
    wire_type_of_values,
)
from ectype.space._encoding import CLIP_DEVIATIONS, Encoding, FeatureView
from ectype.space._fit import DEFAULT_FLOOR
from ectype.space._formatting import columns_table
from ectype.space._frames import (
    PARQUET_SUFFIXES,
    SPREADSHEET_SUFFIXES,
    as_pandas,
    is_frame,
    refuse_repeated_columns,
    select_columns,
)
from ectype.space._membership import (
    BROKEN_RULES,
    IMPOSSIBLE_VALUES,
    UNKNOWN_LEVELS,
    has_required_values,
    is_representable,
    outside_by_reason,
)
from ectype.space._parse import open_space
from ectype.space._row_hash import RowIndex, SeenRows, first_occurrences, row_hashes
from ectype.space._space import Space
from ectype.space._support import Support

__all__ = [
    "BOOL_TYPE",
    "BROKEN_RULES",
    "CLIP_DEVIATIONS",
    "DEFAULT_FLOOR",
    "FLOAT64_TYPE",
    "IMPOSSIBLE_VALUES",
    "INT64_TYPE",
    "PARQUET_SUFFIXES",
    "SPREADSHEET_SUFFIXES",
    "STRING_TYPE",
    "UNKNOWN_LEVEL",
    "UNKNOWN_LEVELS",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "Encoding",
    "FeatureView",
    "Number",
    "RowIndex",
    "SeenRows",
    "Space",
    "Support",
    "WireType",
    "as_pandas",
    "column_types_table",
    "columns_table",
    "dates_as_text",
    "first_occurrences",
    "has_required_values",
    "is_frame",
    "is_representable",
    "open_space",
    "outside_by_reason",
    "refuse_repeated_columns",
    "row_hashes",
    "select_columns",
    "wire_type_of_column",
    "wire_type_of_labels",
    "wire_type_of_values",
]

# The names that a skops file has of them.
for _kind in (Boolean, Category, Date, Number, Space):
    _kind.__module__ = __name__
