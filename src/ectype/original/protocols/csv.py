"""Rows and answers as CSV."""

from __future__ import annotations

import csv
import io

import numpy as np

from ectype.original.decode import is_gap, word_reader
from ectype.original.protocols.base import HttpProtocol
from ectype.original.protocols.json_outputs import MalformedAnswer, Output, check_outputs, quote_json
from ectype.space import dates_as_text
from ectype.types import Classes, Label, Table


class Csv(HttpProtocol):
    """Rows as CSV, under a header where columns have names; an answer of one line for each row.

    CSV has no types: labels are words, unless declared classes say what else they are.

    >>> Csv(classes=[0, 1]).decode(b"1\\n0\\n", 2, "")
    [1, 0]
    """

    content_type = "text/csv"
    header = True  # for data frames

    def __init__(self, classes: Classes = None):
        self.read = word_reader(classes)

    def encode(self, rows: Table, ticket: str) -> bytes:
        """The rows as CSV."""
        import pandas as pd

        named = self.header and not isinstance(rows, np.ndarray)
        table = pd.DataFrame(rows) if isinstance(rows, np.ndarray) else rows.apply(dates_as_text)
        return str(table.to_csv(index=False, header=named, lineterminator="\n")).encode()

    def decode(self, body: bytes, n: int, ticket: str) -> list[Output]:
        """One label for each line, or one list of scores where a line has several fields."""
        read = [[self._field(row, field) for field in line] for row, line in enumerate(self.lines(body, n))]
        return check_outputs([line[0] if len(line) == 1 else line for line in read], n)

    def lines(self, body: bytes, n: int) -> list[list[str]]:
        """The fields of each line."""
        try:
            return [line for line in csv.reader(io.StringIO(body.decode("utf-8-sig"), newline="")) if line]
        except (csv.Error, UnicodeDecodeError) as error:
            raise MalformedAnswer("not CSV", str(error)) from None

    def _field(self, row: int, text: str) -> Label | None:
        try:
            return self.read(text)
        except ValueError:
            if is_gap(text):
                return None
            found = f"in row {row}, where the declared classes are of another type, {quote_json(text)}"
            raise MalformedAnswer("not a label", found, again=False) from None


class SageMaker(Csv):
    """CSV as Amazon SageMaker's own algorithms take it: never with a header. Several answers may stand in one line.

    >>> SageMaker().decode(b"0.25,0.75", 2, "")
    ['0.25', '0.75']
    """

    accept = "text/csv"
    header = False

    def lines(self, body: bytes, n: int) -> list[list[str]]:
        """A line for each row, even where all answers came in one, as those of XGBoost's first containers do."""
        found = super().lines(body, n)
        return [[field] for field in found[0]] if len(found) == 1 < n == len(found[0]) else found
