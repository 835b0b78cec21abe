"""The ledger: every query and its answer, durable in one SQLite file, so that nothing is paid for twice.

It is a write-ahead log: a request is announced before it is sent and answered after, each in a transaction that has
reached the disk. One that was announced and never answered may have been paid for. Rows are kept as they are drawn, a
blob of float64 per request; answers as codes of the labels. Rounds of training are kept as well: a run that is resumed
takes them from here.
"""

from __future__ import annotations

from ectype.ledger._compact import compacted
from ectype.ledger._connections import BESIDE, NAME, SESSIONS
from ectype.ledger._import_rows import duplicate, write_new
from ectype.ledger._ledger import Ledger
from ectype.ledger._purpose import Purpose
from ectype.ledger._reader import (
    LedgerEntry,
    anchored,
    answered,
    answers,
    entries,
    last_round,
    learned,
    settings_of,
    space_of,
)
from ectype.ledger._recovery import salvage
from ectype.ledger._schema import FORMAT, FURTHER
from ectype.ledger._session import WITHIN, Session, session, sessions, taken_over
from ectype.ledger._summary import RowCounts, Summary, Timeline, Verification, summary, timeline, verify

__all__ = [
    "BESIDE",
    "FORMAT",
    "FURTHER",
    "NAME",
    "SESSIONS",
    "WITHIN",
    "Ledger",
    "LedgerEntry",
    "Purpose",
    "RowCounts",
    "Session",
    "Summary",
    "Timeline",
    "Verification",
    "anchored",
    "answered",
    "answers",
    "compacted",
    "duplicate",
    "entries",
    "last_round",
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
