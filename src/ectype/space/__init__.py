"""What inputs look like: columns, rules between them, and the distribution that rows are drawn from."""

from ectype.space._column_types import column_types_table
from ectype.space._columns import UNKNOWN, Boolean, Category, Column, Date, Number
from ectype.space._dtypes import FLAG, REAL, WHOLE, WORD, WireType, of_column, of_labels, of_values, spelled
from ectype.space._encoding import FAR, Encoding, View
from ectype.space._fit import FLOOR
from ectype.space._formatting import table
from ectype.space._frames import PARQUET, SHEETS, framed, having, is_frame, refuse_repeated
from ectype.space._membership import LEVELS, RULES, VALUES, complete, outside, representable
from ectype.space._parse import open_space
from ectype.space._row_hash import RowIndex, SeenRows, first_of_each, keys_of
from ectype.space._space import Space
from ectype.space._support import Support

__all__ = [
    "FAR",
    "FLAG",
    "FLOOR",
    "LEVELS",
    "PARQUET",
    "REAL",
    "RULES",
    "SHEETS",
    "UNKNOWN",
    "VALUES",
    "WHOLE",
    "WORD",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "Encoding",
    "Number",
    "RowIndex",
    "SeenRows",
    "Space",
    "Support",
    "View",
    "WireType",
    "column_types_table",
    "complete",
    "first_of_each",
    "framed",
    "having",
    "is_frame",
    "keys_of",
    "of_column",
    "of_labels",
    "of_values",
    "open_space",
    "outside",
    "refuse_repeated",
    "representable",
    "spelled",
    "table",
]

# The names that a skops file has of them.
for _kind in (Boolean, Category, Date, Number, Space):
    _kind.__module__ = __name__
