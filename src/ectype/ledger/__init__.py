"""The ledger: every query and its answer, durable in one SQLite file, so that nothing is paid for twice.

It is a write-ahead log: a request is announced before it is sent and answered after, each in a transaction that has
reached the disk. One that was announced and never answered may have been paid for. Rows are kept as they are drawn, a
blob of float64 per request; answers as codes of the labels. Rounds of training are kept as well: a run that is resumed
takes them from here.
"""

from __future__ import annotations

from ectype.ledger._compact import compacted
from ectype.ledger._connections import BESIDE, NAME, SESSIONS
from ectype.ledger._ledger import Ledger
from ectype.ledger._reader import (
    Summary,
    anchored,
    answers,
    duplicate,
    entries,
    learned,
    settings_of,
    space_of,
    summary,
)
from ectype.ledger._records import LedgerEntry, answered, write_new
from ectype.ledger._row_counts import RowCounts
from ectype.ledger._salvage import salvage
from ectype.ledger._schema import CHECK, FORMAT, FURTHER, GIVEN, REPEAT, TRAFFIC, USER_ROWS
from ectype.ledger._session import WITHIN, Session, session, sessions, taken_over
from ectype.ledger._timeline import timeline
from ectype.ledger._verify import verify

__all__ = [
    "BESIDE",
    "CHECK",
    "FORMAT",
    "FURTHER",
    "GIVEN",
    "NAME",
    "REPEAT",
    "SESSIONS",
    "TRAFFIC",
    "USER_ROWS",
    "WITHIN",
    "Ledger",
    "LedgerEntry",
    "RowCounts",
    "Session",
    "Summary",
    "anchored",
    "answered",
    "answers",
    "compacted",
    "duplicate",
    "entries",
    "learned",
    "salvage",
    "session",
    "sessions",
    "settings_of",
    "space_of",
    "summary",
    "taken_over",
    "timeline",
    "verify",
    "write_new",
]
